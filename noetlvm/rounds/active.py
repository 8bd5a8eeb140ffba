"""An execution that this process has in memory: its state, inputs that wait, and what is decided but not written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from noetlvm.data.encoding import UnencodableError
from noetlvm.expr.errors import ExpressionError
from noetlvm.expr.operations import require_whole
from noetlvm.language.names import NAME_CHARS_MAX, has_control, is_key
from noetlvm.language.placement import POOL_CHARS_MAX
from noetlvm.limits import ARGS_BYTES_MAX, runtime_objection
from noetlvm.machine.loaded import LoadedPlaybook, LoadedProgram
from noetlvm.machine.loops import deep_merge
from noetlvm.machine.messages import OpenWork
from noetlvm.machine.payload import Offload, TooLargeError
from noetlvm.machine.state import Position, State
from noetlvm.results.interface import ResultStore
from noetlvm.results.offered import UnofferedStoreError, store_for
from noetlvm.rounds.credentials import Credentials
from noetlvm.rounds.identity import child_id
from noetlvm.rounds.pending import Pending, WaitingInput
from noetlvm.rounds.recovery import wants_snapshot
from noetlvm.store.interface import Append, Execution, QueuedCommand, Snapshot


class Ending(NamedTuple):
    """The ending of an execution, or its current status."""

    execution_id: str
    status: str
    """`success`, `failed` or `cancelled`; else it can be resumed."""
    ctx: dict[str, Any]
    result: Any
    failures: list[dict[str, Any]]
    failure_count: int
    event_count: int

    @classmethod
    def of(cls, execution_id: str, status: str, state: State) -> Ending:
        failures = list(state.failures)
        return cls(execution_id, status, state.ctx, state.result, failures, state.failure_count, state.seq)


class Active:
    """An execution in memory. Its state is that of the store, and of what it has decided since."""

    __slots__ = (
        "awaited", "credentials", "due", "inbox", "offload", "pending", "playbook", "program", "row", "snapshot_seq",
        "state", "used",
    )  # fmt: skip

    def __init__(
        self,
        row: Execution,
        program: LoadedProgram,
        playbook: LoadedPlaybook,
        state: State,
        credentials: Credentials,
        offload: Offload,
    ) -> None:
        self.row = row
        """As of the last write."""
        self.program = program
        self.playbook = playbook
        self.state = state
        self.credentials = credentials
        self.offload = offload
        self.inbox: list[WaitingInput] = []
        self.pending = Pending()
        self.due: float | None = None
        """Time of its next timer."""
        self.used = 0.0
        """When it last got an input, or was read."""
        self.snapshot_seq = state.seq
        self.awaited: dict[str, tuple[Position, str]] = {}
        """Children by identifier: the thread that waits for each, and its key. A cache."""

    @property
    def execution_id(self) -> str:
        return self.row.execution_id

    @property
    def is_idle(self) -> bool:
        """Return whether the store has everything of it."""
        return not self.inbox and self.pending.is_empty

    def commands(self, assign: Assign, now: float) -> tuple[list[QueuedCommand], list[QueuedCommand]]:
        """Return the commands to open, claimed for the workers that are assigned to them, and those to close.

        Of a local unit whose worker is not chosen yet, one command waits in the step's pool, and who claims it claims
        the others from the unit's own (S22). One whose time has not come waits in the step's pool too: when it comes,
        the worker may have ended the others, and then nothing would claim from the unit's pool.
        """
        id = self.row.execution_id
        opened: list[QueuedCommand] = []
        waiting: set[Position] = set()
        for (run, iteration), work in self.pending.opened.items():
            worker, until = assign(self, work)
            pool = work.pool
            if work.is_local and not worker and work.not_before <= now:
                pool = unit_pool(id, run, work.unit) if (run, work.unit) in waiting else pool
                waiting.add((run, work.unit))
            opened.append(
                QueuedCommand(id, run, iteration, work.lease, work.step, pool, work.not_before, worker, until)
            )
        return opened, [QueuedCommand(id, *position, lease) for position, lease in self.pending.closed.items()]

    def append(self, assign: Assign, now: float, snapshot_events: int) -> Append:
        """Return what is to be written of it."""
        pending, known = self.pending, self.row.seq
        opened, closed = self.commands(assign, now)
        return Append(
            self._current_row(),
            known,
            pending.events,
            opened,
            closed,
            pending.acknowledged,
            pending.sent,
            self._snapshot(snapshot_events),
            "" if known else pending.start_key,
        )

    def _current_row(self) -> Execution:
        state, row = self.state, self.row
        succeeded, failed, rejected = state.counts
        counts = {"ok": succeeded, "failed": failed, "rejected": rejected, "failures": state.failure_count}
        # It has ended with its last event; what is written later acknowledges requests.
        ended = row.ended
        if ended is None and state.is_over:
            ended = self.pending.events[-1].timestamp
        due = None if state.is_over else self.due
        # Every write comes here, and `_replace` takes three times as long.
        return Execution(*row[:4], self.status, row.started, ended, row.parent, counts, state.seq, due, row.trace)

    def _snapshot(self, least: int) -> Snapshot | None:
        state = self.state
        if state.is_over or not wants_snapshot(state.seq, self.snapshot_seq, least):
            return None
        return Snapshot(state.bundle, state.seq, state.to_data())

    def waiting_for(self, child: str) -> tuple[Position, str]:
        """Return the thread that waits for a child, and the child's key."""
        if child not in self.awaited:
            for run, iteration in self.state.children:
                key = self.state.runs[run].threads[iteration].offer[1]
                self.awaited[child_id(key)] = (run, iteration), key
        return self.awaited.get(child, ((0, ""), ""))

    def ending(self) -> Ending:
        return Ending.of(self.execution_id, self.status, self.state)

    @property
    def status(self) -> str:
        state = self.state
        return "paused" if state.paused else state.status if state.is_over else "running"


Assign = Callable[[Active, OpenWork], tuple[str, float]]
"""Returns the worker that gets a command, and until when; empty: it waits for a claim."""


def unit_pool(execution_id: str, run: int, unit: str) -> str:
    """Return the pool of commands that go to the worker that has another command of the same unit."""
    return f"{execution_id}/{run}/{unit}"


def unoffered_store(results: ResultStore, program: LoadedProgram) -> str:
    """Return why the large results of a program cannot be stored; empty: they can."""
    try:
        for playbook in program.playbooks.values():
            store_for(results, playbook.executor)
    except UnofferedStoreError as problem:
        return str(problem)
    return ""


def objection_to(playbook: LoadedPlaybook, payload: dict[str, Any], ctx: dict[str, Any]) -> str:
    """Return why a request cannot be run or recorded; empty: it can."""
    objection = runtime_objection(playbook.executor.get("version", ""))
    if objection:
        return f"{objection}; update noetlvm, or change `executor.version`"
    offload = Offload(playbook.limits.max_payload_bytes)
    pools = [name for step in playbook.steps.values() if len(name := step.pool) > POOL_CHARS_MAX or has_control(name)]
    if pools:
        return f"the name of a worker pool is too long or has a control character: {pools[0][:POOL_CHARS_MAX]!r}"
    odd = [key for key in ctx if not isinstance(key, str) or not is_key(key)]
    if odd:
        shown = str(odd[0])[:NAME_CHARS_MAX].encode("utf-8", "backslashreplace").decode()
        return f"the keys of `ctx` are plain names, and `{shown}` is none"
    try:
        require_whole(payload, "payload")
        require_whole(ctx, "ctx")
        offload.fit(payload)
        offload.fit(deep_merge(playbook.workload, payload))
        offload.fit(ctx, ARGS_BYTES_MAX)
    except (TooLargeError, UnencodableError) as problem:
        return f"the request cannot be recorded: {problem}"
    except ExpressionError as problem:
        return f"the request cannot be recorded: {problem.message}"
    return ""
