"""Children of executions: what they are given, what they give back, and why they cannot be started (S43)."""

from __future__ import annotations

from typing import Any

from noetlvm.data.encoding import UnencodableError
from noetlvm.limits import ARGS_BYTES_MAX
from noetlvm.machine.loaded import LoadedPlaybook, LoadedProgram
from noetlvm.machine.payload import Offload, TooLargeError
from noetlvm.machine.reducers import deep_merge
from noetlvm.machine.state import Child
from noetlvm.results.interface import ResultStore
from noetlvm.results.offered import UnofferedStoreError, store_for
from noetlvm.server.active import Ending
from noetlvm.tools.call import Outcome, error, ok


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
    """Return why a request cannot be recorded; empty: it can."""
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


def unoffered_store(results: ResultStore, program: LoadedProgram) -> str:
    """Return why the large results of a program cannot be stored; empty: they can."""
    try:
        for playbook in program.playbooks.values():
            store_for(results, playbook.executor)
    except UnofferedStoreError as problem:
        return str(problem)
    return ""


def payload_of(child: Child, offload: Offload) -> dict[str, Any]:
    """Return the payload of a child, with everything that its parent's events only refer to."""
    return {name: offload.read(value) for name, value in child.workload.items()}


def outcome_of(ending: Ending) -> Outcome:
    """Return the outcome of the task that started a child which has ended."""
    result = {"status": ending.status, "result": ending.result, "ctx": ending.ctx}
    if ending.status == "success":
        return ok(result)
    message = f"the child execution {ending.execution_id} ended as {ending.status}"
    if ending.failures:
        message += f": {ending.failures[0]['error']['message']}"
    return error("playbook", message, details={"execution_id": ending.execution_id}, result=result)
