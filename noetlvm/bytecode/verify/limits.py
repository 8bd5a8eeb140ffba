"""Bounds on what verified code may need when it runs. What a bundle may hold as data is bounded when it is decoded."""

from __future__ import annotations

CODE_MAX = 250_000
"""Instructions in one expression or one pipeline."""

STACK_MAX = 100_000
"""Values on an expression's stack. A literal list or mapping with templates in it needs all its items at once."""

FOR_DEPTH_MAX = 128
"""Nested for blocks in one expression: twice the depth of a template, since a filtered block iterates twice."""

TEXT_DEPTH_MAX = 128
"""Texts begun inside each other in one expression: as with for blocks, a template cannot nest so deep."""

LOOPS_MAX = 16
"""Levels of a step's loop."""
