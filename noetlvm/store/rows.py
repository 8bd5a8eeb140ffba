"""Rows of the stores: checked and encoded before a write, read back, and the SQL that both databases share."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from types import NoneType
from typing import Any, NamedTuple

from noetlvm.data.encoding import decode, encode
from noetlvm.store.chunks import REMEDY, UNREADABLE, Chunk, encoded_chunks, has_types, is_time
from noetlvm.store.interface import (
    PAGE_ROWS,
    Action,
    Append,
    CatalogueEntry,
    DamagedError,
    Execution,
    ExecutionRequest,
    QueuedCommand,
    Snapshot,
    StoredToken,
    StoreError,
)


class EncodedAppend(NamedTuple):
    """An append that was checked, with everything encoded: writing it can only fail for reasons of the medium."""

    execution: Execution
    known_seq: int
    chunks: list[Chunk]
    """Its events."""
    references: set[str]
    """Keys of stored results that the events refer to."""
    opened: Sequence[QueuedCommand]
    closed: Sequence[QueuedCommand]
    acknowledged: Sequence[int]
    sent: list[tuple[str, str, bytes]]
    """Target, action and encoded data of requests."""
    snapshot: Snapshot | None
    """Its data are bytes."""
    start_key: str


def encoded_batch(batch: Sequence[Append]) -> list[EncodedAppend]:
    """Check and encode a batch. Raises ValueError, UnencodableError, or StoreError for an event that is too large."""
    encoded = [_encoded(append) for append in batch]
    if len(encoded) > 1 and len({append.execution.execution_id for append in encoded}) < len(encoded):
        raise ValueError("a batch holds at most one append per execution")
    return encoded


def _encoded(append: Append) -> EncodedAppend:
    execution, known_seq, events, opened, closed, acknowledged, sent, snapshot, start_key = append
    if execution.seq != known_seq + len(events):
        raise ValueError(
            f"{execution.execution_id}: the row has event {execution.seq}, "
            f"but {len(events)} events after {known_seq} were given"
        )
    if not execution.seq:
        raise ValueError(f"{execution.execution_id}: an execution begins with an event")
    if start_key and known_seq:
        raise ValueError(f"{execution.execution_id} exists already, and gets no start key")
    references: set[str] = set()
    chunks = encoded_chunks(events, known_seq, references)
    if closed and opened and not {command[:3] for command in opened}.isdisjoint([command[:3] for command in closed]):
        leases = {command.part: command.lease for command in closed}
        opened = [command for command in opened if leases.get(command.part, -1) < command.lease]
        replaced = {command.part for command in opened}  # opening removes the older lease by itself
        closed = [command for command in closed if command.part not in replaced]
    if snapshot is not None:
        if not 0 < snapshot.seq <= execution.seq:
            raise ValueError(f"{execution.execution_id} has no event {snapshot.seq} that a snapshot could follow")
        snapshot = snapshot._replace(data=encode(snapshot.data))
    messages = [(request.execution_id, request.action, encode(request.data)) for request in sent]
    return EncodedAppend(
        execution, known_seq, chunks, references, opened, closed, acknowledged, messages, snapshot, start_key
    )


def counts_text(counts: Mapping[str, int]) -> str:
    """Return counts as JSON. Their names are plain words; each write does it, and `json` takes three times as long."""
    return "{" + ", ".join([f'"{name}": {count}' for name, count in counts.items()]) + "}"


# ---- reading what may be damaged

_NUMBER, _OPTIONAL_NUMBER = (float, int), (float, int, NoneType)
_EXECUTION_TYPES = (str, str, str, str, str, _NUMBER, _OPTIONAL_NUMBER, str, dict, int, _OPTIONAL_NUMBER, str)


def read_execution(where: str, row: Sequence[Any]) -> Execution:
    """Return the row of an execution with times that can be shown. Raises DamagedError."""
    execution = parsed_execution(where, row)
    for time in (execution.started, execution.ended):
        if time is not None and not is_time(time):
            raise DamagedError(f"{where}: the row of execution {row[0]!r} is damaged: {time} is not a time; {REMEDY}")
    return execution


def parsed_execution(where: str, row: Sequence[Any]) -> Execution:
    """Return the row of an execution, whose counts are JSON. Raises DamagedError."""
    try:
        execution = Execution._make((*row[:8], json.loads(row[8]), *row[9:]))
        if has_types(execution, _EXECUTION_TYPES):
            return execution
        problem = "a column has another type"
    except UNREADABLE as error:
        problem = f"its counts cannot be decoded ({error})"
    raise DamagedError(f"{where}: the row of execution {row[0]!r} is damaged: {problem}; {REMEDY}")


def read_data(where: str, what: str, data: Any) -> Any:
    """Return the decoded data of a row. Raises DamagedError."""
    try:
        return decode(data)
    except UNREADABLE as problem:
        raise DamagedError(f"{where}: {what} cannot be decoded ({problem}); {REMEDY}") from problem


# ---- errors of all stores


def require_open(execution: Execution | None, execution_id: str, action: str) -> None:
    """Raise StoreError unless there is something to pause, resume or cancel."""
    if execution is None:
        raise StoreError(f"there is no execution {execution_id}; `noetlvm list` shows all")
    if execution.ended is not None:
        raise StoreError(f"execution {execution_id} has ended ({execution.status}): there is nothing to {action}")


def cursor_gone(execution_id: str) -> StoreError:
    """Return the error for a page that continues after a deleted execution."""
    return StoreError(f"the execution {execution_id}, which ended the page before, was deleted; list from the start")


# ---- statements that both databases share

EXECUTION = "execution_id, bundle, name, path, status, started, ended, parent, counts, seq, due, trace"
ENTRY = "path, version, bundle, registered"
INSERT_REQUEST = "INSERT INTO requests (execution_id, action, data) VALUES (?, ?, ?)"
_ALL = 2**63 - 1
"""The limit of a query that has none."""


class SqlReader(ABC):
    """Reads tables of the same names and columns in SQLite and PostgreSQL. Marks of values are SQLite's."""

    _where: str
    """The database, in messages."""

    @abstractmethod
    def _select(self, statement: str, *values: Any) -> list[Any]:
        """Return the rows of a query."""

    # ---- catalogue

    def bundle(self, bundle: str) -> bytes | None:
        for (data,) in self._select("SELECT data FROM bundles WHERE bundle = ?", bundle):
            if not isinstance(data, bytes):
                raise DamagedError(f"{self._where}: the bundle {bundle} is damaged: its data is not binary; {REMEDY}")
            return data
        return None

    def resolve(self, path: str, version: int | None = None) -> CatalogueEntry | None:
        found = self._entries({"path = ?": path, "version = ?": version}, 1)
        return found[0] if found else None

    def versions(self, path: str, *, before: int | None = None, limit: int = PAGE_ROWS) -> list[CatalogueEntry]:
        return self._entries({"path = ?": path, "version < ?": before}, limit)

    def _entries(self, wanted: dict[str, Any], limit: int) -> list[CatalogueEntry]:
        where, values = _conditions(wanted)
        select = f"SELECT {ENTRY} FROM playbooks{where} ORDER BY version DESC LIMIT ?"
        return [CatalogueEntry._make(row) for row in self._select(select, *values, limit)]

    # ---- executions

    def execution(self, execution_id: str) -> Execution | None:
        found = self._executions(" WHERE execution_id = ?", execution_id)
        return found[0] if found else None

    def find(self, text: str, limit: int) -> list[Execution]:
        exact = self.execution(text)
        if exact is not None:
            return [exact]
        begins, ends = "substr(execution_id, 1, ?) = ?", "substr(execution_id, length(execution_id) + 1 - ?) = ?"
        size = len(text)
        return self._executions(f" WHERE {begins} OR {ends} ORDER BY key DESC LIMIT ?", size, text, size, text, limit)

    def executions(
        self,
        *,
        status: str | None = None,
        path: str | None = None,
        parent: str | None = None,
        before: str | None = None,
        limit: int | None = None,
    ) -> list[Execution]:
        wanted: dict[str, Any] = {"status = ?": status, "path = ?": path, "parent = ?": parent}
        if before is not None:
            wanted["key < ?"] = self._key(before)
            if not wanted["key < ?"]:
                raise cursor_gone(before)
        where, values = _conditions(wanted)
        return self._executions(f"{where} ORDER BY key DESC LIMIT ?", *values, _limit(limit))

    def _key(self, execution_id: str) -> int:
        """Return the key of an execution; 0: there is none."""
        found = self._select("SELECT key FROM executions WHERE execution_id = ?", execution_id)
        return int(found[0][0]) if found else 0

    def descendants(self, trace: str) -> int:
        return int(self._select("SELECT count(*) FROM executions WHERE trace = ? AND trace <> ''", trace)[0][0])

    def unfinished(self, limit: int | None = None) -> list[Execution]:
        return self._executions(" WHERE ended IS NULL ORDER BY key LIMIT ?", _limit(limit))

    def due(self, now: float, limit: int = PAGE_ROWS) -> list[Execution]:
        return self._executions(" WHERE due <= ? ORDER BY due, key LIMIT ?", now, limit)

    def _executions(self, condition: str, *values: Any) -> list[Execution]:
        rows = self._select(f"SELECT {EXECUTION} FROM executions{condition}", *values)
        return [read_execution(self._where, row) for row in rows]

    def _requests(self, condition: str, *values: Any, limit: int | None) -> list[ExecutionRequest]:
        select = f"SELECT execution_id, action, data, number FROM requests WHERE {condition} ORDER BY number LIMIT ?"
        return [
            ExecutionRequest(target, action, read_data(self._where, f"request {number}", data), number)
            for target, action, data, number in self._select(select, *values, _limit(limit))
        ]

    def started(self, start_key: str) -> str | None:
        found = self._select("SELECT execution_id FROM start_keys WHERE start_key = ?", start_key)
        return found[0][0] if found else None


class SqlWriter(SqlReader):
    """Writes the rows that no decision depends on: any process may, while others decide."""

    @abstractmethod
    def _change(self, statement: str, *values: Any) -> int:
        """Perform one statement, durably; return how many rows it changed."""

    def request(self, execution_id: str, action: Action) -> None:
        require_open(self.execution(execution_id), execution_id, action)
        self._change(INSERT_REQUEST, execution_id, action, encode(None))

    def put_token(self, token: StoredToken) -> None:
        values = (token.id, token.digest, ",".join(token.scopes), token.created, token.revoked)
        self._change("INSERT INTO tokens VALUES (?, ?, ?, ?, ?)", *values)

    def token(self, id: str) -> StoredToken | None:
        return next(iter(self._tokens("WHERE id = ?", id)), None)

    def tokens(self) -> list[StoredToken]:
        return self._tokens("ORDER BY created, id")

    def _tokens(self, condition: str, *values: Any) -> list[StoredToken]:
        rows = self._select(f"SELECT id, digest, scopes, created, revoked FROM tokens {condition}", *values)
        return [StoredToken(id, digest, tuple(scopes.split(",")), *times) for id, digest, scopes, *times in rows]

    def revoke_token(self, id: str, now: float) -> bool:
        return bool(self._change("UPDATE tokens SET revoked = coalesce(revoked, ?) WHERE id = ?", now, id))


def _conditions(wanted: dict[str, Any]) -> tuple[str, list[Any]]:
    """Return the conditions that have a value, as text, and their values."""
    given = {condition: value for condition, value in wanted.items() if value is not None}
    return f" WHERE {' AND '.join(given)}" if given else "", list(given.values())


def _limit(limit: int | None) -> int:
    return _ALL if limit is None else limit
