"""The words of the text form that both directions share. Its grammar is `grammar/assembly.lark`."""

from __future__ import annotations

import re

from noetlvm.bytecode.isa import BACKOFFS, COMPARISONS, NAMES, Operand

CHOICES: dict[Operand, tuple[str, ...]] = {
    Operand.NAME: NAMES,
    Operand.COMPARISON: COMPARISONS,
    Operand.BACKOFF: BACKOFFS,
}
"""Operands that are one of a few words, written bare."""

STRINGS = frozenset({Operand.TEXT, Operand.FILTER, Operand.TEST, Operand.FUNCTION, Operand.METHOD})
"""Operands that are written as a JSON string."""

NUMBERS = frozenset({Operand.COUNT, Operand.SLOT, Operand.SPREAD})

NO_EXPRESSION = "none"

PLAYBOOK_FLAGS = ("no_next_is_error",)
STEP_FLAGS = ("drops_denied", "best_effort", "inclusive")
LOOP_FLAGS = ("parallel", "distributed")
ARC_FLAGS = ("handles_failure",)
"""Attributes that are true where their word stands."""

LABEL = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
GENERATED_LABEL = re.compile(r"L[0-9]+")
