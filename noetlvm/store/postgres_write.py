"""The statement of a write: one for all executions of a batch, over arrays of columns, or the values of a single row.

Rows of executions are locked in the order of their identifiers, moved where they still have the known sequence number,
and only for those events, commands, requests and snapshots are written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import count
from struct import Struct
from typing import Any, NamedTuple

from noetlvm.store.chunks import summed
from noetlvm.store.postgres_schema import period_of
from noetlvm.store.rows import EXECUTION, EncodedAppend, counts_text

CHUNK = "seq, last, data, sum"
COMMAND = "run, unit, lease, step, pool, not_before, worker, until, attempts"


_head = Struct("!iiIii").pack
"""Dimensions, whether there are nulls, type of the elements, length, and lower bound."""
_length = Struct("!i").pack
_time = Struct("!d").unpack
_NULL = _length(-1)


class _Kind(NamedTuple):
    """A type of columns: its name and number, and how the elements of a column are written, each after its length.

    psycopg finds out the types of a list for each call, which costs a third of a write.
    """

    name: str
    number: int
    elements: Callable[[Sequence[Any]], list[bytes]]

    def value(self, value: Any) -> bytes | None:
        """Return the value of a single row in its binary form."""
        (element,) = self.elements((value,))
        return None if element == _NULL else element[4:]

    def column(self, values: Sequence[Any]) -> bytes:
        """Return a column of rows as an array of PostgreSQL, in its binary form."""
        elements = self.elements(values)
        return _head(1, _NULL in elements, self.number, len(values), 1) + b"".join(elements)


def _texts(values: Sequence[str | None]) -> list[bytes]:
    """Write texts. Most columns repeat a few."""
    known: dict[str | None, bytes] = {None: _NULL}
    for value in values:
        if value not in known:
            data = value.encode()  # type: ignore[union-attr]  # None is known
            known[value] = _length(len(data)) + data
    return [known[value] for value in values]


def _datas(values: Sequence[bytes]) -> list[bytes]:
    return [_length(len(value)) + value for value in values]


def _numbers(form: str) -> Callable[[Sequence[Any]], list[bytes]]:
    pack = Struct(form).pack
    return lambda values: [_NULL if value is None else pack(8, value) for value in values]


_TEXT = _Kind("text", 25, _texts)
_INT = _Kind("bigint", 20, _numbers("!iq"))
_FLOAT = _Kind("float8", 701, _numbers("!id"))
_BYTES = _Kind("bytea", 17, _datas)


class _Part(NamedTuple):
    """One part of the write: a clause of the statement, over the columns of rows that it takes as arrays."""

    kinds: tuple[_Kind, ...]
    clause: str

    def text(self, numbers: Iterator[int], is_single: bool) -> str:
        """Return the clause, with a numbered placeholder for each column.

        A step of a chain writes a single row of each part: as plain values they cost PostgreSQL half of what arrays do.
        """
        marks = [f"${next(numbers)}::{kind.name}" for kind in self.kinds]
        if is_single:
            return self.clause.format(rows=f"(VALUES ({', '.join(marks)}, 1))")
        return self.clause.format(rows=f"unnest({', '.join(f'{mark}[]' for mark in marks)}) WITH ORDINALITY")

    def values(self, rows: list[tuple[Any, ...]], is_single: bool) -> list[bytes | None]:
        """Return the values of the placeholders: those of a single row, or a column of rows each."""
        if is_single:
            return list(map(_Kind.value, self.kinds, rows[0]))
        return list(map(_Kind.column, self.kinds, zip(*rows, strict=True)))


_ROW_KINDS = (_TEXT, _TEXT, _TEXT, _TEXT, _TEXT, _FLOAT, _FLOAT, _TEXT, _TEXT, _INT, _FLOAT, _TEXT, _INT, _TEXT, _INT)
_ROW_COLUMNS = f"{EXECUTION}, known, start_key, period"

# In the clauses `{rows}` are the rows of the part, with the place of each, and `written` the executions that did not
# lose a race.
_EXECUTIONS = {
    "moved": _Part(
        _ROW_KINDS,
        f"""input AS (SELECT * FROM {{rows}} AS i({_ROW_COLUMNS}, place)),
        locked AS (SELECT key, i.* FROM executions e JOIN input i USING (execution_id)
            WHERE e.seq = i.known ORDER BY execution_id FOR UPDATE OF e),
        moved AS (UPDATE executions e
            SET status = l.status, ended = l.ended, counts = l.counts, seq = l.seq, due = l.due
            FROM locked l WHERE e.key = l.key RETURNING e.key, e.execution_id, e.period)""",
    ),
    "born": _Part(
        _ROW_KINDS,
        f"""new AS (SELECT * FROM {{rows}} AS i({_ROW_COLUMNS}, place)),
        keyed AS (INSERT INTO start_keys SELECT DISTINCT ON (start_key) start_key, execution_id FROM new
            WHERE start_key <> '' AND NOT EXISTS (SELECT 1 FROM executions e WHERE e.execution_id = new.execution_id)
            ORDER BY start_key ON CONFLICT DO NOTHING RETURNING execution_id),
        born AS (INSERT INTO executions ({EXECUTION}, period) SELECT {EXECUTION}, period FROM new
            WHERE start_key = '' OR execution_id IN (SELECT execution_id FROM keyed)
            ORDER BY execution_id ON CONFLICT DO NOTHING RETURNING key, execution_id, period)""",
    ),
}
_DEPENDENTS = {
    "chunks": _Part(
        (_TEXT, _INT, _INT, _BYTES, _INT),
        f"""INSERT INTO chunks (period, execution, {CHUNK}) SELECT period, key, {CHUNK}
        FROM {{rows}} AS r(execution_id, {CHUNK}, place) JOIN written USING (execution_id)""",
    ),
    "closed": _Part(
        (_TEXT, _INT, _TEXT, _INT),
        """DELETE FROM commands c USING {rows} AS r(execution_id, run, unit, lease, place)
        JOIN written USING (execution_id)
        WHERE c.execution = key AND c.run = r.run AND c.unit = r.unit AND c.lease <= r.lease""",
    ),
    "opened": _Part(
        (_TEXT, _INT, _TEXT, _INT, _TEXT, _TEXT, _FLOAT, _TEXT, _FLOAT, _INT),
        f"""INSERT INTO commands AS c (execution, {COMMAND})
        SELECT key, {COMMAND} FROM {{rows}} AS r(execution_id, {COMMAND}, place)
        JOIN written USING (execution_id) ORDER BY place
        ON CONFLICT (execution, run, unit) DO UPDATE SET number = excluded.number, lease = excluded.lease,
        step = excluded.step, pool = excluded.pool, not_before = excluded.not_before, worker = excluded.worker,
        until = excluded.until, attempts = c.attempts + excluded.attempts WHERE c.lease < excluded.lease""",
    ),
    "acknowledged": _Part(
        (_TEXT, _INT),
        """DELETE FROM requests q USING {rows} AS r(execution_id, number, place) JOIN written USING (execution_id)
        WHERE q.number = r.number""",
    ),
    "sent": _Part(
        (_TEXT, _TEXT, _TEXT, _BYTES),
        """INSERT INTO requests (execution_id, action, data) SELECT target, action, data
        FROM {rows} AS r(execution_id, target, action, data, place) JOIN written USING (execution_id)
        ORDER BY place""",
    ),
    "snapshots": _Part(
        (_TEXT, _TEXT, _INT, _BYTES),
        """INSERT INTO snapshots SELECT key, bundle, seq, data
        FROM {rows} AS r(execution_id, bundle, seq, data, place) JOIN written USING (execution_id)
        ON CONFLICT (execution) DO UPDATE SET bundle = excluded.bundle, seq = excluded.seq, data = excluded.data""",
    ),
    "result_references": _Part(
        (_TEXT, _TEXT),
        """INSERT INTO result_references SELECT result, key
        FROM {rows} AS r(execution_id, result, place) JOIN written USING (execution_id) ON CONFLICT DO NOTHING""",
    ),
    "bundles": _Part(
        (_TEXT, _BYTES),
        """INSERT INTO bundles SELECT bundle, data FROM {rows} AS r(bundle, data, place)
        ORDER BY bundle ON CONFLICT DO NOTHING""",
    ),
}
_PARTS = _EXECUTIONS | _DEPENDENTS


def rows_of(
    batch: Sequence[EncodedAppend], sums: dict[str, int | None], bundles: Mapping[str, bytes]
) -> dict[str, list[tuple[Any, ...]]]:
    """Return the rows of each part of a write. Moves `sums`, if there are any, on to those of the last chunks."""
    rows: dict[str, list[tuple[Any, ...]]] = {name: [] for name in _PARTS}
    for append in batch:
        execution = append.execution
        one = execution.execution_id
        row = (*execution[:8], counts_text(execution.counts), *execution[9:])
        period = period_of(execution.started)
        rows["moved" if append.known_seq else "born"].append((*row, append.known_seq, append.start_key, period))
        chunks = summed(append.chunks, sums.get(one))
        rows["chunks"] += [(one, *chunk) for chunk in chunks]
        if one in sums and chunks:
            sums[one] = chunks[-1][3]
        rows["closed"] += [command[:4] for command in append.closed]
        rows["opened"] += [(*command[:9], int(bool(command.worker))) for command in append.opened]
        rows["acknowledged"] += [(one, number) for number in append.acknowledged]
        rows["sent"] += [(one, *request) for request in append.sent]
        if append.snapshot is not None:
            rows["snapshots"].append((one, *append.snapshot))
        rows["result_references"] += [(one, result) for result in append.references]
    rows["bundles"] += bundles.items()
    return rows


def write_statement(rows: Mapping[str, list[tuple[Any, ...]]]) -> tuple[bytes, list[bytes | None]]:
    """Return the statement for the parts that have rows, and its values."""
    names = tuple(name for name in _PARTS if rows[name])
    is_single = all(len(rows[name]) == 1 for name in names)
    return _text(names, is_single), [value for name in names for value in _PARTS[name].values(rows[name], is_single)]


@cache
def _text(names: tuple[str, ...], is_single: bool) -> bytes:
    """Return the statement for these parts. Few combinations occur; each is prepared."""
    numbers = count(1)
    texts = {name: _PARTS[name].text(numbers, is_single) for name in names}
    clauses = [text for name, text in texts.items() if name in _EXECUTIONS]
    written = [f"SELECT key, execution_id, period FROM {name}" for name in texts if name in _EXECUTIONS]
    union = " UNION ALL ".join(written) or "SELECT key, execution_id, period FROM executions WHERE false"
    clauses.append(f"written AS ({union})")
    clauses += [f"put_{name} AS ({text})" for name, text in texts.items() if name in _DEPENDENTS]
    now = "extract(epoch FROM clock_timestamp())::float8"
    text = f"WITH {', '.join(clauses)} SELECT execution_id, {now} FROM written UNION ALL SELECT NULL, {now}"
    return text.encode()


def read_written(rows: Sequence[Sequence[bytes | None]]) -> tuple[set[str], float]:
    """Return the executions that a statement has written, and the time of the database."""
    (now,) = _time(rows[0][1] or b"")
    return {id.decode() for id, _ in rows if id is not None}, now
