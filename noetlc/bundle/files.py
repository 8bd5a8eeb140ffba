"""Bundles and their text on disk, with errors as one sentence each."""

from __future__ import annotations

from typing import Any, NamedTuple

from noetlc.assembly.assembler import AssemblyError, assemble
from noetlc.files import read_file
from noetlvm.bytecode.codec.container import bundle_id
from noetlvm.bytecode.codec.encoder import encode
from noetlvm.bytecode.codec.writer import EncodingError
from noetlvm.bytecode.limits import BUNDLE_BYTES_MAX
from noetlvm.bytecode.program import BundleError, MalformedBundleError, Program
from noetlvm.bytecode.verify.verifier import load
from noetlvm.command_line.process import CommandError

ASSEMBLY_BYTES_MAX = 16 * BUNDLE_BYTES_MAX
"""The text of a bundle is several times its size."""


def read_bundle(path: str) -> bytes:
    """Return the bytes of a bundle, whatever they are."""
    return read_file(path, BUNDLE_BYTES_MAX)


def open_bundle(path: str) -> tuple[Program, bytes]:
    data = read_bundle(path)
    try:
        return load(data), data
    except BundleError as error:
        raise CommandError(f"{path}: {describe(error)}") from None


def describe(error: BundleError) -> str:
    kind = "malformed" if isinstance(error, MalformedBundleError) else "invalid"
    return f"{kind} bundle: {error}"


class Verification(NamedTuple):
    """The verifier's result for one bundle."""

    path: str
    id: str | None
    error: BundleError | None

    def __str__(self) -> str:
        return f"{self.path}: {describe(self.error) if self.error else f'valid, id {self.id}'}"

    def to_json(self) -> dict[str, Any]:
        error = self.error and {
            "kind": "malformed" if isinstance(self.error, MalformedBundleError) else "invalid",
            "code": self.error.code,
            "section": self.error.section,
            "offset": self.error.offset,
            "reason": self.error.reason,
        }
        return {"path": self.path, "ok": self.error is None, "id": self.id, "error": error}


def verify_file(path: str) -> Verification:
    data = read_bundle(path)
    try:
        load(data)
    except BundleError as error:
        return Verification(path, None, error)
    return Verification(path, bundle_id(data), None)


def assemble_file(path: str, *, verified: bool) -> tuple[bytes, str | None]:
    """Return the bundle that an assembly text makes, or what is wrong with the text."""
    text = read_file(path, ASSEMBLY_BYTES_MAX).decode("utf-8", "replace")
    try:
        data = encode(assemble(text))
        if verified:
            load(data)
    except AssemblyError as error:
        return b"", f"{path}:{error.line}:{error.column}: {error.message}"
    except EncodingError as error:
        return b"", f"{path}: {error}"
    except BundleError as error:
        return b"", f"{path}: {describe(error)}"
    return data, None
