"""Reads the executions of a server as if they were in a database of one's own: for commands that look at them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, TypeVar

from noetlvm.client import calls
from noetlvm.client.calls import ServiceError
from noetlvm.client.client import Client
from noetlvm.data.encoding import decode
from noetlvm.data.event import Event, Recorded
from noetlvm.store.interface import Execution, Snapshot
from noetlvm.testing.log import event_of

PAGE = 1_000

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

    def snapshot(self, execution_id: str, bundle: str, until: int | None = None) -> Snapshot | None:
        """Return nothing: the events suffice."""
        return None


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
