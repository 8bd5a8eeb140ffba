"""What `noetlvm replay` does: folds a log from its first event and compares what comes out with all that is known."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from noetlvm.cli.database import database_path, find_execution, reading, results_of
from noetlvm.cli.refused import Refused

if TYPE_CHECKING:
    from noetlvm.engine.bundle import Bundle
    from noetlvm.machine.state import State
    from noetlvm.store.interface import Execution, Reader

DIFFERS = 1


def replay_execution(text: str | None, bundle_file: str | None, db: str | None) -> int:
    """Fold the log of an execution against its bundle, tell what differs, and return the exit code."""
    with reading(db) as reader:
        row = find_execution(reader, text)
        bundle = _bundle(reader, row, bundle_file)
        found = list(_differences(reader, row, bundle, database_path(db)))
    for difference in found:
        print(f"{row.execution_id}: {difference}", file=sys.stderr)
    if found:
        return DIFFERS
    print(f"{row.execution_id}: {row.seq:,} events fold to what is recorded: {row.status}")
    return 0


def _bundle(reader: Reader, row: Execution, file: str | None) -> Bundle:
    from noetlvm.bytecode.errors import BundleError
    from noetlvm.engine.bundle import Bundle

    try:
        data = Path(file).read_bytes() if file else reader.bundle(row.bundle)
        if data is None:
            raise Refused(f"the database has no bundle {row.bundle}; name it with --bundle")
        return Bundle.of(data)
    except OSError as error:
        raise Refused(f"cannot read {file}: {error.strerror}") from None
    except BundleError as error:
        raise Refused(f"{file or row.bundle} is no bundle that can run: {error}") from None


def _differences(reader: Reader, row: Execution, bundle: Bundle, database: Path) -> Iterator[str]:
    """Yield what does not agree."""
    from noetlvm.engine.recovery import folded, recovered

    if bundle.id != row.bundle:
        yield f"it was recorded with the bundle {row.bundle[:16]}, not with {bundle.id[:16]}"
    if row.path not in bundle.program.playbooks:
        yield f"the bundle has no playbook `{row.path}`"
        return
    state = folded(reader, row.execution_id)
    if state.seq != row.seq:
        yield f"the log has {state.seq:,} events, the overview says {row.seq:,}"
    if recovered(reader, row.execution_id, row.bundle).to_data() != state.to_data():
        yield "the latest snapshot and the events after it give another state than all events do"
    if state.is_over != (row.ended is not None) or (state.is_over and state.status != row.status):
        yield f"the log says {state.status}, the overview says {row.status}"
    yield from _left_over(state, row, bundle, database)


def _left_over(state: State, row: Execution, bundle: Bundle, database: Path) -> Iterator[str]:
    """Yield what the machine would decide now: it has decided everything when the last event was written."""
    from noetlvm.machine.control import Control
    from noetlvm.machine.payload import Offload

    fetch = results_of(database).get
    offload = Offload(fetch=lambda reference: fetch(reference.key))
    more = Control(bundle.program.playbooks[row.path], state, offload).settle()
    if more:
        yield f"the machine goes on from there with `{more[0].name}`, which the log does not have"
