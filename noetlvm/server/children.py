"""Child executions: the requests by which an execution starts and cancels them, and the outcomes that tasks get.

A request is a row of the parent's write, so parent and child may be on different servers.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from noetlvm.language.names import has_control
from noetlvm.machine.loaded import Bundle, LoadedProgram
from noetlvm.machine.messages import Request
from noetlvm.machine.state import Child
from noetlvm.nearest import suggestion
from noetlvm.server.active import Active, Ending, objection_to
from noetlvm.server.identity import child_id
from noetlvm.store.interface import ExecutionRequest, Store
from noetlvm.tools.call import Outcome, error, ok

_COUNTED_HERE = 100
"""Children of one request that a server starts before it reads again how many there are."""

_COUNTS_CACHED = 1_000
"""Requests whose children are counted in memory."""

_VERSION = re.compile(r"[0-9]{1,9}")


class Children:
    """Sends the requests of executions to their children."""

    def __init__(self, store: Store, bundle: Callable[[str], Bundle]) -> None:
        self._store = store
        self._bundle = bundle
        self._counts: dict[str, int] = {}
        """Child executions by the execution at their root. A cache of what the store counts."""

    def start(self, parent: Active, child: Child) -> Outcome:
        """Send the request that starts a child; return why that cannot be, as the outcome of its task, or nothing."""
        payload = {name: parent.offload.read(value) for name, value in child.workload.items()}
        bundle, program = parent.row.bundle, parent.program
        registered = None if child.path in program.playbooks else self._registered(child)
        if registered is not None:
            bundle, program = registered.id, registered.program
        is_registered = registered is not None
        refused = self._too_many(parent) or _refusal(child, program, payload, is_registered=is_registered)
        if not refused:
            family = (parent.execution_id, parent.state.depth + 1, parent.state.trace)
            request = Request(child_id(child.key), bundle, payload, *family, returns=child.returns)
            parent.sent.append(ExecutionRequest(request.execution_id, "start", [child.path, list(request)]))
        return refused

    def was_requested(self, parent: Active, child: str) -> bool:
        """Return whether a child exists or will: not if its task started while the parent was paused, or was refused.

        Nothing would ever acknowledge a request to a child that is never created.
        """
        if any(request.execution_id == child for request in parent.sent):
            return True
        # In this order: another server may create the child, and acknowledge its start, between the two.
        return bool(self._store.requests(child, limit=1)) or self._store.execution(child) is not None

    def forget(self, root: str) -> None:
        """Forget how many children the execution at their root has: the store counts them."""
        self._counts.pop(root, None)

    def _registered(self, child: Child) -> Bundle | None:
        """Return the bundle that is registered for a child's path: the latest, or the version that its task names."""
        version = "" if child.version is None else str(child.version)
        if has_control(child.path) or (version and not _VERSION.fullmatch(version)):
            return None  # there is none, and a database may refuse to look for it
        entry = self._store.resolve(child.path, int(version) if version else None)
        return None if entry is None else self._bundle(entry.bundle)

    def _too_many(self, parent: Active) -> Outcome:
        """Count a child; return the outcome of a task that starts more than one request may have (S62).

        The store counts, so that neither a crash nor another server restarts the count. It is read again after some
        children only: reading it for each would take quadratic time.
        """
        root, limit = parent.state.trace, parent.playbook.limits.max_children
        number = self._counts.get(root, 0)
        if not number % _COUNTED_HERE:
            number = max(number, self._store.descendants(root))
            if len(self._counts) > _COUNTS_CACHED:
                self._counts.clear()
        self._counts[root] = number = number + 1
        if number <= limit:
            return {}
        return error("fuel", f"one request may start {limit:,} child executions; `limits.max_children` sets another")


def _refusal(child: Child, program: LoadedProgram, payload: dict[str, Any], *, is_registered: bool) -> Outcome:
    """Return why a child cannot be started, as the outcome of the task that starts it; empty: it can.

    `is_registered`: the program is what is registered under the child's path and version.
    """
    playbook = program.playbooks.get(child.path)
    if playbook is None:
        known = ", ".join(sorted(program.playbooks))
        wanted = f"`{child.path}`" if child.version is None else f"`{child.path}` of version {child.version}"
        reason = f"no playbook {wanted} is registered, or in the bundle, which has: {known}"
        return error("playbook", f"{reason}; name its file after that of the playbook that runs it")
    version = playbook.metadata.get("version")
    if child.version is not None and not is_registered and str(version) != str(child.version):
        return error("playbook", f"`{child.path}` is there in version {version}, not {child.version}")
    if child.returns and child.returns not in playbook.steps:
        hint = suggestion(child.returns, playbook.steps)
        return error("playbook", f"`{child.path}` has no step `{child.returns}` to return the result of.{hint}")
    objection = objection_to(playbook, payload, {})
    return error("input", objection) if objection else {}


def outcome_of(ending: Ending) -> Outcome:
    """Return the outcome of the task that started a child which has ended."""
    result = {"status": ending.status, "result": ending.result, "ctx": ending.ctx}
    if ending.status == "success":
        return ok(result)
    message = f"the child execution {ending.execution_id} ended as {ending.status}"
    if ending.failures:
        message += f": {ending.failures[0]['error']['message']}"
    return error("playbook", message, details={"execution_id": ending.execution_id}, result=result)
