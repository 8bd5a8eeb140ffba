"""Cancels or pauses an execution: by a request to the process that runs it, or directly if none does."""

from __future__ import annotations

import asyncio
import sys
from contextlib import closing
from pathlib import Path

from noetlvm.bytecode.program import BundleError
from noetlvm.cli.database import database_path, find_execution, options_given, reading, results_of, writing
from noetlvm.cli.remote import remote_client, uses_server
from noetlvm.command_line.process import SUCCESS, CommandError
from noetlvm.engine.engine import Engine, EngineOptions
from noetlvm.rounds.credentials import Credentials
from noetlvm.rounds.library import NotFoundError
from noetlvm.store.interface import Action, Execution, LockedError
from noetlvm.store.sqlite import SqliteGuest
from noetlvm.tools.runner import ToolRunner

_DONE = {"cancel": "cancelled", "pause": "paused", "resume": "resumed"}


def control_execution(text: str, action: Action, db: str | None, server: str | None = None) -> int:
    """Cancel or pause an execution, and return the exit code."""
    if uses_server(db, server):
        return _control_remotely(text, action, server)
    path = database_path(db)
    with reading(db) as reader:
        row = find_execution(reader, text, options_given(db, server))
    if row.ended is not None:
        raise CommandError(f"{row.execution_id} has ended as {row.status}; there is nothing to {action}")
    try:
        _do(path, row, action)
    except LockedError:
        _send(path, row, action)
        return SUCCESS
    print(f"{row.execution_id}: {_DONE[action]}", file=sys.stderr)
    return SUCCESS


def _control_remotely(text: str, action: Action, server: str | None) -> int:
    from noetlvm.client.calls import ServiceError

    try:
        with remote_client(server, None) as client:
            row = client.control(text, action)
    except ServiceError as error:
        raise CommandError(str(error)) from None
    print(f"{row['execution_id']}: the server will {action} it", file=sys.stderr)
    return SUCCESS


def _send(path: Path, row: Execution, action: Action) -> None:
    with closing(SqliteGuest(path)) as store:
        store.request(row.execution_id, action)
    print(f"{row.execution_id}: the process that runs it will {action} it", file=sys.stderr)


def _do(path: Path, row: Execution, action: Action) -> None:
    """Apply the action here, because no process runs the execution."""

    async def control() -> None:
        # Nothing is run, so nothing needs a credential.
        options = EngineOptions(resolve=lambda _declared: Credentials())
        await Engine(store, results_of(path), ToolRunner(), options).control_idle(row.execution_id, action)

    with writing(path) as store:
        try:
            asyncio.run(control())
        except (BundleError, NotFoundError) as problem:
            raise CommandError(f"the data of {row.execution_id} cannot be read: {problem}") from None
