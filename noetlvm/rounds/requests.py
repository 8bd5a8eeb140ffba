"""Requests besides a plain start: retries of failed executions (S56), refusals with their log (S61), repetitions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from noetlvm.data.encoding import MASK
from noetlvm.data.event import Recorded
from noetlvm.data.references import Reference
from noetlvm.machine.decide import refused
from noetlvm.machine.loaded import Bundle, LoadedPlaybook
from noetlvm.machine.messages import Request
from noetlvm.machine.payload import Offload, whole
from noetlvm.machine.replay import replay
from noetlvm.machine.retry import RetryPlan
from noetlvm.rounds.identity import NewIds, new_ids
from noetlvm.store.interface import Append, Execution, Store, StoreReader

if TYPE_CHECKING:
    from noetlvm.machine.retry import RetryPlan

RETRY_EVENTS_MAX = 250_000
"""Events of an execution that can be retried: the new one's log begins with all of them, in one transaction."""


class RefusedRetryError(ValueError):
    """An execution cannot be retried. The message gives the reason, and what to do instead."""


class PreparedRetry(NamedTuple):
    """A retry that can start."""

    bundle: Bundle
    playbook: LoadedPlaybook
    log: list[Recorded]
    plan: RetryPlan


def prepare_retry(reader: StoreReader, fetch: Callable[[str], bytes], row: Execution, bundle: Bundle) -> PreparedRetry:
    """Read what a retry needs. It only reads, so any thread may run it. Raises RefusedRetryError.

    Another bundle than the execution's own is accepted if it decides the same on everything that happened so far.
    """
    id = row.execution_id
    if row.status != "failed":
        raise RefusedRetryError(f"{id} {_STANDING.get(row.status, row.status)}; only a failed execution can be retried")
    if row.seq > RETRY_EVENTS_MAX:
        raise RefusedRetryError(f"{id} has {row.seq:,} events; one with up to {RETRY_EVENTS_MAX:,} can be retried")
    playbook = bundle.program.playbooks.get(row.path)
    if playbook is None:
        raise RefusedRetryError(f"the bundle has no playbook `{row.path}`, which {id} runs")
    log = list(reader.events(id, 0, row.seq))
    if bundle.id != row.bundle:
        _require_same_decisions(playbook, log, lambda reference: fetch(reference.key))
    plan = RetryPlan(log)
    if not plan.has_begun:
        raise RefusedRetryError(f"{id} was refused before its first step: correct the request and start it again")
    return PreparedRetry(bundle, playbook, log, plan)


def _require_same_decisions(playbook: LoadedPlaybook, log: list[Recorded], fetch: Callable[[Reference], bytes]) -> None:
    difference = replay(playbook, log, Offload(playbook.limits.max_payload_bytes, fetch))
    if difference is not None:
        place = f" at {difference.place}" if difference.place else ""
        raise RefusedRetryError(
            f"the other bundle decides event {difference.seq:,} differently{place}; "
            "change only parts that have not been decided, such as the tasks of the failed step"
        )


_STANDING = {
    "running": "is still running",
    "paused": "is paused",
    "success": "has succeeded",
    "cancelled": "was cancelled",
}


class ReusedKeyError(ValueError):
    """A key of a request that was the key of another request before."""


class StartContent(NamedTuple):
    """What makes two requests to start an execution the same request."""

    path: str
    bundle: str
    """Empty: the latest of the path, which may be another one by now."""
    payload: dict[str, Any]
    ctx: dict[str, Any]

    def started(self, reader: StoreReader, fetch: Callable[[str], bytes], execution_id: str) -> bool:
        """Return whether a request of this content started an execution, as far as the log shows it."""
        first, evaluated = (recorded.event.data for recorded in reader.events(execution_id, 0, 2))
        if first["execution"] != execution_id or first["path"] != self.path:  # the log of a retry begins with another's
            return False
        if self.bundle and first["bundle"] != self.bundle:
            return False
        if evaluated.get("error"):
            return True  # the log of a refused request has no payload
        recorded = whole([first["payload"], first.get("ctx", {})], fetch)
        return _agrees(recorded, [self.payload, self.ctx])


def _agrees(recorded: Any, given: Any) -> bool:
    """Return whether a value can be the one that was recorded; a masked text can be any value."""
    if isinstance(recorded, str):
        return MASK in recorded or recorded == given
    if isinstance(recorded, dict) and isinstance(given, dict):
        if any(MASK in key for key in recorded):
            return len(recorded) <= len(given)
        return recorded.keys() == given.keys() and all(_agrees(item, given[key]) for key, item in recorded.items())
    if isinstance(recorded, list) and isinstance(given, list | tuple):
        return len(recorded) == len(given) and all(map(_agrees, recorded, given))
    return type(recorded) is type(given) and bool(recorded == given)


NO_BUNDLE = ""
"""Bundle of an execution whose playbook could not be compiled or found."""


class BadRequestError(ValueError):
    """A request that is refused. `execution_id` is the execution whose log has the reason; empty: there is none."""

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
