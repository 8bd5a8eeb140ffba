"""The outcome that SQL tools share: rows as mappings, bounded in size, for one statement or several."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from noetlvm.limits import TOOL_OUTPUT_BYTES_MAX
from noetlvm.tools.call import Outcome, ok, too_large
from noetlvm.tools.inputs import InputError, plain, size_of

RESULT = (
    "`{rows, columns, row_count}` of the last statement; `rows` are mappings, in which a second column `id` is `id_2`; "
    "of several statements, `statements` has these fields for each"
)
RESULT_FIELDS = ("rows", "columns", "row_count", "statements")

ROWS = "Rows to run the statement for, each a list or a mapping of parameters: a bulk insert in one task."


class StatementResults:
    """Collects the results of statements until they are too large together."""

    def __init__(self) -> None:
        self._statements: list[dict[str, Any]] = []
        self._columns: list[str] = []
        self._size = 0

    def begin(self, columns: Sequence[str], row_count: int = 0) -> None:
        """Begin the result of the next statement; `row_count` is the number of rows that it changed."""
        self._columns = distinct(columns)
        count = 0 if columns else max(row_count, 0)
        self._statements.append({"rows": [], "columns": self._columns, "row_count": count})

    def add(self, rows: Iterable[Sequence[Any]]) -> bool:
        """Add rows to the current statement's result; False: the results are too large, and no more are needed."""
        current = self._statements[-1]
        for row in rows:
            current["rows"].append(dict(zip(self._columns, map(plain, row), strict=True)))
            current["row_count"] += 1
            self._size += size_of(current["rows"][-1])
            if self._size > TOOL_OUTPUT_BYTES_MAX:
                return False
        return True

    def outcome(self) -> Outcome:
        """Return `{rows, columns, row_count}` of the last statement, and `statements` if there are several."""
        if self._size > TOOL_OUTPUT_BYTES_MAX:
            return too_large("the result of the command", TOOL_OUTPUT_BYTES_MAX)
        if not self._statements:
            raise InputError("`command` has no statement")
        last = self._statements[-1]
        return ok(last if len(self._statements) == 1 else {**last, "statements": self._statements})


def statement_text(command: str | list[Any]) -> str:
    """Return SQL as one text; the statements of a list run in order. Raises InputError."""
    texts = [command] if isinstance(command, str) else command
    for at, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(f"`command[{at}]` must be text")
    statements = [text.strip().rstrip(";") for text in texts if text.strip().rstrip(";")]
    if not statements:
        raise InputError("`command` has no statement")
    return statements[0] if len(statements) == 1 else ";\n".join(statements)


def checked_rows(rows: list[Any]) -> list[Any]:
    """Return the rows of a bulk insert. Raises InputError."""
    for at, row in enumerate(rows):
        if not isinstance(row, list | dict) or isinstance(row, list) != isinstance(rows[0], list):
            raise InputError(
                f"`rows[{at}]` must be a {'list' if isinstance(rows[0], list) else 'mapping'}, as the first"
            )
    return rows


def distinct(columns: Sequence[str]) -> list[str]:
    """Return column names without duplicates: a mapping would lose the first of two `id`, so the second is `id_2`."""
    found: list[str] = []
    for name in columns:
        number, unique = 1, name
        while unique in found or (number > 1 and unique in columns):
            number += 1
            unique = f"{name}_{number}"
        found.append(unique)
    return found
