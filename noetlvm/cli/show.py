"""`noetlvm show`: one execution, its steps, and its first failure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from noetlvm.cli.data_text import Table, duration, print_table, visible
from noetlvm.cli.database import find_execution, reading
from noetlvm.cli.list import row_data
from noetlvm.cli.progress import Progress, StepProgress
from noetlvm.cli.request import Database, Json, LatestExecution, ServerUrl
from noetlvm.cli.summary import first_failure, summary
from noetlvm.data.references import as_json
from noetlvm.server.active import Ending
from noetlvm.server.recovery import recovered

if TYPE_CHECKING:
    from noetlvm.store.interface import Execution, StoreReader


def show(
    execution: LatestExecution = None, db: Database = None, server: ServerUrl = None, as_json_text: Json = False
) -> int:
    """Show one execution: its steps, its result, its first failure.

    Example: noetlvm show 0190f3c2
    """
    with reading(db, server) as reader:
        row = find_execution(reader, execution)
        ending = standing(reader, row)
        if as_json_text:
            print(as_json(row_data(row) | {name: getattr(ending, name) for name in ("ctx", "result", "failures")}))
            return 0
        for line in summary(row, ending, first_failure(reader, ending), None):
            print(line)
        print()
        print_table(_steps(reader, row))
        for child in reader.executions(parent=row.execution_id):
            print(visible(f"child {child.execution_id}: {child.path}, {child.status}"))
    return 0


def standing(reader: StoreReader, row: Execution) -> Ending:
    """Return the ending of an execution, or its current state."""
    state = recovered(reader, row.execution_id, row.bundle)
    return Ending.of(row.execution_id, row.status, state)


def _steps(reader: StoreReader, row: Execution) -> Table:
    progress = Progress(row.name)
    for recorded in reader.events(row.execution_id):
        for _ in progress.observe(recorded):
            pass
    columns = ("run", "step", "status", "time", "iterations", "tasks", "retries")
    cells = [(str(number), *_cells(progress, run)) for number, run in progress.runs.items()]
    return Table("Step runs", columns, cells)


def _cells(progress: Progress, run: StepProgress) -> tuple[str, ...]:
    items = f"{run.done - run.failed:,} ok, {run.failed:,} failed of {run.total:,}" if run.total else ""
    spent = duration((run.ended or progress.now) - run.started)
    return run.step, run.status, spent, items, str(run.tasks), str(run.retries or "")
