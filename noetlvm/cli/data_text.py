"""Data of executions as text: JSON for programs, and one short line for people."""

from __future__ import annotations

import sys
from typing import Any

from noetlvm.command_line.printed import cut, visible
from noetlvm.data.references import Reference, as_json
from noetlvm.record import Record


def shortened(value: Any, most: int = 100) -> str:
    """Return JSON on one line, cut where it becomes long."""
    if isinstance(value, Reference):
        return f"<{value.hint}, {value.size:,} bytes, stored as {value.key[:12]}>"
    return cut(visible(as_json(value)), most)


class Table(Record):
    title: str
    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]


def print_table(table: Table) -> None:
    shown = Table(table.title, table.columns, [tuple(map(visible, row)) for row in table.rows])
    show = _print_rich if sys.stdout.isatty() else _print_plain
    show(shown)


def _print_plain(table: Table) -> None:
    widths = [max(len(cell) for cell in column) for column in zip(table.columns, *table.rows, strict=True)]
    for row in (table.columns, *table.rows):
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    print()


def _print_rich(table: Table) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table as RichTable

    grid = RichTable(title=table.title, title_justify="left", box=SIMPLE_HEAD)
    for at, column in enumerate(table.columns):
        # The first column is what one copies, an identifier or a name: others give way to it.
        width = max(len(row[at]) for row in (table.columns, *table.rows)) if at == 0 else None
        grid.add_column(column, min_width=width)
    for row in table.rows:
        grid.add_row(*row)
    Console(markup=False).print(grid)
