"""What `noetlvm run` does: makes a bundle of what it is given, and lets it run to its end."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from noetlvm.cli.drive import Manner, drive
from noetlvm.cli.refused import Refused

if TYPE_CHECKING:
    from noetlvm.server.bundle import Bundle

SUFFIX = ".nbc"


def run_files(files: Sequence[str], payload: dict[str, Any], manner: Manner, ctx: dict[str, Any] | None = None) -> int:
    """Run a bundle, or playbooks of which the first is the main one, and return the exit code."""
    bundle = bundle_of(files, quiet=manner.quiet)
    if not manner.quiet:
        _note_slips(bundle, payload)
    return drive(manner, lambda engine: [engine.start(bundle, payload, ctx=ctx)], _folder(files))


def _note_slips(bundle: Bundle, payload: dict[str, Any]) -> None:
    """Note a key of the request that the workload does not have, but one very like it."""
    known = [key for key in bundle.program.main.workload if isinstance(key, str)]
    for key in (key for key in payload if key not in known):
        from difflib import get_close_matches

        near = get_close_matches(str(key), known, 1)
        if near:
            print(f"note: the workload has no `{key}`; did you mean `{near[0]}`?", file=sys.stderr)


def bundle_of(files: Sequence[str], *, quiet: bool = False) -> Bundle:
    """Return the bundle that a file holds, or that playbooks become."""
    from noetlvm.bytecode.errors import BundleError
    from noetlvm.server.bundle import Bundle

    data = _read(files) if files[0].endswith(SUFFIX) else _compiled(files, quiet)
    try:
        return Bundle.of(data)
    except BundleError as error:
        raise Refused(f"{files[0]} is no bundle that can run: {error}") from None


def _read(files: Sequence[str]) -> bytes:
    if len(files) > 1:
        raise Refused("a bundle holds everything it needs: give one .nbc, or playbooks")
    try:
        return Path(files[0]).read_bytes()
    except OSError as error:
        raise Refused(f"cannot read {files[0]}: {error.strerror}") from None


def _compiled(files: Sequence[str], quiet: bool) -> bytes:
    from noetlvm.bridge import NotCompiled, compile_playbooks

    try:
        return compile_playbooks(files, quiet=quiet)
    except NotCompiled as problem:
        raise Refused(str(problem)) from None


def _folder(files: Sequence[str]) -> Path:
    """Return the folder that holds all files: the debug map names them from there."""
    parents = [Path(file).parent for file in files]
    return parents[0] if len(set(parents)) == 1 else Path(os.path.commonpath([path.resolve() for path in parents]))
