"""One execution while this process drives it: what has come in for it, who works for it, and how lists show it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from noetlvm.data.event import Event
from noetlvm.engine.credentials import Credentials
from noetlvm.machine.control import Control
from noetlvm.machine.loaded import LoadedProgram
from noetlvm.machine.state import State
from noetlvm.store.interface import Execution, ExecutionRequest

if TYPE_CHECKING:
    import asyncio

    from noetlvm.engine.worker import Worker

Input = Callable[[], list[Event]]
"""Something that happened outside: gives it to the control machine and returns what that decides."""


class Ending(NamedTuple):
    """How an execution ended, or stands where it was left."""

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
        """Return how an execution stands in which nothing moves."""
        failures = list(state.failures)
        return cls(execution_id, status, state.ctx, state.result, failures, state.failure_count, state.seq)


class Actor:
    """An execution. Only the engine's tick lets it decide."""

    __slots__ = (
        "control",
        "credentials",
        "decided",
        "due",
        "inbox",
        "met",
        "program",
        "row",
        "snapshot_seq",
        "timer",
        "waiting",
        "workers",
    )

    def __init__(self, control: Control, program: LoadedProgram, credentials: Credentials, row: Execution) -> None:
        self.control = control
        self.program = program
        self.credentials = credentials
        self.row = row
        """How the store shows it, as of the last commit."""
        self.inbox: list[Input] = []
        self.decided: list[Event] = []
        """What it has decided since then."""
        self.met: list[ExecutionRequest] = []
        """Requests from outside that the next decision meets."""
        self.waiting: list[asyncio.Future[None]] = []
        """Those who wait until everything in the inbox is durable."""
        self.workers: dict[tuple[int, str], Worker] = {}
        """Pipelines that wait for something, by run and iteration."""
        self.due: float | None = None
        """When its timer rings."""
        self.timer: asyncio.Task[None] | None = None
        self.snapshot_seq = 0

    @property
    def execution_id(self) -> str:
        return self.row.execution_id

    @property
    def state(self) -> State:
        return self.control.state

    def decide(self, now: float) -> bool:
        """Let everything have happened that has come in, and all that follows from it; tell whether anything has."""
        self.control.set_time(now)
        inbox, self.inbox = self.inbox, []
        known = len(self.decided)
        for happened in inbox:
            self.decided += happened()
        self.decided += self.control.settle()
        return len(self.decided) > known

    def project(self, now: float) -> Execution:
        """Return how lists show it now."""
        state, row = self.control.state, self.row
        succeeded, failed, rejected = state.counts
        counts = {"ok": succeeded, "failed": failed, "rejected": rejected, "failures": state.failure_count}
        ended = now if state.is_over else None
        # Every commit comes here, and `_replace` takes three times as long.
        self.row = Execution(*row[:4], self._status(), row.started, ended, row.parent, counts, state.seq)
        return self.row

    def ending(self) -> Ending:
        """Return how it stands."""
        return Ending.of(self.execution_id, self._status(), self.state)

    def _status(self) -> str:
        state = self.control.state
        return "paused" if state.paused else state.status if state.is_over else "running"
