"""What commands draw on a terminal with rich, which is loaded for nothing else: the live view of a run, and tables."""

from __future__ import annotations

from time import time
from typing import Self

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.live import Live as RichLive
from rich.table import Table as RichTable

from noetlvm.cli.data_text import Table
from noetlvm.cli.view import COLUMNS, NARROW, NARROW_COLUMNS, OTHER_ROWS, STYLES, Progress, Quiet, StepProgress, cells
from noetlvm.command_line.printed import visible


class Live(Quiet):
    """Redraws a live table."""

    def __init__(self) -> None:
        super().__init__()
        self.console = Console(stderr=True, markup=False)
        self._live = RichLive(console=self.console, get_renderable=self._table, refresh_per_second=8, transient=True)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._live.stop()

    def say(self, text: str) -> None:
        self.console.print(visible(f"noetlvm: {text}"))

    def _table(self) -> RichTable:
        columns = COLUMNS if self.console.width >= NARROW else NARROW_COLUMNS
        table = RichTable(box=SIMPLE_HEAD)
        for column in columns:
            # A long name gives way to the numbers.
            table.add_column(column, no_wrap=True, max_width=self.console.width // 4 if column == "step" else None)
        for progress, run in self._shown():
            row = cells(progress, run, time())
            table.add_row(*(visible(row[column]) for column in columns), style=STYLES.get(run.status))
        return table

    def _shown(self) -> list[tuple[Progress, StepProgress]]:
        """Return the step runs that there is room for: those that run, and the latest that have ended."""
        runs = [(progress, run) for progress in list(self.executions.values()) for run in list(progress.runs.values())]
        ended = [id(run) for _, run in runs if run.ended is not None]
        hidden = set(ended[: max(0, len(runs) - max(1, self.console.height - OTHER_ROWS))])
        return [(progress, run) for progress, run in runs if id(run) not in hidden]


def draw_table(table: Table) -> None:
    grid = RichTable(title=table.title, title_justify="left", box=SIMPLE_HEAD)
    for at, column in enumerate(table.columns):
        # The first column is what one copies, an identifier or a name: others give way to it.
        width = max(len(row[at]) for row in (table.columns, *table.rows)) if at == 0 else None
        grid.add_column(column, min_width=width)
    for row in table.rows:
        grid.add_row(*row)
    Console(markup=False).print(grid)
