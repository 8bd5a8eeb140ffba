"""`noetlvm result`: prints a result, also one that is too large for the log and is stored elsewhere."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Annotated, Any, TypeAlias

from noetlvm.cli.database import find_execution, options_given, reading_results
from noetlvm.cli.request import Database, ServerUrl
from noetlvm.command_line.declared import Argument, Option
from noetlvm.command_line.process import SUCCESS, CommandError
from noetlvm.data.encoding import decode
from noetlvm.data.references import Reference
from noetlvm.rounds.recovery import recovered

Fetch: TypeAlias = Callable[[str], bytes]

KEY_CHARS = 64
"""Of a stored result's key: the SHA-256 of its bytes."""


def result(
    name: Annotated[
        str | None,
        Argument(metavar="[EXECUTION|KEY]", help="Execution, or the key of a stored result. [default: the latest]"),
    ] = None,
    step: Annotated[str | None, Option(metavar="STEP", help="Result of the last run of this step.")] = None,
    db: Database = None,
    server: ServerUrl = None,
) -> int:
    """Print the result of an execution, of one of its steps, or of a stored reference, as JSON.

    Examples: noetlvm result, noetlvm result 0190f3c2 --step fetch, noetlvm result 3fa9…64 hexadecimal digits
    """
    with reading_results(db, server) as (reader, fetch):
        if name is not None and len(name) == KEY_CHARS and set(name) <= set("0123456789abcdef"):
            _print(_stored(fetch, name), fetch)
            return SUCCESS
        row = find_execution(reader, name, options_given(db, server))
        state = recovered(reader, row.execution_id, row.bundle)
        if step is not None and step not in state.results:
            known = ", ".join(state.results) or "none"
            raise CommandError(f"no run of `{step}` has ended in {row.execution_id}; steps with a result: {known}")
        _print(state.result if step is None else state.results[step], fetch)
    return SUCCESS


def _print(value: Any, fetch: Fetch) -> None:
    """Print JSON piece by piece: the text of a large result is never in memory as a whole."""

    def part(found: Any) -> Any:
        """Return what JSON can hold: a stored part is read when it is reached."""
        return _stored(fetch, found.key) if type(found) is Reference else str(found)

    for piece in json.JSONEncoder(ensure_ascii=False, default=part).iterencode(value):
        sys.stdout.write(piece)
    print(flush=True)


def _stored(fetch: Fetch, key: str) -> Any:
    try:
        return decode(fetch(key))
    except LookupError as problem:
        raise CommandError(str(problem)) from None
