"""The outcome that SQL tools share: rows as mappings, with no more in them than a result may hold."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from noetlvm.limits import TOOL_OUTPUT_BYTES_MAX
from noetlvm.tools.call import Outcome, ok, too_large
from noetlvm.tools.plain import plain, size_of


class Rows:
    """Rows that are gathered as they come."""

    def __init__(self, columns: Sequence[str]) -> None:
        self._columns = distinct(columns)
        self._found: list[dict[str, Any]] = []
        self._size = 0

    def add(self, rows: Iterable[Sequence[Any]]) -> bool:
        """Take rows; False: that is too much, and no more of them are wanted."""
        for row in rows:
            self._found.append(dict(zip(self._columns, map(plain, row), strict=True)))
            self._size += size_of(self._found[-1])
            if self._size > TOOL_OUTPUT_BYTES_MAX:
                return False
        return True

    def outcome(self, row_count: int) -> Outcome:
        """Return `{rows, columns, row_count}`, or an error if the rows are too large together.

        `row_count` is how many rows the statement changed; of a statement that gives rows it is how many those are.
        """
        if self._size > TOOL_OUTPUT_BYTES_MAX:
            return too_large("what the command gives", TOOL_OUTPUT_BYTES_MAX)
        count = len(self._found) if self._columns else max(row_count, 0)
        return ok({"rows": self._found, "columns": self._columns, "row_count": count})


def rows_outcome(columns: Sequence[str], rows: Iterable[Sequence[Any]], row_count: int) -> Outcome:
    """Return the outcome of all these rows."""
    gathered = Rows(columns)
    gathered.add(rows)
    return gathered.outcome(row_count)


def distinct(columns: Sequence[str]) -> list[str]:
    """Return names of columns, each different: a mapping would lose the first of two `id`, so the second is `id_2`."""
    found: list[str] = []
    for name in columns:
        number, told = 1, name
        while told in found or (number > 1 and told in columns):
            number += 1
            told = f"{name}_{number}"
        found.append(told)
    return found
