"""What a plain name is, by what it names. The same shapes that the language asks for (S5, S18)."""

from __future__ import annotations

import re

NAME = re.compile(r"[^\W\d][\w-]*\Z")
"""Of a step or a credential: letters, digits, underscores and hyphens."""

VARIABLE = re.compile(r"[^\W\d]\w*\Z")
"""Of an iterator: it is read as `iter.name`."""

LABEL = re.compile(r"[^\W\d][\w-]*(\.[^\W\d][\w-]*)*\Z")
"""Of a task or a generated place: names joined by dots."""
