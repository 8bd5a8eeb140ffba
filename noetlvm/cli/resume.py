"""`noetlvm resume`: goes on with executions that a crash, Ctrl-C or a pause left unfinished."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

from noetlvm.cli.database import database_path, find_execution, reading
from noetlvm.cli.drive import RunOptions, drive
from noetlvm.cli.request import Database, Durability, DurabilityLevel, EndingJson, Keychain, MaxParallel, Quiet
from noetlvm.command_line.declared import Argument
from noetlvm.command_line.process import CommandError
from noetlvm.store.interface import LockedError

if TYPE_CHECKING:
    from noetlvm.store.interface import Execution, StoreReader


def resume(
    execution: Annotated[
        str | None,
        Argument(metavar="[EXECUTION]", help="Identifier, or enough of it. [default: all that are unfinished]"),
    ] = None,
    keychain: Keychain = None,
    db: Database = None,
    max_parallel: MaxParallel = None,
    durability: Durability = DurabilityLevel.FULL,
    as_json: EndingJson = False,
    quiet: Quiet = False,
) -> int:
    """Go on with an execution after a crash, Ctrl-C or a pause; without one, with all that are unfinished.

    Examples: noetlvm resume, noetlvm resume 0190f3c2 --json
    """
    options = RunOptions.of(db, durability, max_parallel, keychain, as_json=as_json, quiet=quiet)
    if not options.database.exists():
        raise CommandError(f"there is no database {options.database}; --db names another")
    with reading(str(options.database)) as reader:
        chosen = _chosen(reader, execution)
    if not chosen:
        print("noetlvm: nothing is unfinished", file=sys.stderr)
        return 0
    try:
        return drive(options, lambda engine: [engine.resume(row.execution_id) for row in chosen])
    except LockedError:
        if execution is None or chosen[0].status != "paused":
            raise
    return _request_resume(options, chosen[0])


def _chosen(reader: StoreReader, text: str | None) -> list[Execution]:
    """Return what to go on with. A child comes with its parent, which waits for it, unless that has ended."""
    from noetlvm.server.recovery import is_orphan

    if text is None:
        return [row for row in reader.unfinished() if not row.parent or is_orphan(reader, row)]
    row: Execution = find_execution(reader, text)
    while row.parent and not is_orphan(reader, row):
        parent = reader.execution(row.parent)
        if parent is None:
            break
        row = parent
    return [row]


def _request_resume(options: RunOptions, row: Execution) -> int:
    """Request that the process that runs a paused execution go on with it."""
    from noetlvm.store.sqlite import send_request

    send_request(database_path(str(options.database)), row.execution_id, "resume")
    print(f"noetlvm: {row.execution_id} goes on, in the process that runs it", file=sys.stderr)
    return 0
