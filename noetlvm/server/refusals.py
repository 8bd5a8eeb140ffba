"""Requests that are refused before there is anything to run: their log is written in one append (S61)."""

from __future__ import annotations

from typing import Any

from noetlvm.data.event import Recorded
from noetlvm.machine.messages import Request
from noetlvm.machine.requests import refused
from noetlvm.server.identity import NewIds, new_ids
from noetlvm.store.interface import Append, Execution, Store

NO_BUNDLE = ""
"""Bundle of an execution whose playbook could not be compiled or found."""


class BadRequestError(ValueError):
    """A request that is refused. `execution_id` is the execution whose log says why; empty: there is none."""

    def __init__(self, message: str, execution_id: str = "") -> None:
        super().__init__(message)
        self.execution_id = execution_id


def record_refusal(
    store: Store, error: dict[str, Any], path: str, *, name: str = "", now: float, ids: NewIds = new_ids
) -> BadRequestError:
    """Write the log of a request that is refused, and return what to raise. Raises StoreError."""
    execution_id, *event_ids = ids(now, 4)
    events = list(refused(Request(execution_id, NO_BUNDLE, {}), path, error))
    counts = {"ok": 0, "failed": 0, "rejected": 0, "failures": 1}
    row = Execution(execution_id, NO_BUNDLE, name or path, path, "failed", now, now, counts=counts, seq=len(events))
    recorded = [
        Recorded(seq, event_id, now, event)
        for seq, (event_id, event) in enumerate(zip(event_ids, events, strict=True), 1)
    ]
    store.write([Append(row, 0, recorded)])
    return BadRequestError(error["message"], execution_id)
