"""The outcome that SQL tools share: rows as mappings, with no more in them than a result may hold."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from noetlvm.limits import TOOL_OUTPUT_BYTES_MAX
from noetlvm.tools.call import Outcome, ok, too_much
from noetlvm.tools.plain import plain, size_of


def rows_outcome(columns: list[str], rows: Iterable[Sequence[Any]], row_count: int, **parts: Any) -> Outcome:
    """Return `{rows, columns, row_count}`, or an error if the rows are too large together.

    `row_count` is how many rows the statement changed; of a statement that gives rows it is how many those are.
    """
    found: list[dict[str, Any]] = []
    size = 0
    for row in rows:
        found.append(dict(zip(columns, map(plain, row), strict=True)))
        size += size_of(found[-1])
        if size > TOOL_OUTPUT_BYTES_MAX:
            return too_much("what the command gives", TOOL_OUTPUT_BYTES_MAX)
    count = len(found) if columns else max(row_count, 0)
    return ok({"rows": found, "columns": columns, "row_count": count}, **parts)
