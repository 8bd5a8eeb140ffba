"""What a run shows while it goes on: a live table on a terminal, lines elsewhere, or nothing. All to standard error."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Self

from noetlvm.cli.data_text import duration
from noetlvm.cli.progress import Progress, StepProgress
from noetlvm.events.event import Recorded
from noetlvm.store.interface import Execution

_ROWS_MAX = 20
"""Step runs that a live table shows: those that run, and the latest that have ended."""

_STYLES = {"failed": "red", "done": "green", "running": "cyan"}


class Quiet:
    """Shows nothing, and counts."""

    def __init__(self) -> None:
        self.executions: dict[str, Progress] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        """Nothing is open."""

    def hear(self, execution: Execution, recorded: Sequence[Recorded]) -> None:
        """Take events that have become durable."""
        progress = self.executions.get(execution.execution_id)
        if progress is None:
            progress = self.executions[execution.execution_id] = Progress(execution.name)
        for one in recorded:
            for line in progress.hear(one):
                self.show_line(execution, line)

    def show_line(self, execution: Execution, line: str) -> None:
        """Show one line about an execution."""

    def say(self, text: str) -> None:
        """Tell the user something about the run as a whole."""
        _tell(f"noetlvm: {text}")


class Lines(Quiet):
    """Shows a line for each thing worth one."""

    def show_line(self, execution: Execution, line: str) -> None:
        whose = f"{execution.name}: " if execution.parent else ""
        _tell(f"{whose}{line}")


def _tell(line: str) -> None:
    with suppress(OSError):  # a run does not end because nobody looks at it any more
        print(line, file=sys.stderr, flush=True)


class Live(Quiet):
    """Shows a table that is drawn again and again."""

    def __init__(self) -> None:
        super().__init__()
        from rich.console import Console
        from rich.live import Live as RichLive

        self._live = RichLive(
            console=Console(stderr=True, markup=False), get_renderable=self._table, refresh_per_second=8, transient=True
        )

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._live.stop()

    def say(self, text: str) -> None:
        self._live.console.print(f"noetlvm: {text}")

    def _table(self) -> Any:
        from rich.box import SIMPLE_HEAD
        from rich.table import Table

        table = Table("step", "", "iterations", "tasks", "retries", "rate", "time", box=SIMPLE_HEAD)
        for progress in list(self.executions.values()):
            for run in _shown(progress):
                table.add_row(*_cells(progress, run), style=_STYLES.get(run.status))
        return table


def _shown(progress: Progress) -> list[StepProgress]:
    runs = list(progress.runs.values())
    ended = [run for run in runs if run.ended is not None]
    hidden = set(map(id, ended[: max(0, len(runs) - _ROWS_MAX)]))
    return [run for run in runs if id(run) not in hidden]


def _cells(progress: Progress, run: StepProgress) -> tuple[str, ...]:
    spent = (run.ended or progress.now) - run.started
    failed = f" ({run.failed} failed)" if run.failed else ""
    return (
        run.step,
        run.status if run.ended is not None or not run.at else f"{run.status}: {run.at}",
        f"{run.done:,}/{run.total:,}{failed}" if run.total else "",
        f"{run.tasks:,}",
        str(run.retries or ""),
        f"{progress.rate(run):,.0f}/s" if run.total else "",
        duration(spent),
    )


def view_for(*, shows: bool) -> Quiet:
    """Return the view for where standard error goes."""
    if not shows:
        return Quiet()
    return Live() if sys.stderr.isatty() else Lines()
