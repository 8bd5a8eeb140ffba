"""Why requests and children are refused, and the log of a request that is (S61)."""

from __future__ import annotations

from typing import Any

from noetlvm.data.encoding import UnencodableError
from noetlvm.data.event import Recorded
from noetlvm.limits import ARGS_BYTES_MAX, runtime_objection
from noetlvm.machine.loaded import LoadedPlaybook, LoadedProgram
from noetlvm.machine.loops import deep_merge
from noetlvm.machine.messages import Request
from noetlvm.machine.payload import Offload, TooLargeError
from noetlvm.machine.requests import refused
from noetlvm.machine.state import Child
from noetlvm.server.identity import NewIds, new_ids
from noetlvm.store.interface import Append, Execution, Store
from noetlvm.tools.call import Outcome, error

NO_BUNDLE = ""
"""Bundle of an execution whose playbook could not be compiled or found."""


class BadRequestError(ValueError):
    """A request that is refused. `execution_id` is the execution whose log says why; empty: there is none."""

    def __init__(self, message: str, execution_id: str = "") -> None:
        super().__init__(message)
        self.execution_id = execution_id


def refusal(child: Child, program: LoadedProgram, payload: dict[str, Any]) -> Outcome:
    """Return why a child cannot be started, as the outcome of the task that starts it; empty: it can."""
    playbook = program.playbooks.get(child.path)
    if playbook is None:
        known = ", ".join(sorted(program.playbooks))
        return error("playbook", f"there is no playbook `{child.path}` in the bundle, which has: {known}")
    version = playbook.metadata.get("version")
    if child.version is not None and str(version) != str(child.version):
        return error("playbook", f"`{child.path}` is there in version {version}, not {child.version}")
    objection = objection_to(playbook, payload, {})
    return error("input", objection) if objection else {}


def objection_to(playbook: LoadedPlaybook, payload: dict[str, Any], ctx: dict[str, Any]) -> str:
    """Return why a request cannot be run or recorded; empty: it can."""
    objection = runtime_objection(playbook.executor.get("version", ""))
    if objection:
        return f"{objection}; update noetlvm, or change `executor.version`"
    offload = Offload(playbook.limits.max_payload_bytes)
    odd = [key for key in ctx if not isinstance(key, str) or not key.isidentifier()]
    if odd:
        return f"the keys of `ctx` are plain names, and `{odd[0]}` is none"
    try:
        offload.fit(payload)
        offload.fit(deep_merge(playbook.workload, payload))
        offload.fit(ctx, ARGS_BYTES_MAX)
    except (TooLargeError, UnencodableError) as problem:
        return f"the request cannot be recorded: {problem}"
    return ""


def record_refusal(
    store: Store, reason: dict[str, Any], path: str, *, name: str = "", now: float, ids: NewIds = new_ids
) -> BadRequestError:
    """Write the log of a request that is refused, and return what to raise. Raises StoreError."""
    execution_id, *event_ids = ids(now, 4)
    events = list(refused(Request(execution_id, NO_BUNDLE, {}), path, reason))
    counts = {"ok": 0, "failed": 0, "rejected": 0, "failures": 1}
    row = Execution(execution_id, NO_BUNDLE, name or path, path, "failed", now, now, counts=counts, seq=len(events))
    recorded = [
        Recorded(seq, event_id, now, event)
        for seq, (event_id, event) in enumerate(zip(event_ids, events, strict=True), 1)
    ]
    store.write([Append(row, 0, recorded)])
    return BadRequestError(reason["message"], execution_id)
