"""Lets new executions in: of a request, of a failed one that is retried, of a parent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from noetlvm.machine.instructions import failure
from noetlvm.machine.loaded import Bundle, LoadedPlaybook, LoadedProgram
from noetlvm.machine.messages import Refuse, Request, Start
from noetlvm.machine.payload import Offload
from noetlvm.machine.state import State
from noetlvm.rounds.active import Active, objection_to, unoffered_store
from noetlvm.rounds.credentials import Credentials, Resolve, UnresolvedError
from noetlvm.rounds.library import Library
from noetlvm.rounds.pending import Done, Pending
from noetlvm.rounds.requests import PreparedRetry
from noetlvm.rounds.rounds import Rounds
from noetlvm.store.interface import Execution


class Admission:
    """Makes executions of what is requested. It does not read the store."""

    def __init__(self, rounds: Rounds, library: Library, resolve: Resolve, now: Callable[[], float]) -> None:
        self.resolve = resolve
        self._rounds = rounds
        self._library = library
        self._now = now

    def objection(self, bundle: Bundle, payload: dict[str, Any], ctx: dict[str, Any]) -> dict[str, Any] | None:
        """Return why a request cannot be run or recorded, as the error of its log (S61)."""
        program = bundle.program
        objection = objection_to(program.main, payload, ctx) or unoffered_store(self._library.results, program)
        return failure("request", objection) if objection else None

    def start(
        self,
        bundle: Bundle,
        payload: dict[str, Any],
        ctx: dict[str, Any],
        *,
        execution_id: str | None = None,
        start_key: str = "",
        done: Done | None = None,
    ) -> str:
        """Start the main playbook of a bundle to which there is no objection; return the execution's identifier.

        `done` is called once that is durable: with False if another execution has the start key.
        """
        id = execution_id or self._rounds.new_ids(self._now(), 1)[0]
        self._take(bundle)
        self.create(bundle, bundle.program.main, Request(id, bundle.id, payload, ctx=ctx), start_key, done)
        return id

    def retry(self, prepared: PreparedRetry, start_key: str = "", done: Done | None = None) -> str:
        """Continue a failed execution as a new one, and return its identifier. Raises UnresolvedError."""
        bundle, playbook, log, plan = prepared
        credentials = self.resolve(playbook.keychain)
        id = self._rounds.new_ids(self._now(), 1)[0]
        self._take(bundle)
        row = Execution(id, bundle.id, playbook.name, playbook.path, "running", self._now())
        active = self.made(row, bundle.program, playbook, plan.state, credentials)
        active.snapshot_seq, active.pending = 0, Pending(start_key, log)
        self._rounds.enlist(active)
        self._rounds.submit(active, plan.retry(id, bundle.id), done)
        return id

    def create(
        self, bundle: Bundle, playbook: LoadedPlaybook, request: Request, start_key: str = "", done: Done | None = None
    ) -> None:
        """Start a playbook, or record why its credentials are missing."""
        refused = None
        try:
            credentials = self.resolve(playbook.keychain)
        except UnresolvedError as problem:
            credentials, refused = Credentials(), failure("keychain", str(problem))
        row = Execution(
            request.execution_id,
            request.bundle,
            playbook.name,
            playbook.path,
            "running",
            self._now(),
            parent=request.parent,
            trace=request.trace,
        )
        active = self.made(row, bundle.program, playbook, State(), credentials)
        active.pending = Pending(start_key)
        self._rounds.enlist(active)
        self._rounds.submit(active, Refuse(request, refused) if refused else Start(request), done)

    def _take(self, bundle: Bundle) -> None:
        """Take a bundle that executions of this process run; the next write stores it."""
        if bundle.id not in self._library.bundles:
            self._rounds.store_bundle(bundle)
        self._library.bundles.put(bundle)

    def made(
        self, row: Execution, program: LoadedProgram, playbook: LoadedPlaybook, state: State, credentials: Credentials
    ) -> Active:
        """Return an execution for the memory of this process."""
        fetch, limit = self._library.results.get, playbook.limits.max_payload_bytes
        offload = Offload(limit, lambda reference: fetch(reference.key), redact=credentials.redact)
        active = Active(row, program, playbook, state, credentials, offload)
        active.used = self._now()
        return active
