"""A reader of a server's executions with the interface of a store's reader, for commands that show them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, TypeVar

from noetlvm.client import calls
from noetlvm.client.calls import ServiceError
from noetlvm.client.client import Client
from noetlvm.data.encoding import decode
from noetlvm.data.event import Event, Recorded
from noetlvm.store.interface import Execution, Snapshot
from noetlvm.testing.log import event_of

PAGE = 1_000
LOOK_SECONDS = 0.2
"""Seconds between polls for a child that was requested and has not begun."""
FOLLOWED_MAX = 50
"""Executions that are followed at once, each over a connection; further children are not shown until one ends."""

Found = TypeVar("Found")


class RemoteReader:
    """The part of a store's reader that commands use, over the API."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def close(self) -> None:
        self._client.close()

    def bundle(self, bundle: str) -> bytes | None:
        return _found(lambda: self._client.bundle(bundle))

    def result(self, key: str) -> bytes:
        """Return the bytes of a stored result. Raises LookupError."""
        found = _found(lambda: self._client.result(key))
        if found is None:
            raise LookupError(f"the server has no result {key}")
        return found

    def row(self, execution_id: str) -> Execution:
        """Return the row of an execution. Raises ServiceError if there is none."""
        return _row(self._client.execution(execution_id))

    def execution(self, execution_id: str) -> Execution | None:
        found = self.find(execution_id, 1)
        return found[0] if found else None

    def find(self, text: str, limit: int) -> list[Execution]:
        found = _found(lambda: self._client.execution(text))
        return [] if found is None else [_row(found)][:limit]

    def executions(self, *, limit: int | None = None, parent: str | None = None, **filters: Any) -> list[Execution]:
        rows: list[Execution] = []
        before: str | None = None
        while limit is None or len(rows) < limit:
            size = min(PAGE, PAGE if limit is None else limit - len(rows))
            page = self._client.executions(limit=size, parent=parent, before=before, **filters)
            rows += map(_row, page["executions"])
            before = page["before"]
            if before is None:
                break
        return rows

    def children(self, execution_id: str) -> list[Execution]:
        """Return the children of an execution; a server that is away is waited for."""
        return self._client.patiently(lambda: self.executions(parent=execution_id))

    def events(self, execution_id: str, after: int = 0, until: int | None = None) -> Iterator[Recorded]:
        position: int | None = after
        while position is not None:
            page = decode(self._client.call(calls.recorded_events(execution_id, position, PAGE)))
            for seq, event_id, time, event in page["events"]:
                if until is not None and seq > until:
                    return
                yield Recorded(seq, event_id, time, Event(*event))
            position = page["after"]

    def follow(self, execution_id: str, after: int = 0) -> Iterator[Recorded]:
        """Yield events as they come, until the execution ends, as JSON shows them."""
        for found in self._client.follow(execution_id, after):
            time = datetime.fromisoformat(found["timestamp"]).timestamp()
            yield Recorded(found["seq"], found["event_id"], time, event_of(found))

    def follow_family(self, row: Execution, after: int = 0) -> Iterator[tuple[Execution, Recorded]]:
        """Yield events of an execution and of its children, at any depth, as they come, until all have ended."""
        return _Family(self, row, after).events()

    def snapshot(self, execution_id: str, bundle: str, until: int | None = None) -> Snapshot | None:
        """Return nothing: the events suffice."""
        return None


class _Family:
    """Follows an execution and its children, each by a thread of its own."""

    def __init__(self, reader: RemoteReader, row: Execution, after: int) -> None:
        self._reader = reader
        self._arrived: SimpleQueue[tuple[Execution, Recorded | ServiceError | None]] = SimpleQueue()
        """Events; None: a stream has ended; an error: it has failed."""
        self._open: set[str] = set()
        self._seen: set[str] = set()
        self._parents: dict[str, int] = {}
        """How many children each execution has started that were not found yet."""
        self._root = row
        self._follow(row, after)

    def events(self) -> Iterator[tuple[Execution, Recorded]]:
        while self._open:
            try:
                row, arrived = self._arrived.get(timeout=LOOK_SECONDS if self._parents else None)
            except Empty:
                self._find_children()
                continue
            if type(arrived) is Recorded:
                yield row, arrived
                if arrived.event.data.get("child"):
                    self._parents[row.execution_id] = self._parents.get(row.execution_id, 0) + 1
                    self._find_children()
                continue
            self._find_children()  # the last one may have ended already
            self._open.discard(row.execution_id)
            self._parents.pop(row.execution_id, None)
            if type(arrived) is ServiceError and row is self._root:
                raise arrived

    def _find_children(self) -> None:
        """Follow children that have begun: that is a moment after their parent has requested them."""
        for parent in list(self._parents):
            for child in self._reader.children(parent):
                if child.execution_id not in self._seen and len(self._open) < FOLLOWED_MAX:
                    self._follow(child, 0)
                    self._parents[parent] -= 1
            if self._parents[parent] <= 0:
                del self._parents[parent]

    def _follow(self, row: Execution, after: int) -> None:
        self._open.add(row.execution_id)
        self._seen.add(row.execution_id)
        Thread(target=self._read, args=(row, after), daemon=True).start()

    def _read(self, row: Execution, after: int) -> None:
        ended: ServiceError | None = None
        try:
            for recorded in self._reader.follow(row.execution_id, after):
                self._arrived.put((row, recorded))
        except ServiceError as error:
            ended = error
        finally:
            self._arrived.put((row, ended))


def _found(call: Callable[[], Found]) -> Found | None:
    """Return what a call returns; nothing if the server has no such thing."""
    try:
        return call()
    except ServiceError as error:
        if error.status == 404:
            return None
        raise


def _row(view: dict[str, Any]) -> Execution:
    fields = ("execution_id", "bundle", "name", "path", "status", "started", "ended", "parent", "counts", "event_count")
    return Execution._make((*(view[name] for name in fields), None, view["trace_id"]))
