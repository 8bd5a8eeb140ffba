"""Which database a command works on, and how it is opened: to write, to read, or to find one execution in it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, cast

from noetlvm.cli.remote import remote_client, uses_server
from noetlvm.command_line.process import CommandError
from noetlvm.nearest import nearest
from noetlvm.results.files import FileResults
from noetlvm.store.sqlite import SqliteReader, SqliteStore
from noetlvm.store.writer_lock import is_locked

if TYPE_CHECKING:
    from noetlvm.client.reader import RemoteReader
    from noetlvm.results.postgres import PostgresResults
    from noetlvm.store.interface import Durability, Execution, StoreReader
    from noetlvm.store.postgres import PostgresStore

VARIABLE = "NOETLVM_DB"
STOPPED = "stopped"
"""Status of an execution that has not ended and that no process runs."""
_NAMED = 3
"""Executions that are named where an identifier is not clear."""
_SLIPS = 2
"""Typing slips in an identifier; more would confuse the identifiers of one hour, which begin alike."""


def database_path(given: str | None) -> Path:
    """Return the file that was given, else the environment's, else the one in the user's state folder."""
    named = given or os.environ.get(VARIABLE)
    if named:
        return Path(named)
    state = os.environ.get("XDG_STATE_HOME")
    return (Path(state) if state else Path.home() / ".local" / "state") / "noetlvm" / "executions.db"


@contextmanager
def writing(path: Path, durability: Durability = "full") -> Iterator[SqliteStore]:
    """Open or create a database for writing. Only one process at a time may."""
    store = SqliteStore(path, durability)
    try:
        yield store
    finally:
        store.close()


@contextmanager
def opened_postgres(name: str) -> Iterator[tuple[PostgresStore, PostgresResults]]:
    """Open the store of a service on PostgreSQL, with its results, beside the servers that run on it."""
    from noetlvm.results.postgres import PostgresResults
    from noetlvm.service.process import POSTGRESQL
    from noetlvm.store.postgres import PostgresStore

    if not name.startswith(POSTGRESQL):
        raise CommandError("--store takes postgresql://…; for a service on SQLite, stop it and give --db FILE")
    with closing(PostgresStore(name)) as store:
        yield store, PostgresResults(store.database)


@contextmanager
def reading(given: str | None, server: str | None = None) -> Iterator[StoreReader]:
    """Open a database, or a server, for reading, even while another process writes."""
    with reading_results(given, server) as (reader, _):
        yield reader


@contextmanager
def reading_results(given: str | None, server: str | None) -> Iterator[tuple[StoreReader, Callable[[str], bytes]]]:
    """The same, with what reads the bytes of a stored result by its key."""
    if uses_server(given, server):
        with remote_reading(server) as remote:
            yield cast("StoreReader", remote), remote.result
        return
    path = database_path(given)
    with closing(SqliteReader(path)) as reader:
        yield reader, results_of(path).get


@contextmanager
def remote_reading(server: str | None, token_file: str | None = None) -> Iterator[RemoteReader]:
    """Open a server for reading; what it refuses is an error of the command."""
    from noetlvm.client import ServiceError, reader

    with closing(reader.RemoteReader(remote_client(server, token_file))) as opened:
        try:
            yield opened
        except ServiceError as error:
            raise CommandError(str(error)) from None


def options_given(db: str | None, server: str | None = None) -> str:
    """Return the options that a suggested command needs to find the same executions."""
    if server is not None:
        return f" --server {quote(server)}"
    return f" --db {quote(db)}" if db is not None else ""


def with_standing(rows: Sequence[Execution], db: str | None, server: str | None) -> list[Execution]:
    """Return rows with their current status: an execution that no process runs is `stopped`, not running."""
    if not any(row.status == "running" for row in rows) or uses_server(db, server):
        return list(rows)
    if is_locked(database_path(db)):
        return list(rows)
    return [row._replace(status=STOPPED) if row.status == "running" else row for row in rows]


def results_of(path: Path, durability: Durability = "full") -> FileResults:
    return FileResults.of_database(path, durability)


def find_execution(reader: StoreReader, text: str | None, options: str = "") -> Execution:
    """Return the execution that an identifier, or its beginning or end, names; without one, the latest.

    `options` are those that a suggested command repeats.
    """
    if text is None:
        latest = [row for row in reader.executions(limit=20) if not row.parent] or reader.executions(limit=1)
        if not latest:
            raise CommandError(f"the database has no execution yet; `noetlvm run playbook.yaml{options}` makes one")
        return latest[0]
    found = reader.find(text, _NAMED + 1)
    if len(found) == 1:
        return found[0]
    if found:
        several = f"{len(found)}" if len(found) <= _NAMED else f"more than {_NAMED}"
        ids = ", ".join(row.execution_id for row in found[:_NAMED]) + (", …" if len(found) > _NAMED else "")
        raise CommandError(f"`{text}` may be any of {several} executions; write more of the identifier: {ids}")
    raise CommandError(f"there is no execution `{text}`; {_hint(reader, text, options)}")


def _hint(reader: StoreReader, text: str, options: str) -> str:
    """Return what was probably meant: an identifier that is nearly the same, or a playbook's latest execution."""
    rows = reader.executions()
    for row in rows:
        if text in (row.name, row.path):
            return f"the latest of `{text}` is {row.execution_id}"
    near = nearest(text, [row.execution_id for row in rows], slips=_SLIPS)
    return f"did you mean `{near}`?" if near else f"`noetlvm list{options}` lists the executions"
