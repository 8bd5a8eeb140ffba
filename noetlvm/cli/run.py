"""`noetlvm run`: runs a bundle, or playbooks that it compiles first, to the end."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from noetlvm.bridge import CompilationError, compile_playbooks
from noetlvm.bytecode.program import BundleError
from noetlvm.cli.database import writing
from noetlvm.cli.drive import RunOptions, drive
from noetlvm.cli.request import (
    CtxFile,
    Database,
    Durability,
    DurabilityLevel,
    EndingJson,
    Keychain,
    MaxParallel,
    PayloadFile,
    Quiet,
    SetValues,
    first_ctx,
    request_payload,
)
from noetlvm.command_line.declared import Argument
from noetlvm.command_line.process import CommandError
from noetlvm.machine.decide import invalid_playbook
from noetlvm.machine.loaded import Bundle
from noetlvm.nearest import did_you_mean
from noetlvm.rounds.requests import record_refusal
from noetlvm.store.interface import StoreError

if TYPE_CHECKING:
    from noetlvm.machine.loaded import Bundle

SUFFIX = ".nbc"


def run(
    files: Annotated[
        list[str], Argument(metavar="FILE...", help="A bundle (.nbc); or a playbook, followed by its children.")
    ],
    set: SetValues = None,
    payload: PayloadFile = None,
    ctx: CtxFile = None,
    keychain: Keychain = None,
    db: Database = None,
    max_parallel: MaxParallel = None,
    durability: Durability = DurabilityLevel.FULL,
    as_json: EndingJson = False,
    quiet: Quiet = False,
) -> int:
    """Run a bundle or a playbook to its end.

    Ctrl-C stops it gracefully; `noetlvm resume` continues it. Exit codes: 0 success, 1 failed, 2 refused.

    Examples: noetlvm run etl.nbc, noetlvm run etl.yaml --set day=2024-05-01, noetlvm run main.yaml child.yaml
    --json
    """
    options = RunOptions.of(db, durability, max_parallel, keychain, as_json=as_json, quiet=quiet)
    workload, initial_ctx = request_payload(payload, set or ()), first_ctx(ctx)
    try:
        bundle = bundle_of(files, quiet=quiet)
    except RefusedPlaybookError as problem:
        _record(options, files[0], problem)
        raise
    if not quiet:
        note_unknown_keys(bundle, workload)
    return drive(options, lambda engine: [engine.start(bundle, workload, ctx=initial_ctx)], folder_of(files))


UNKNOWN_KEYS_NOTED = 20
"""Keys of a request that are named on standard error."""


def note_unknown_keys(bundle: Bundle, payload: dict[str, Any]) -> None:
    """Note a key of the request that the workload does not declare: nothing may read it."""
    workload = bundle.program.main.workload
    known = [key for key in workload if isinstance(key, str)]
    unknown = [key for key in payload if key not in workload]
    declared = f"it declares {', '.join(known)}" if known else "it declares none"
    for key in unknown[:UNKNOWN_KEYS_NOTED]:
        print(f"note: the workload has no `{key}`; {did_you_mean(str(key), known) or declared}", file=sys.stderr)
    if len(unknown) > UNKNOWN_KEYS_NOTED:
        print(f"note: nor has it {len(unknown) - UNKNOWN_KEYS_NOTED:,} more keys of the request", file=sys.stderr)


def bundle_of(files: Sequence[str], *, quiet: bool = False) -> Bundle:
    """Return the bundle of a .nbc file, or compile playbooks into one."""
    data = _read(files) if files[0].endswith(SUFFIX) else _compiled(files, quiet)
    try:
        return Bundle.of(data)
    except BundleError as error:
        raise RefusedPlaybookError(f"{files[0]} is not a bundle that can run: {error}") from None


class RefusedPlaybookError(CommandError):
    """The playbook of a request is not valid."""

    def __init__(self, message: str, findings: Sequence[dict[str, Any]] = ()) -> None:
        super().__init__(message)
        self.findings = findings


def _record(options: RunOptions, file: str, problem: RefusedPlaybookError) -> None:
    """Leave a log of the refused request (S61)."""
    error = invalid_playbook(str(problem), problem.findings)
    try:
        with writing(options.database, options.durability) as store:
            refusal = record_refusal(store, error, file, name=Path(file).stem, now=store.now())
    except StoreError as reason:
        print(f"note: the refusal is not recorded: {reason}", file=sys.stderr)
        return
    if not options.quiet:
        print(f"refused; `noetlvm show {refusal.execution_id}` shows why", file=sys.stderr)


def _read(files: Sequence[str]) -> bytes:
    if len(files) > 1:
        raise CommandError("a bundle contains its children: give one .nbc file, or playbooks")
    try:
        return Path(files[0]).read_bytes()
    except OSError as error:
        raise CommandError(f"cannot read {files[0]}: {error.strerror}") from None


def _compiled(files: Sequence[str], quiet: bool) -> bytes:
    try:
        return compile_playbooks(files, quiet=quiet)
    except CompilationError as problem:
        if not problem.findings:
            raise CommandError(str(problem)) from None
        raise RefusedPlaybookError(str(problem), problem.findings) from None


def folder_of(files: Sequence[str]) -> Path:
    """Return the folder that holds all files: the debug map names them from there."""
    parents = [Path(file).parent for file in files]
    return parents[0] if len(set(parents)) == 1 else Path(os.path.commonpath([path.resolve() for path in parents]))
