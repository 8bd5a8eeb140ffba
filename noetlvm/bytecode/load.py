"""The one way from bytes to a program that may run: decode, then verify."""

from __future__ import annotations

from noetlvm.bytecode.codec.decoder import decode
from noetlvm.bytecode.program import Program
from noetlvm.bytecode.verify.verifier import verify


def load(data: bytes, *, debug: bool = True) -> Program:
    """Return a bundle's program. Raises MalformedBundleError or InvalidBundleError, whatever the bytes are.

    Without `debug` the debug section stays unread: a machine needs it only once something has gone wrong.
    """
    program = decode(data, debug=debug)
    verify(program)
    return program
