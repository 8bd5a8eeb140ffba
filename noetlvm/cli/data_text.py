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
    if not sys.stdout.isatty():
        _print_plain(shown)
        return
    from noetlvm.cli.terminal import draw_table

    draw_table(shown)


def _print_plain(table: Table) -> None:
    widths = [max(len(cell) for cell in column) for column in zip(table.columns, *table.rows, strict=True)]
    for row in (table.columns, *table.rows):
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    print()
