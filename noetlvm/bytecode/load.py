"""The one way from bytes to a program that may run: decode, then verify."""

from __future__ import annotations

from noetlvm.bytecode.decoder import decode
from noetlvm.bytecode.program import Program
from noetlvm.bytecode.verifier import verify


def load(data: bytes) -> Program:
    """Return a bundle's program. Raises MalformedBundle or InvalidBundle, and nothing else on account of the bytes."""
    program = decode(data)
    verify(program)
    return program
