"""`noetlvm resume`: continues executions that a crash, Ctrl-C or a pause left unfinished."""

from __future__ import annotations

import sys
from contextlib import closing
from typing import Annotated

from noetlvm.cli.database import find_execution, reading
from noetlvm.cli.drive import RunOptions, drive
from noetlvm.cli.remote import remote_client, uses_server
from noetlvm.cli.request import (
    Database,
    Durability,
    DurabilityLevel,
    EndingJson,
    Keychain,
    MaxParallel,
    Quiet,
    ServerUrl,
    TokenFile,
)
from noetlvm.command_line.declared import Argument
from noetlvm.command_line.process import SUCCESS, CommandError
from noetlvm.rounds.recovery import is_orphan
from noetlvm.store.interface import Execution, LockedError, StoreReader
from noetlvm.store.sqlite import SqliteGuest

_AT_ONCE = 1_000
"""Paused executions of a server that one command resumes."""


def resume(
    execution: Annotated[
        str | None,
        Argument(
            metavar="[EXECUTION]", help="Identifier, or a unique part of it. [default: all unfinished executions]"
        ),
    ] = None,
    keychain: Keychain = None,
    db: Database = None,
    server: ServerUrl = None,
    token_file: TokenFile = None,
    max_parallel: MaxParallel = None,
    durability: Durability = DurabilityLevel.FULL,
    as_json: EndingJson = False,
    quiet: Quiet = False,
) -> int:
    """Continue an execution after a crash, Ctrl-C or a pause; without an identifier, all unfinished executions.

    On a server it resumes one or all paused executions and waits for their end. After a crash, a server continues
    executions by itself.

    Examples: noetlvm resume, noetlvm resume 0190f3c2 --json
    """
    if uses_server(db, server):
        return _resume_remotely(execution, server, token_file, as_json=as_json, quiet=quiet)
    options = RunOptions.of(db, durability, max_parallel, keychain, as_json=as_json, quiet=quiet)
    if not options.database.exists():
        raise CommandError(f"there is no database {options.database}; --db names another")
    with reading(str(options.database)) as reader:
        chosen = _chosen(reader, execution, options.given)
    if not chosen:
        print("noetlvm: nothing is unfinished", file=sys.stderr)
        return SUCCESS
    try:
        return drive(options, lambda engine: [engine.resume(row.execution_id) for row in chosen])
    except LockedError:
        if execution is None or chosen[0].status != "paused":
            raise
    return _request_resume(options, chosen[0])


def _resume_remotely(
    text: str | None, server: str | None, token_file: str | None, *, as_json: bool, quiet: bool
) -> int:
    from noetlvm.cli.submit import refusing, watch

    with remote_client(server, token_file) as client:
        if text is None:
            rows = refusing(client.executions, status="paused", limit=_AT_ONCE)["executions"]
        else:
            rows = [refusing(client.execution, text)]
        for row in rows:
            if row["ended"] is None:
                refusing(client.control, row["execution_id"], "resume")
        codes = [watch(client, row["execution_id"], as_json=as_json, quiet=quiet) for row in rows]
    if not rows:
        print("noetlvm: nothing is paused", file=sys.stderr)
    return max(codes, default=0)


def _chosen(reader: StoreReader, text: str | None, options: str) -> list[Execution]:
    """Return the executions to resume. A child is resumed by its parent, which waits for it, unless that has ended."""
    if text is None:
        return [row for row in reader.unfinished() if not row.parent or is_orphan(reader, row)]
    row: Execution = find_execution(reader, text, options)
    while row.parent and not is_orphan(reader, row):
        parent = reader.execution(row.parent)
        if parent is None:
            break
        row = parent
    return [row]


def _request_resume(options: RunOptions, row: Execution) -> int:
    """Request that the process that runs a paused execution resume it."""
    with closing(SqliteGuest(options.database)) as store:
        store.request(row.execution_id, "resume")
    print(f"noetlvm: {row.execution_id} is resumed by the process that runs it", file=sys.stderr)
    return SUCCESS
