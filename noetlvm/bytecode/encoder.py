"""Writes a program as a bundle: the same program, the same bytes.

Each constant and each expression is in a pool once, numbered in the order in which the decoder meets it first:
expressions by the pipelines, then the net; constants by the expressions, then the pipelines, then the net. Nothing here
asks whether a program makes sense; that is the verifier's business.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from noetlvm.bytecode import writer
from noetlvm.bytecode.container import DEBUG, frame
from noetlvm.bytecode.debug_marks import write_debug
from noetlvm.bytecode.isa import BACKOFFS, COMPARISONS, NAMES, Operand
from noetlvm.bytecode.layout import ArcBit, LoopBit, StepBit
from noetlvm.bytecode.limits import BUNDLE_BYTES_MAX, CODE_BYTES_MAX, OPERAND_MAX, SLOTS_MAX
from noetlvm.bytecode.program import Expression
from noetlvm.bytecode.writer import UnencodableProgram

if TYPE_CHECKING:
    from noetlvm.bytecode.program import Arc, Credential, Instruction, LoopHeader, Playbook, Program, Transition

__all__ = ["UnencodableProgram", "encode"]


def encode(program: Program, *, debug: bool = True) -> bytes:
    """Write a program, with its debug map if it has one and `debug` asks for it."""
    if not program.playbooks:
        raise UnencodableProgram("a program has at least one playbook")
    data = frame(_payloads(program, debug))
    if len(data) > BUNDLE_BYTES_MAX:
        raise UnencodableProgram(f"a bundle has at most {BUNDLE_BYTES_MAX} bytes, and this one would have {len(data)}")
    return data
