"""An execution that this process has in memory: its state, inputs that wait, and what is decided but not written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from noetlvm.data.event import Event, Recorded
from noetlvm.machine.loaded import LoadedPlaybook, LoadedProgram
from noetlvm.machine.messages import CloseWork, Effect, Input, OpenWork, StopWork
from noetlvm.machine.payload import Offload
from noetlvm.machine.state import Child, Position, State
from noetlvm.server.credentials import Credentials
from noetlvm.store.interface import Execution, ExecutionRequest, QueuedCommand
from noetlvm.tools.call import Outcome, error, ok


class Ending(NamedTuple):
    """How an execution ended, or how it stands."""

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


class WaitingInput(NamedTuple):
    """An input that waits for its decision."""

    input: Input
    request: int = 0
    """Number of the stored request that it comes from; 0: none."""
    done: Callable[[bool], None] | None = None
    """Called once its events are durable, with whether it was accepted."""


class Active:
    """An execution in memory. Its state is that of the store, and of what it has decided since."""

    __slots__ = (
        "acknowledged", "awaited", "closed", "credentials", "decided", "done", "due", "effects", "events", "inbox",
        "offload", "opened", "playbook", "program", "row", "sent", "shared", "snapshot_seq", "start_key", "state",
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
        self.due: float | None = None
        """Time of its next timer."""
        self.snapshot_seq = 0
        self.start_key = ""
        """Of a new execution: no other may have it."""
        self.shared: Sequence[Recorded] = ()
        """Of a new execution that retries another: the log that both begin with, until it is written."""
        self.awaited: dict[str, tuple[Position, str]] = {}
        """Children by identifier: the thread that waits for each, and its key. A cache."""
        self.effects: list[Effect] = []
        """To be performed here."""
        self.forget()

    def forget(self) -> None:
        """Drop what waits for a write."""
        self.decided: list[WaitingInput] = []
        """Inputs of the decisions that are not written yet."""
        self.events: list[Event] = []
        self.opened: dict[Position, OpenWork] = {}
        self.closed: dict[Position, int] = {}
        """Lease up to which the command of each thread is withdrawn."""
        self.sent: list[ExecutionRequest] = []
        self.acknowledged: list[int] = []
        self.done: list[tuple[Callable[[bool], None], bool]] = []

    @property
    def execution_id(self) -> str:
        return self.row.execution_id

    @property
    def has_news(self) -> bool:
        """Tell whether anything waits for a write."""
        return bool(self.events or self.acknowledged or self.opened or self.closed or self.sent)

    def open(self, work: OpenWork) -> None:
        self.opened[work.run, work.iteration] = work

    def close(self, work: CloseWork | StopWork) -> None:
        position = work.run, work.iteration
        self.opened.pop(position, None)
        self.closed[position] = work.lease

    def commands(
        self, assign: Callable[[Active, OpenWork], tuple[str, float]]
    ) -> tuple[list[QueuedCommand], list[QueuedCommand]]:
        """Return the commands to open, claimed for the workers that are assigned to them, and those to close."""
        id = self.row.execution_id
        opened = [
            QueuedCommand(id, run, iteration, work.lease, work.step, work.pool, work.not_before, *assign(self, work))
            for (run, iteration), work in self.opened.items()
        ]
        return opened, [QueuedCommand(id, *position, lease) for position, lease in self.closed.items()]

    def project(self, now: float) -> Execution:
        """Return its row as it stands now."""
        state, row = self.state, self.row
        succeeded, failed, rejected = state.counts
        counts = {"ok": succeeded, "failed": failed, "rejected": rejected, "failures": state.failure_count}
        ended = now if state.is_over else None
        # Every write comes here, and `_replace` takes three times as long.
        return Execution(*row[:4], self.status, row.started, ended, row.parent, counts, state.seq, self.due, row.trace)

    def ending(self) -> Ending:
        return Ending.of(self.execution_id, self.status, self.state)

    @property
    def status(self) -> str:
        state = self.state
        return "paused" if state.paused else state.status if state.is_over else "running"


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
