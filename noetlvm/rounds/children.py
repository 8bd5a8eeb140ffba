"""Child executions: the requests by which an execution starts and cancels them, and the outcomes that tasks get.

A request is a row of the parent's write, so parent and child may be on different servers.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from noetlvm.expr.errors import ExpressionError
from noetlvm.language.names import has_control
from noetlvm.machine.loaded import Bundle, LoadedPlaybook, LoadedProgram
from noetlvm.machine.messages import Request
from noetlvm.machine.payload import Offload
from noetlvm.machine.state import Child
from noetlvm.nearest import suggestion
from noetlvm.rounds.active import Active, Ending, objection_to
from noetlvm.store.interface import StoreReader
from noetlvm.tools.call import Outcome, error, ok

_COUNTED_HERE = 100
"""Children of one request that a server starts before it reads again how many there are."""

_COUNTS_CACHED = 1_000
"""Requests whose children are counted in memory."""

_VERSION = re.compile(r"[0-9]{1,9}")


class ChildRequest(NamedTuple):
    """What a parent writes to start a child, or to continue it."""

    path: str
    version: Any
    workload: dict[str, Any]
    """Large values by reference."""
    returns: str
    bundle: str
    """Of the parent: its playbooks come before those that are registered."""
    parent: str
    depth: int
    trace: str
    limit: int
    """Executions that the one at the root may have started."""

    @classmethod
    def by(cls, parent: Active, child: Child) -> ChildRequest:
        state, limit = parent.state, parent.playbook.limits.max_children
        family = (parent.row.bundle, parent.execution_id, state.depth + 1, state.trace)
        return cls(child.path, child.version, child.workload, child.returns, *family, limit)

    @classmethod
    def of(cls, data: Any) -> ChildRequest:
        """Return the request that `to_data` described."""
        return cls(**data)

    def to_data(self) -> dict[str, Any]:
        return self._asdict()


class RefusedChildError(Exception):
    """A child cannot be started. The outcome is that of the task which requested it."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome["error"]["message"])
        self.outcome = outcome


class Children:
    """Checks what executions request of their children. It reads the store."""

    def __init__(self, store: StoreReader, fetch: Callable[[str], bytes], bundle: Callable[[str], Bundle]) -> None:
        self._store = store
        self._fetch = fetch
        self._bundle = bundle
        self._counts: dict[str, int] = {}
        """Child executions by the execution at their root. A cache of what the store counts."""

    def accepted(self, wanted: ChildRequest, id: str) -> tuple[Bundle, LoadedPlaybook, Request]:
        """Return what starts a child that does not exist. Raises RefusedChildError."""
        bundle = self._bundle(wanted.bundle)
        registered = None if wanted.path in bundle.program.playbooks else self._registered(wanted)
        if registered is not None:
            bundle = registered
        offload = Offload(fetch=lambda reference: self._fetch(reference.key))
        try:
            payload = {name: offload.read(value) for name, value in wanted.workload.items()}
        except ExpressionError as problem:
            raise RefusedChildError(error(problem.kind, problem.message)) from None
        refusal = self._too_many(wanted.trace, wanted.limit)
        refusal = refusal or _refusal(wanted, bundle.program, payload, is_registered=registered is not None)
        if refusal:
            raise RefusedChildError(refusal)
        family = (wanted.parent, wanted.depth, wanted.trace)
        request = Request(id, bundle.id, payload, *family, returns=wanted.returns)
        return bundle, bundle.program.playbooks[wanted.path], request

    def forget(self, root: str) -> None:
        """Forget how many children the execution at their root has: the store counts them."""
        self._counts.pop(root, None)

    def _registered(self, child: ChildRequest) -> Bundle | None:
        """Return the bundle that is registered for a child's path: the latest, or the version that its task names."""
        version = "" if child.version is None else str(child.version)
        if has_control(child.path) or (version and not _VERSION.fullmatch(version)):
            return None  # there is none, and a database may refuse to look for it
        entry = self._store.resolve(child.path, int(version) if version else None)
        return None if entry is None else self._bundle(entry.bundle)

    def _too_many(self, root: str, limit: int) -> Outcome:
        """Count a child; return the outcome of a task that starts more than one request may have (S62).

        The store counts, so that neither a crash nor another server restarts the count. It is read again after some
        children only: reading it for each would take quadratic time.
        """
        number = self._counts.get(root, 0)
        if not number % _COUNTED_HERE:
            number = max(number, self._store.descendants(root))
            if len(self._counts) > _COUNTS_CACHED:
                self._counts.clear()
        self._counts[root] = number = number + 1
        if number <= limit:
            return {}
        return error("fuel", f"one request may start {limit:,} child executions; `limits.max_children` sets another")


def _refusal(child: ChildRequest, program: LoadedProgram, payload: dict[str, Any], *, is_registered: bool) -> Outcome:
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
