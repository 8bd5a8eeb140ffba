"""Bundles and their text on disk: bounded reading, whole writing, and errors in one sentence each."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, NamedTuple

from noetlc.lint.atomic import write_atomically
from noetlc.lint.cannot_run import CannotRun
from noetlvm.bytecode.codec.container import bundle_id
from noetlvm.bytecode.codec.encoder import encode
from noetlvm.bytecode.codec.writer import EncodingError
from noetlvm.bytecode.errors import BundleError, MalformedBundle
from noetlvm.bytecode.limits import BUNDLE_BYTES_MAX
from noetlvm.bytecode.load import load
from noetlvm.bytecode.program import Program

ASSEMBLY_BYTES_MAX = 16 * BUNDLE_BYTES_MAX
"""The text of a bundle is several times its size."""

STANDARD = "-"
"""Standard input or output, where a file is named."""


def read_file(path: str, most: int) -> bytes:
    """Return a file's content, or one byte more than `most` of it: enough for whoever refuses it as too large."""
    try:
        if path == STANDARD:
            return sys.stdin.buffer.read(most + 1)
        with Path(path).open("rb") as file:
            return file.read(most + 1)
    except OSError as error:
        raise CannotRun(f"cannot read {path}: {error.strerror}") from None


def read_bundle(path: str) -> bytes:
    """Return the bytes of a bundle, whatever they are."""
    return read_file(path, BUNDLE_BYTES_MAX)


def open_bundle(path: str) -> tuple[Program, bytes]:
    """Return the verified program of a bundle, and its bytes."""
    data = read_bundle(path)
    try:
        return load(data), data
    except BundleError as error:
        raise CannotRun(f"{path}: {told(error)}") from None


def told(error: BundleError) -> str:
    """Say in one line what is wrong with a bundle."""
    kind = "malformed" if isinstance(error, MalformedBundle) else "invalid"
    return f"{kind} bundle: {error}"


def write_file(path: str | None, data: bytes) -> None:
    """Write to a file, or to standard output where none is named."""
    if path is None or path == STANDARD:
        sys.stdout.buffer.write(data)
        return
    try:
        write_atomically(path, data)
    except OSError as error:
        raise CannotRun(f"cannot write {path}: {error.strerror}") from None


class Verdict(NamedTuple):
    """What the verifier says of one bundle."""

    path: str
    id: str | None
    error: BundleError | None

    def __str__(self) -> str:
        return f"{self.path}: {told(self.error) if self.error else f'valid, id {self.id}'}"

    def to_json(self) -> dict[str, Any]:
        """Return it as `--json` shows it."""
        error = self.error and {
            "kind": "malformed" if isinstance(self.error, MalformedBundle) else "invalid",
            "code": self.error.code,
            "section": self.error.section,
            "offset": self.error.offset,
            "reason": self.error.reason,
        }
        return {"path": self.path, "ok": self.error is None, "id": self.id, "error": error}


def verdict(path: str) -> Verdict:
    """Have the verifier look at a bundle."""
    data = read_bundle(path)
    try:
        load(data)
    except BundleError as error:
        return Verdict(path, None, error)
    return Verdict(path, bundle_id(data), None)


def assemble_file(path: str, *, verified: bool) -> tuple[bytes, str | None]:
    """Return the bundle that an assembly text makes, or what is wrong with the text."""
    from noetlc.assembly.assembler import AssemblyError, assemble

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
        return b"", f"{path}: {told(error)}"
    return data, None
