"""A compiled program, as it is stored and as it runs."""

from __future__ import annotations

from typing import NamedTuple

from noetlvm.bytecode.codec.container import bundle_id
from noetlvm.machine.loaded import LoadedProgram, load_program


class Bundle(NamedTuple):
    """A bundle that may run."""

    id: str
    data: bytes
    program: LoadedProgram

    @classmethod
    def of(cls, data: bytes) -> Bundle:
        """Return the bundle that the bytes are. Raises BundleError."""
        program = load_program(data)
        return cls(bundle_id(data), data, program)
