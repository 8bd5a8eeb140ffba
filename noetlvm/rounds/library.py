"""Executions as the store has them, with their programs. Any thread may read them."""

from __future__ import annotations

from typing import NamedTuple

from noetlvm.machine.loaded import Bundle, LoadedPlaybook, LoadedProgram
from noetlvm.machine.state import State
from noetlvm.results.interface import ResultStore
from noetlvm.rounds.active import unoffered_store
from noetlvm.rounds.children import Children
from noetlvm.rounds.recovery import BundleCache, recovered
from noetlvm.rounds.requests import PreparedRetry, prepare_retry
from noetlvm.store.interface import Execution, StoreReader


class NotFoundError(LookupError):
    """The store has no such execution, or not what is needed to continue it."""


class Loaded(NamedTuple):
    """An execution as the store has it."""

    row: Execution
    program: LoadedProgram
    playbook: LoadedPlaybook
    state: State


class Library:
    """Reads executions of a store with their programs."""

    def __init__(self, store: StoreReader, results: ResultStore, *, is_shared: bool) -> None:
        """`is_shared`: other servers use the store too, so this one takes up requests to any execution."""
        self.store = store
        self.results = results
        self.is_shared = is_shared
        self.bundles = BundleCache(store)
        self.children = Children(store, results.get, self.bundle)

    def bundle(self, id: str) -> Bundle:
        """Return a bundle. Raises NotFoundError."""
        found = self.bundles.get(id)
        if found is None:
            raise NotFoundError(f"the store has no bundle {id}")
        return found

    def load(self, execution_id: str) -> Loaded:
        """Return an execution. Raises NotFoundError."""
        row = self.store.execution(execution_id)
        if row is None:
            raise NotFoundError(f"there is no execution {execution_id}")
        program = self.bundle(row.bundle).program
        unoffered = unoffered_store(self.results, program)
        if unoffered:
            raise NotFoundError(unoffered)
        return Loaded(row, program, program.playbooks[row.path], self.state(row))

    def prepare_retry(self, execution_id: str, bundle: Bundle | None = None) -> PreparedRetry:
        """Read what the retry of a failed execution needs. Raises NotFoundError, RefusedRetryError."""
        row = self.store.execution(execution_id)
        if row is None:
            raise NotFoundError(f"there is no execution {execution_id}")
        return prepare_retry(self.store, self.results.get, row, bundle or self.bundle(row.bundle))

    def playbook(self, execution_id: str) -> LoadedPlaybook:
        """Return the playbook of an execution. Raises NotFoundError."""
        row = self.store.execution(execution_id)
        if row is None:
            raise NotFoundError(f"there is no execution {execution_id}")
        return self.bundle(row.bundle).program.playbooks[row.path]

    def state(self, row: Execution) -> State:
        """Return the state up to a row: another server may have written more since that was read."""
        return recovered(self.store, row.execution_id, row.bundle, row.seq)
