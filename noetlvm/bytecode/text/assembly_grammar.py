"""The text form of a program: its words, for the disassembler that writes it and the assembler that reads it.

    program    = ".isa" number [".files" json] playbook* [".debug" json entry*]
    playbook   = ".playbook" path name ["no_next_is_error"] [".metadata" json] [".executor" json] ".entry" name
                 [".final" name] [".workload" json] (".credential" name kind json)* step*
    step       = ".step" name flag* annotation [".settings" json] [".admit" code] loop* arc* [".tool" code]
    loop       = ".loop" iterator "width" number flag* ["reduce" json] ".in" code
    arc        = ".arc" target ["handles_failure"] annotation [".when" code] [".args" code]
    code       = "(" annotation [".slots" number] (label ":" | instruction)* ")"
    instruction = opcode operand* [mark]
    annotation = ["@" json-string] [mark]          what the author wrote there, and where
    mark       = "@" [file ":"] line ":" column    the file by its number in `.files`; the first one if left out
    entry      = ".entry" address construct mark*

Names and constants are JSON. Instructions and directives end at the end of the line or at `;`, comments begin with `#`.
Operands stand in the table's order: an expression is `code` or `none`, a target is a label of the same code. Where a
mark is left out, that of the instruction before holds; where a construct is, that of the address before in the step.
A step's parts stand in the order of `addresses`. Nothing is numbered across steps, so that a change to one step leaves
the text of the others alone. `.debug` spells out a debug map that does not fit the program it came with.
"""

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

ORDER: dict[str, str] = {
    ".files": "after `.isa`, before the first `.playbook`",
    ".playbook": "after `.isa` and `.files`",
    ".metadata": "first under a `.playbook`",
    ".executor": "under a `.playbook`, after `.metadata`",
    ".entry": "under a `.playbook`, after `.executor`, or under `.debug`",
    ".final": "under a `.playbook`, after `.entry`",
    ".workload": "under a `.playbook`, after `.entry` and `.final`",
    ".credential": "under a `.playbook`, before its first `.step`",
    ".step": "under a `.playbook`, after `.entry` and what belongs to the playbook",
    ".settings": "first under a `.step`",
    ".admit": "under a `.step`, before `.loop`, `.arc` and `.tool`",
    ".loop": "under a `.step`, before `.arc` and `.tool`",
    ".in": "under a `.loop`, once",
    ".arc": "under a `.step`, before `.tool`",
    ".when": "under an `.arc`, before `.args`",
    ".args": "under an `.arc`, last",
    ".tool": "last under a `.step`, once",
    ".slots": "first in a code",
    ".debug": "once, after everything else",
    ".isa": "once, at the beginning",
}
"""Every directive, and where it belongs."""
