"""What a run shows while it lasts: a live table on a terminal, lines elsewhere, or nothing. All to standard error."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from time import time
from typing import Any, Self

from noetlvm.cli.progress import Progress, StepProgress
from noetlvm.command_line.printed import duration, visible
from noetlvm.data.event import Recorded
from noetlvm.store.interface import Execution, StoreReader

_OTHER_ROWS = 5
"""Rows of a terminal that a live table leaves to its head, its frame and the cursor."""
_NARROW = 72
"""Columns of a terminal below which only the columns are shown that matter most."""
_COLUMNS = ("step", "", "iterations", "tasks", "retries", "rate", "time")
_NARROW_COLUMNS = ("step", "", "iterations", "time")

_CANNOT_DRAW = ("dumb", "unknown")
_STYLES = {"failed": "red", "done": "green", "running": "cyan"}


class Quiet:
    """Shows nothing, and counts."""

    def __init__(self) -> None:
        self.executions: dict[str, Progress] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        """Nothing is open."""

    def observe(self, execution: Execution, recorded: Sequence[Recorded]) -> None:
        """Take events that have become durable."""
        progress = self.executions.get(execution.execution_id)
        if progress is None:
            progress = self.executions[execution.execution_id] = Progress(execution.name)
        for one in recorded:
            for line in progress.observe(one):
                self.show_line(execution, line)

    def recall(self, reader: StoreReader, execution_ids: Sequence[str]) -> None:
        """Count what happened in executions before this process continues them."""
        for execution_id in execution_ids:
            row = reader.execution(execution_id)
            if row is None:
                continue
            progress = self.executions[execution_id] = Progress(row.name)
            for recorded in reader.events(execution_id, 0, row.seq):
                for _ in progress.observe(recorded):
                    pass

    def show_line(self, execution: Execution, line: str) -> None:
        """Show one line about an execution."""

    def say(self, text: str) -> None:
        """Print a remark about the run as a whole."""
        _print_line(f"noetlvm: {text}")


class Lines(Quiet):
    """Shows a line for each thing worth one."""

    def show_line(self, execution: Execution, line: str) -> None:
        whose = f"{execution.name}: " if execution.parent else ""
        _print_line(f"{whose}{line}")


def _print_line(line: str) -> None:
    with suppress(OSError):  # a closed terminal must not end the run
        print(visible(line), file=sys.stderr, flush=True)


class Live(Quiet):
    """Shows a table that is drawn again and again."""

    def __init__(self) -> None:
        super().__init__()
        from rich.console import Console
        from rich.live import Live as RichLive

        self.console = Console(stderr=True, markup=False)
        self._live = RichLive(console=self.console, get_renderable=self._table, refresh_per_second=8, transient=True)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._live.stop()

    def say(self, text: str) -> None:
        self.console.print(visible(f"noetlvm: {text}"))

    def _table(self) -> Any:
        from rich.box import SIMPLE_HEAD
        from rich.table import Table

        columns = _COLUMNS if self.console.width >= _NARROW else _NARROW_COLUMNS
        table = Table(box=SIMPLE_HEAD)
        for column in columns:
            # A long name gives way to the numbers.
            table.add_column(column, no_wrap=True, max_width=self.console.width // 4 if column == "step" else None)
        for progress, run in self._shown():
            cells = _cells(progress, run, time())
            table.add_row(*(visible(cells[column]) for column in columns), style=_STYLES.get(run.status))
        return table

    def _shown(self) -> list[tuple[Progress, StepProgress]]:
        """Return the step runs that there is room for: those that run, and the latest that have ended."""
        runs = [(progress, run) for progress in list(self.executions.values()) for run in list(progress.runs.values())]
        ended = [id(run) for _, run in runs if run.ended is not None]
        hidden = set(ended[: max(0, len(runs) - max(1, self.console.height - _OTHER_ROWS))])
        return [(progress, run) for progress, run in runs if id(run) not in hidden]


def _cells(progress: Progress, run: StepProgress, now: float) -> dict[str, str]:
    spent = (run.ended or max(progress.now, now)) - run.started
    failed = f" ({run.failed} failed)" if run.failed else ""
    return {
        "step": run.step,
        "": run.status if run.ended is not None or not run.at else f"{run.status}: {run.at}",
        "iterations": f"{run.done:,}/{run.total:,}{failed}" if run.total else "",
        "tasks": f"{run.tasks:,}",
        "retries": str(run.retries or ""),
        "rate": f"{progress.rate(run):,.0f}/s" if run.total else "",
        "time": duration(spent),
    }


def view_for(*, shows: bool) -> Quiet:
    """Return the view for where standard error goes."""
    if not shows:
        return Quiet()
    return Live() if sys.stderr.isatty() and os.environ.get("TERM") not in _CANNOT_DRAW else Lines()
