"""`noetlvm result`: prints a result, also one that is too large for the log and is stored elsewhere."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any

from noetlvm.cli.database import database_path, find_execution, reading, results_of
from noetlvm.cli.request import Database
from noetlvm.command_line.declared import Argument, Option
from noetlvm.command_line.process import SUCCESS, CommandError
from noetlvm.data.references import Reference

if TYPE_CHECKING:
    from noetlvm.results.files import FileResults

KEY_CHARS = 64
"""Of a stored result's key: the SHA-256 of its bytes."""


def result(
    name: Annotated[
        str | None,
        Argument(metavar="[EXECUTION|KEY]", help="Execution, or the key of a stored result. [default: the latest]"),
    ] = None,
    step: Annotated[str | None, Option(metavar="STEP", help="Result of the last run of this step.")] = None,
    db: Database = None,
) -> int:
    """Print the result of an execution, of one of its steps, or of a stored reference, as JSON.

    Examples: noetlvm result, noetlvm result 0190f3c2 --step fetch, noetlvm result 3fa9…64 hexadecimal digits
    """
    results = results_of(database_path(db))
    if name is not None and len(name) == KEY_CHARS and set(name) <= set("0123456789abcdef"):
        _print(_stored(results, name), results)
        return SUCCESS
    from noetlvm.server.recovery import recovered

    with reading(db) as reader:
        row = find_execution(reader, name)
        state = recovered(reader, row.execution_id, row.bundle)
    if step is not None and step not in state.results:
        known = ", ".join(state.results) or "none"
        raise CommandError(f"no run of `{step}` has ended in {row.execution_id}; steps with a result: {known}")
    _print(state.result if step is None else state.results[step], results)
    return SUCCESS


def _print(value: Any, results: FileResults) -> None:
    """Print JSON piece by piece: the text of a large result is never in memory as a whole."""
    if type(value) is Reference:
        value = _stored(results, value.key)
    encoder = json.JSONEncoder(ensure_ascii=False, default=lambda part: _part(part, results))
    for piece in encoder.iterencode(value):
        sys.stdout.write(piece)
    print(flush=True)


def _part(part: Any, results: FileResults) -> Any:
    """Return what stands for a part that JSON cannot hold: a stored one is read when its turn comes."""
    return _stored(results, part.key) if type(part) is Reference else str(part)


def _stored(results: FileResults, key: str) -> Any:
    from noetlvm.data.encoding import decode
    from noetlvm.results.interface import ResultMissingError

    try:
        return decode(results.get(key))
    except ResultMissingError as problem:
        raise CommandError(str(problem)) from None
