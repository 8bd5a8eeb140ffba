"""Every limit on a bundle. The decoder checks sizes before it allocates memory; the verifier checks code."""

from __future__ import annotations

BUNDLE_BYTES_MAX = 16 * 1024 * 1024
"""A whole bundle; a longer one is refused unread."""

MEMORY_BYTES_MAX = 40 * 1024 * 1024
"""What decoding may make of a bundle, by the estimates below. With the bundle and what decoding needs for a
moment, that stays under 64 MiB."""

TEXT_BYTES_MAX = 2 * 1024 * 1024
"""One text, in UTF-8."""

CODE_BYTES_MAX = 256 * 1024
"""The code of one expression or pipeline."""

DEPTH_MAX = 64
"""Lists and mappings inside each other, as deep as a playbook may nest them."""

SECTIONS_MAX = 64
"""Sections of a bundle, known and unknown."""

SLOTS_MAX = 65_535
"""Local variables of an expression, round counters of a pipeline."""

OPERAND_MAX = 2**32 - 1
"""The largest operand, and the largest line or column."""

BIG_INTEGER_CHARS_MAX = 1_300
"""Characters of an integer beyond 64 bits: enough for the 4,096 bits that an expression may reach."""

# What verified code may need when it runs.
CODE_MAX = 250_000
"""Instructions in one expression or one pipeline."""

STACK_MAX = 100_000
"""Values on an expression's stack. A literal list or mapping with templates in it needs all its items at once."""

FOR_DEPTH_MAX = 128
"""Nested for blocks in one expression: twice the depth of a template, since a filtered block iterates twice."""

TEXT_DEPTH_MAX = 128
"""Texts begun inside each other in one expression: as with for blocks, a template cannot nest that deep."""

LIMIT_MAX = OPERAND_MAX // 2
"""Attempts, rounds and iterations at once: one bit of the operand marks a number or an expression."""

LOOPS_MAX = 16
"""Levels of a step's loop."""

# Estimates of what CPython spends, rounded up: a bundle of many small things is much larger in memory than on disk.
VALUE_COST = 64
"""A value in a list, mapping or record."""
COLLECTION_COST = 128
"""A list or mapping, besides its values."""
CONSTANT_COST = 192
"""A constant's place in the pool, and what it takes to see that no other is like it."""
CODE_COST = 192
"""An expression or a pipeline, besides its instructions."""
INSTRUCTION_COST = 24
"""An instruction's place in code; equal instructions are one object."""
NEW_INSTRUCTION_COST = 192
"""An instruction that did not occur before."""
MARK_COST = 8
NEW_MARK_COST = 72
ADDRESS_COST = 192
"""An entry of the debug map, besides its name and marks."""
