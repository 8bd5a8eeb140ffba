"""What names may look like: of playbooks, steps, tasks, iterators, credentials and keys.

The linter reports a name that has another shape; the verifier refuses a bundle with one. All of them are bounded, since
events carry names besides their payload, and an event has a size.
"""

from __future__ import annotations

import re

NAME_CHARS_MAX = 1_000
"""A name or a path: of a playbook, a step, a label, an iterator, a credential, a tool kind, or a key of a patch."""


def _shape(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"(?=.{{0,{NAME_CHARS_MAX}}}\Z){pattern}\Z")


WORD = _shape(r"[^\W\d][\w-]*")
"""Of a credential or a workbook task: letters, digits, underscores and hyphens."""

STEP_NAME = _shape(r"[^\W\d][\w-]*(/(?!(admit|tool|in|when|args)(/|\Z))[^\W\d][\w-]*)*")
"""Of a step: such names with slashes between them, as long as no address could mean something else."""

VARIABLE = _shape(r"[^\W\d]\w*")
"""Of an iterator: it is read as `iter.name`."""

LABEL = _shape(r"[^\W\d][\w-]*(\.[^\W\d][\w-]*)*")
"""Of a task or a generated place: names joined by dots."""

ONE_LINE = _shape(r"[^\x00-\x1f\x7f]+")
"""Of a playbook, its path, a tool kind: PostgreSQL stores no NUL, and no control character can be shown."""


def is_key(text: str) -> bool:
    """Return whether `set_ctx` and `set_iter` may write a key of this name."""
    return text.isidentifier() and len(text) <= NAME_CHARS_MAX


def has_control(name: str) -> bool:
    return _CONTROL.search(name) is not None


_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
