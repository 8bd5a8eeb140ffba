"""Reads the executions of a server as if they were in a database of one's own: for commands that look at them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from noetlvm.client.calls import ServiceError
from noetlvm.client.client import Client
from noetlvm.data.event import Recorded
from noetlvm.store.interface import Execution, Snapshot
from noetlvm.testing.log import event_of

PAGE = 1_000


class RemoteReader:
    """The part of a store's reader that commands use, over the API."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def close(self) -> None:
        self._client.close()

    def execution(self, execution_id: str) -> Execution | None:
        found = self.find(execution_id, 1)
        return found[0] if found else None

    def find(self, text: str, limit: int) -> list[Execution]:
        try:
            return [_row(self._client.execution(text))][:limit]
        except ServiceError as error:
            if error.status == 404:
                return []
            raise

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
        for found in self._client.events(execution_id, after):
            if until is not None and found["seq"] > until:
                return
            time = datetime.fromisoformat(found["timestamp"]).timestamp()
            yield Recorded(found["seq"], found["event_id"], time, event_of(found))

    def snapshot(self, execution_id: str, bundle: str, until: int | None = None) -> Snapshot | None:
        """Return nothing: the events suffice."""
        return None


def _row(view: dict[str, Any]) -> Execution:
    fields = ("execution_id", "bundle", "name", "path", "status", "started", "ended", "parent", "counts", "event_count")
    return Execution._make((*(view[name] for name in fields), None, view["trace_id"]))
