"""A store in memory: for tests, and for runs that need not be resumed.

It holds what SQLite holds, encoded in the same way, so that a run that works here works there.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from operator import itemgetter

from noetlvm.data.encoding import decode, encode
from noetlvm.data.event import Recorded
from noetlvm.store.chunks import Chunk, decoded
from noetlvm.store.interface import (
    PAGE_ROWS,
    Action,
    Append,
    CatalogueEntry,
    Durability,
    Execution,
    ExecutionRequest,
    QueuedCommand,
    Snapshot,
    StoredToken,
    StoreError,
)
from noetlvm.store.rows import EncodedAppend, cursor_gone, encoded_batch, require_open
from noetlvm.store.wall_clock import WallClock


@dataclass(slots=True)
class _Stored:
    """Everything of one execution."""

    execution: Execution
    chunks: list[Chunk] = field(default_factory=list)
    references: set[str] = field(default_factory=set)
    snapshot: Snapshot | None = None


class MemoryStore:
    def __init__(self, durability: Durability = "full") -> None:
        self.durability: Durability = durability
        self._stored: dict[str, _Stored] = {}
        self._bundles: dict[str, bytes] = {}
        self._playbooks: dict[str, list[CatalogueEntry]] = {}
        self._commands: dict[tuple[str, int, str], QueuedCommand] = {}
        self._requests: dict[int, tuple[str, str, bytes]] = {}
        self._last_request = 0
        self._start_keys: dict[str, str] = {}
        self._tokens: dict[str, StoredToken] = {}
        self._writing = threading.RLock()
        self._is_closed = False
        self._clock = WallClock()

    def close(self) -> None:
        self._is_closed = True

    def now(self) -> float:
        return self._clock.now()

    # ---- log

    def events(self, execution_id: str, after: int = 0, until: int | None = None) -> Iterator[Recorded]:
        stored = self._stored.get(execution_id)
        if stored is None:
            return
        chunks = stored.chunks
        end = stored.execution.seq if until is None else until
        # The chunk of the first wanted event is the last one that begins with it, or before.
        for first, last, data in chunks[max(bisect_right(chunks, after + 1, key=itemgetter(0)) - 1, 0) :]:
            if first > end:
                return
            if last > after:
                yield from decoded(first, data)[max(after + 1 - first, 0) : end + 1 - first]

    def snapshot(self, execution_id: str, bundle: str, until: int | None = None) -> Snapshot | None:
        stored = self._stored.get(execution_id)
        found = stored.snapshot if stored else None
        if found is None or found.bundle != bundle or (until is not None and found.seq > until):
            return None
        return found._replace(data=decode(found.data))

    def references(self) -> Iterator[str]:
        yield from set[str]().union(*(stored.references for stored in self._stored.values()))

    def write(self, batch: Sequence[Append], bundles: Mapping[str, bytes] = {}) -> set[str]:
        encoded = encoded_batch(batch)
        with self._writing:
            self._require_open()
            for bundle, data in bundles.items():
                self._bundles.setdefault(bundle, data)
            conflicts = {append.execution.execution_id for append in encoded if not self._moved(append)}
            for append in encoded:
                if append.execution.execution_id not in conflicts:
                    self._write_dependents(append)
        return conflicts

    def _moved(self, append: EncodedAppend) -> bool:
        """Move the row of an execution on from the known event; return False if it is not there any more."""
        execution = append.execution
        stored = self._stored.get(execution.execution_id)
        if (stored.execution.seq if stored else 0) != append.known_seq or (stored and not append.known_seq):
            return False
        if append.start_key and self._start_keys.setdefault(append.start_key, execution.execution_id) != (
            execution.execution_id
        ):
            return False
        if stored is None:
            self._stored[execution.execution_id] = _Stored(execution)
        else:
            stored.execution = execution
        return True

    def _write_dependents(self, append: EncodedAppend) -> None:
        stored = self._stored[append.execution.execution_id]
        stored.chunks += append.chunks
        stored.references |= append.references
        if append.snapshot is not None:
            stored.snapshot = append.snapshot
        for command in append.closed:
            known = self._commands.get(command.part)
            if known is not None and known.lease <= command.lease:
                del self._commands[command.part]
        for command in append.opened:
            known = self._commands.get(command.part)
            if known is None or known.lease < command.lease:
                self._commands.pop(command.part, None)  # a new lease queues at the end
                attempts = (known.attempts if known else 0) + bool(command.worker)
                self._commands[command.part] = command._replace(
                    attempts=attempts, bundle=stored.execution.bundle, path=stored.execution.path
                )
        for number in append.acknowledged:
            self._requests.pop(number, None)
        for request in append.sent:
            self._send(*request)

    # ---- dispatch

    def claim(self, worker: str, pools: Iterable[str], until: float, limit: int, now: float) -> list[QueuedCommand]:
        wanted = set(pools)
        with self._writing:
            self._require_open()
            free = (
                command
                for command in self._commands.values()
                if not command.worker and command.pool in wanted and command.not_before <= now
            )
            claimed = [
                command._replace(worker=worker, until=until, attempts=command.attempts + 1)
                for command in islice(free, limit)
            ]
            self._commands |= {command.part: command for command in claimed}
        return claimed

    def renew(self, worker: str, held: Sequence[QueuedCommand], until: float) -> list[QueuedCommand]:
        with self._writing:
            self._require_open()
            return [renewed for command in held if (renewed := self._held_until(worker, command, until))]

    def release(self, worker: str, held: Sequence[QueuedCommand]) -> list[QueuedCommand]:
        return self.renew(worker, held, 0.0)

    def _held_until(self, worker: str, command: QueuedCommand, until: float) -> QueuedCommand | None:
        known = self._commands.get(command.part)
        if known is None or known.lease != command.lease or known.worker != worker or not known.until:
            return None
        self._commands[command.part] = renewed = known._replace(until=until)
        return renewed

    def expired(self, now: float, limit: int = PAGE_ROWS) -> list[QueuedCommand]:
        ended = (command for command in list(self._commands.values()) if command.worker and command.until <= now)
        return list(islice(ended, limit))

    # ---- catalogue

    def bundle(self, bundle: str) -> bytes | None:
        return self._bundles.get(bundle)

    def put_bundle(self, bundle: str, data: bytes) -> None:
        self.write([], {bundle: data})

    def register(self, path: str, bundle: str, data: bytes, now: float) -> CatalogueEntry:
        with self._writing:
            self.put_bundle(bundle, data)
            versions = self._playbooks.setdefault(path, [])
            if not versions or versions[-1].bundle != bundle:
                versions.append(CatalogueEntry(path, len(versions) + 1, bundle, now))
            return versions[-1]

    def resolve(self, path: str, version: int | None = None) -> CatalogueEntry | None:
        found = [entry for entry in self._playbooks.get(path, ()) if version in (None, entry.version)]
        return found[-1] if found else None

    def playbooks(self, *, after: str = "", limit: int = PAGE_ROWS) -> list[CatalogueEntry]:
        return [self._playbooks[path][-1] for path in sorted(self._playbooks) if path > after][:limit]

    def versions(self, path: str, *, before: int | None = None, limit: int = PAGE_ROWS) -> list[CatalogueEntry]:
        entries = reversed(self._playbooks.get(path, []))
        return [entry for entry in entries if before is None or entry.version < before][:limit]

    # ---- executions

    def execution(self, execution_id: str) -> Execution | None:
        stored = self._stored.get(execution_id)
        return stored.execution if stored else None

    def find(self, text: str, limit: int) -> list[Execution]:
        exact = self.execution(text)
        if exact is not None:
            return [exact]
        return [
            row for row in self.executions() if row.execution_id.startswith(text) or row.execution_id.endswith(text)
        ][:limit]

    def executions(
        self,
        *,
        status: str | None = None,
        path: str | None = None,
        parent: str | None = None,
        before: str | None = None,
        limit: int | None = None,
    ) -> list[Execution]:
        ids = list(self._stored)
        if before is not None:
            if before not in self._stored:
                raise cursor_gone(before)
            ids = ids[: ids.index(before)]
        latest = (self._stored[execution_id].execution for execution_id in reversed(ids))
        wanted = {"status": status, "path": path, "parent": parent}
        filters = [(name, value) for name, value in wanted.items() if value is not None]
        return list(
            islice((row for row in latest if all(getattr(row, name) == value for name, value in filters)), limit)
        )

    def descendants(self, trace: str) -> int:
        return sum(row.execution.trace == trace for row in self._stored.values()) if trace else 0

    def unfinished(self, limit: int | None = None) -> list[Execution]:
        return list(islice((row.execution for row in self._stored.values() if row.execution.ended is None), limit))

    def has_unfinished(self) -> bool:
        return any(row.execution.ended is None for row in self._stored.values())

    def commands(self) -> list[QueuedCommand]:
        """Return all commands, the oldest first."""
        return list(self._commands.values())

    def due(self, now: float, limit: int = PAGE_ROWS) -> list[Execution]:
        rows = [row.execution for row in self._stored.values()]
        late = [(row.due, number, row) for number, row in enumerate(rows) if row.due is not None and row.due <= now]
        return [row for _, _, row in sorted(late)][:limit]

    def requests(
        self, execution_id: str | None = None, *, after: int = 0, limit: int | None = None
    ) -> list[ExecutionRequest]:
        found = (
            ExecutionRequest(target, action, decode(data), number)
            for number, (target, action, data) in list(self._requests.items())
            if number > after and execution_id in (None, target)
        )
        return list(islice(found, limit))

    def request(self, execution_id: str, action: Action) -> None:
        with self._writing:
            self._require_open()
            require_open(self.execution(execution_id), execution_id, action)
            self._send(execution_id, action, encode(None))

    def _send(self, execution_id: str, action: str, data: bytes) -> None:
        self._last_request += 1
        self._requests[self._last_request] = execution_id, action, data

    def started(self, start_key: str) -> str | None:
        return self._start_keys.get(start_key)

    def delete(self, execution_ids: Iterable[str]) -> int:
        with self._writing:
            self._require_open()
            gone = {execution_id for execution_id in execution_ids if self._stored.pop(execution_id, None)}
            self._commands = {part: row for part, row in self._commands.items() if row.execution_id not in gone}
            self._requests = {number: row for number, row in self._requests.items() if row[0] not in gone}
            self._start_keys = {key: started for key, started in self._start_keys.items() if started not in gone}
            return len(gone)

    # ---- tokens

    def put_token(self, token: StoredToken) -> None:
        self._tokens[token.id] = token

    def token(self, id: str) -> StoredToken | None:
        return self._tokens.get(id)

    def tokens(self) -> list[StoredToken]:
        return list(self._tokens.values())

    def revoke_token(self, id: str, now: float) -> bool:
        known = self._tokens.get(id)
        if known is not None and known.revoked is None:
            self._tokens[id] = known._replace(revoked=now)
        return known is not None

    def _require_open(self) -> None:
        if self._is_closed:
            raise StoreError("the store is closed")
