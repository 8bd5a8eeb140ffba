"""Requests, and children as their parent sees them: what they are given and give back, why they cannot be (S43)."""

from __future__ import annotations

from typing import Any

from noetlvm.data.encoding import UnencodableError
from noetlvm.engine.actor import Ending
from noetlvm.language.tool_kinds import find_kind
from noetlvm.limits import ARGS_BYTES_MAX, CHILD_NAME_CHARS_MAX
from noetlvm.machine.effects import Call
from noetlvm.machine.loaded import LoadedPlaybook, LoadedProgram
from noetlvm.machine.payload import Offload, TooLarge
from noetlvm.machine.reducers import deep_merge
from noetlvm.machine.state import Child
from noetlvm.tools.call import Outcome, ToolCall, error, ok
from noetlvm.tools.inputs import InputError, prepared


def child_asked(call: Call, offload: Offload) -> dict[str, Any]:
    """Return what a task asks for as its event holds it. Raises InputError."""
    kind = find_kind(call.kind)
    assert kind is not None  # its own kind brought the task here
    asked = prepared(kind, ToolCall(call.kind, call.inputs, call.spec, call.key))
    inputs, timeout = asked.inputs, asked.spec["timeout"]
    try:
        child = {**inputs, "workload": offload.fit(inputs.get("workload", {}))}
    except (TooLarge, UnencodableError) as problem:
        raise InputError(f"`workload` cannot be handed on: {problem}") from None
    if len(str(inputs["path"])) + len(str(inputs.get("version", ""))) > CHILD_NAME_CHARS_MAX:
        raise InputError(f"`path` and `version` may have {CHILD_NAME_CHARS_MAX:,} characters")
    return child if timeout is None else child | {"timeout": timeout}


def refusal(child: Child, playbook: LoadedPlaybook | None, program: LoadedProgram) -> Outcome:
    """Return why a child cannot be started, as the outcome of the task that asks for it; empty: it can."""
    if playbook is None:
        known = ", ".join(sorted(program.playbooks))
        return error("playbook", f"there is no playbook `{child.path}` in the bundle, which has: {known}")
    version = playbook.metadata.get("version")
    if child.version is not None and str(version) != str(child.version):
        return error("playbook", f"`{child.path}` is there in version {version}, not {child.version}")
    return {}


def came_too_late(child: Child, ended: float | None) -> bool:
    """Tell whether a child ended when nobody waited for it any more. Its parent's timer tells what that means."""
    return ended is not None and child.due is not None and ended >= child.due


def objection_to(playbook: LoadedPlaybook, payload: dict[str, Any], ctx: dict[str, Any]) -> str:
    """Return why a request cannot be recorded; empty: it can."""
    offload = Offload(playbook.limits.max_payload_bytes)
    odd = [key for key in ctx if not isinstance(key, str) or not key.isidentifier()]
    if odd:
        return f"the keys of `ctx` are plain names, and `{odd[0]}` is none"
    try:
        offload.fit(payload)
        offload.fit(deep_merge(playbook.workload, payload))
        offload.fit(ctx, ARGS_BYTES_MAX)
    except (TooLarge, UnencodableError) as problem:
        return f"the request cannot be recorded: {problem}"
    return ""


def payload_of(child: Child, offload: Offload) -> dict[str, Any]:
    """Return the request of a child, with everything in it that its parent's events only refer to."""
    return {name: offload.read(value) for name, value in child.workload.items()}


def outcome_of(ending: Ending) -> Outcome:
    """Return what a child gives back."""
    result = {"status": ending.status, "result": ending.result, "ctx": ending.ctx}
    if ending.status == "success":
        return ok(result)
    message = f"the child execution {ending.execution_id} ended as {ending.status}"
    if ending.failures:
        message += f": {ending.failures[0]['error']['message']}"
    return error("playbook", message, details={"execution_id": ending.execution_id}, result=result)
