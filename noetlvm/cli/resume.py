"""What `noetlvm resume` does: goes on with executions that a crash, Ctrl-C or a pause left unfinished."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from noetlvm.cli.database import database_path, find_execution, reading
from noetlvm.cli.drive import Manner, drive
from noetlvm.cli.refused import Refused
from noetlvm.store.interface import LockedError

if TYPE_CHECKING:
    from noetlvm.store.interface import Execution, Reader


def resume_executions(text: str | None, manner: Manner) -> int:
    """Go on with one execution, or with all that are unfinished, and return the exit code."""
    if not manner.database.exists():
        raise Refused(f"there is no database {manner.database}; --db names another")
    with reading(str(manner.database)) as reader:
        chosen = _chosen(reader, text)
    if not chosen:
        print("noetlvm: nothing is unfinished", file=sys.stderr)
        return 0
    try:
        return drive(manner, lambda engine: [engine.resume(row.execution_id) for row in chosen])
    except LockedError:
        if text is None or chosen[0].status != "paused":
            raise
    return _ask_its_process(manner, chosen[0])


def _chosen(reader: Reader, text: str | None) -> list[Execution]:
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


def _ask_its_process(manner: Manner, row: Execution) -> int:
    """Ask the process that holds a paused execution to go on with it."""
    from noetlvm.store.sqlite import send_request

    send_request(database_path(str(manner.database)), row.execution_id, "resume")
    print(f"noetlvm: {row.execution_id} goes on, in the process that runs it", file=sys.stderr)
    return 0
