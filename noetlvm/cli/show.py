"""`noetlvm show`: one execution, its steps and failures, or what the tasks of one step did."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote
from typing import TYPE_CHECKING, Annotated

from noetlvm.cli.data_text import Table, print_table
from noetlvm.cli.database import find_execution, options_given, reading, with_standing
from noetlvm.cli.list import row_data
from noetlvm.cli.request import Database, Json, LatestExecution, ServerUrl
from noetlvm.cli.task_attempts import attempt_lines, attempts_of
from noetlvm.cli.view import Progress, StepProgress, first_failure, summary
from noetlvm.command_line.declared import Option
from noetlvm.command_line.printed import duration, visible
from noetlvm.command_line.process import SUCCESS, CommandError
from noetlvm.data.references import as_json
from noetlvm.rounds.active import Ending
from noetlvm.rounds.recovery import recovered

if TYPE_CHECKING:
    from noetlvm.store.interface import Execution, StoreReader


def show(
    execution: LatestExecution = None,
    step: Annotated[
        str | None, Option(metavar="STEP", help="Show inputs, results and printed output of this step's tasks.")
    ] = None,
    iteration: Annotated[
        str | None, Option(metavar="INDEX", help="With --step: only this iteration, such as 3 or 3.1.")
    ] = None,
    db: Database = None,
    server: ServerUrl = None,
    as_json_text: Json = False,
) -> int:
    """Show one execution: steps, result and failures; or the tasks of one step.

    Examples: noetlvm show 0190f3c2, noetlvm show --step fetch --iteration 3
    """
    options = options_given(db, server)
    with reading(db, server) as reader:
        (row,) = with_standing([find_execution(reader, execution, options)], db, server)
        if step is not None:
            return _show_step(reader, row, step, iteration, as_json_text)
        if iteration is not None:
            raise CommandError("--iteration needs --step, which names the step of the loop")
        ending = standing(reader, row)
        if as_json_text:
            print(as_json(row_data(row) | {name: getattr(ending, name) for name in ("ctx", "result", "failures")}))
            return SUCCESS
        for line in summary(row, ending, first_failure(reader, ending), None, options):
            print(line)
        print()
        progress = _progress(reader, row)
        print_table(_steps(progress))
        for line in _failed_iterations(progress, row, options):
            print(visible(line))
        for child in reader.executions(parent=row.execution_id):
            print(visible(f"child {child.execution_id}: {child.path}, {child.status}"))
    return SUCCESS


def _show_step(reader: StoreReader, row: Execution, step: str, iteration: str | None, is_json: bool) -> int:
    attempts = attempts_of(reader.events(row.execution_id), step, iteration)
    if is_json:
        for attempt in attempts:
            print(as_json(attempt._asdict()))
        return SUCCESS
    if not attempts:
        known = ", ".join(dict.fromkeys(run.step for run in _progress(reader, row).runs.values())) or "none"
        where = f"`{step}[{iteration}]`" if iteration else f"`{step}`"
        raise CommandError(f"no task of {where} has started in {row.execution_id}; steps that ran: {known}")
    for line in attempt_lines(attempts):
        print(visible(line))
    return SUCCESS


def standing(reader: StoreReader, row: Execution) -> Ending:
    """Return the ending of an execution, or its current state."""
    state = recovered(reader, row.execution_id, row.bundle)
    return Ending.of(row.execution_id, row.status, state)


def _progress(reader: StoreReader, row: Execution) -> Progress:
    progress = Progress(row.name)
    for recorded in reader.events(row.execution_id):
        for _ in progress.observe(recorded):
            pass
    return progress


def _failed_iterations(progress: Progress, row: Execution, options: str) -> Iterator[str]:
    for run in progress.runs.values():
        for iteration, message in run.failures:
            yield f"{run.step}[{iteration}] failed: {message}"
        if run.failed > len(run.failures):
            yield f"{run.step}: {run.failed - len(run.failures):,} more failed"
        if run.failures:
            place = f"--step {quote(run.step)} --iteration {run.failures[0][0]}"
            yield f"  what it was given: noetlvm show {row.execution_id} {place}{options}"


def _steps(progress: Progress) -> Table:
    columns = ("run", "step", "status", "time", "iterations", "tasks", "retries")
    cells = [(str(number), *_cells(progress, run)) for number, run in progress.runs.items()]
    return Table("Step runs", columns, cells)


def _cells(progress: Progress, run: StepProgress) -> tuple[str, ...]:
    items = f"{run.done - run.failed:,} ok, {run.failed:,} failed of {run.total:,}" if run.total else ""
    spent = duration((run.ended or progress.now) - run.started)
    return run.step, run.status, spent, items, str(run.tasks), str(run.retries or "")
