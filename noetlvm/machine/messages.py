"""What goes into a decision and what comes out of it: inputs, effects and the work of a command, as values.

`to_data` and `from_data` convert any of them to plain data and back: an inbox can be stored, and a command can be
sent to a worker on another host.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

from noetlvm.data.event import Event
from noetlvm.machine.state import Child, FrameState, Token

# ---- inputs


class Request(NamedTuple):
    """A request to run a playbook."""

    execution_id: str
    bundle: str
    payload: dict[str, Any]
    parent: str = ""
    """Execution that starts this one, for a child."""
    depth: int = 0
    """Number of executions above a child."""
    trace: str = ""
    """The topmost of them."""
    ctx: dict[str, Any] = {}
    """Initial `ctx`."""
    returns: str = ""
    """Step whose result is the execution's; empty: the one that leads nowhere."""


class Start(NamedTuple):
    """Start the execution."""

    request: Request


class Refuse(NamedTuple):
    """Record that a request cannot be run, for instance because a credential is missing (S44)."""

    request: Request
    error: dict[str, Any]


class Retry(NamedTuple):
    """Open a failed execution's log again, as the log of a new execution (S56)."""

    execution_id: str
    bundle: str
    retried_from: str
    """The execution that failed."""
    tokens: Sequence[Token]
    """To put back, in the order of their numbers."""
    undone: list[int]
    """What their runs added to the counts of the state."""


class WorkerReport(NamedTuple):
    """Events of a worker about its thread: about tasks, and last about the thread's end.

    That is `step.done` or `step.failed`, in a loop `loop.iteration.done` or `loop.iteration.failed`. Each event is
    decided on its own, so that a log does not depend on how a worker groups them (S51).
    """

    run: int
    iteration: str
    lease: int
    events: Sequence[Event]


class ChildFinished(NamedTuple):
    """The child execution that a thread waits for has ended, or cannot be started."""

    run: int
    iteration: str
    key: str
    outcome: dict[str, Any]


class LeaseLost(NamedTuple):
    """The holder of a lease is gone: its reports are stale from now on, and its threads are open again."""

    run: int
    iteration: str
    lease: int


class Released(NamedTuple):
    """A worker returns a thread that it does not finish."""

    run: int
    iteration: str
    lease: int


class TimerDue(NamedTuple):
    """Time has passed: overdue step runs fail, and waits for children end."""


class Pause(NamedTuple):
    """Open no new work (S36)."""


class Resume(NamedTuple):
    """Open work again, after a pause or where no process had the execution."""


class Cancel(NamedTuple):
    """End the execution: nothing is opened or accepted any more, and children are cancelled too (S36, S43)."""


class Continue(NamedTuple):
    """Continue an earlier decision that was cut."""


Input: TypeAlias = (
    Start
    | Refuse
    | Retry
    | WorkerReport
    | ChildFinished
    | LeaseLost
    | Released
    | TimerDue
    | Pause
    | Resume
    | Cancel
    | Continue
)

# ---- effects, to be performed when the events are durable


class OpenWork(NamedTuple):
    """Offer a thread to the workers of a pool. It replaces an offer of the same thread under an older lease."""

    run: int
    iteration: str
    unit: str
    """The part of the run that stays with one worker: iterations of a local loop share it (S22)."""
    lease: int
    step: str
    pool: str
    not_before: float = 0.0
    again: bool = False
    """It may be open under this lease already: the execution is resumed."""

    @property
    def is_local(self) -> bool:
        """Return whether other iterations belong to the same unit, and to the same worker."""
        return self.unit != self.iteration


class CloseWork(NamedTuple):
    """Withdraw the offer: the worker that had it is done with it."""

    run: int
    iteration: str
    lease: int


class StopWork(NamedTuple):
    """Withdraw the offer, and stop the worker that has it: nothing it reports is accepted any more."""

    run: int
    iteration: str
    lease: int


class StartChild(NamedTuple):
    """Start a child execution, once for its key."""

    run: int
    iteration: str
    child: Child


class CancelChild(NamedTuple):
    """Cancel the child execution of this key."""

    key: str


class WakeAt(NamedTuple):
    """Give `TimerDue` at this time."""

    at: float


Effect: TypeAlias = OpenWork | CloseWork | StopWork | StartChild | CancelChild | WakeAt


class Decision(NamedTuple):
    """The events that an input causes, already folded into the state, and what to do once they are durable."""

    events: list[Event]
    effects: list[Effect]
    rest: tuple[Input, ...] = ()
    """What is left of an input whose decision was cut: to be decided next."""


# ---- work


class Work(NamedTuple):
    """Everything that a worker needs to run a thread's pipeline, the bundle aside."""

    execution_id: str
    bundle: str
    path: str
    """Of the playbook in the bundle."""
    step: str
    run: int
    iteration: str
    lease: int
    args: dict[str, Any]
    ctx: dict[str, Any]
    """What the step's code can read of it; so for `results` and `workload`."""
    results: dict[str, Any]
    """Results of other steps."""
    workload: dict[str, Any]
    iter: dict[str, Any] | None
    """The element, `index` and `parent`; what `set_iter` wrote is in `frame`. None outside a loop."""
    frame: FrameState
    answer: dict[str, Any] | None
    """Outcome of the child execution that the pipeline waited for."""
    trace: str
    keychain: tuple[str, ...]
    """Names of the keychain entries that the step's code can read."""


# ---- as data

_KINDS: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        *(
            Start,
            Refuse,
            Retry,
            WorkerReport,
            ChildFinished,
            LeaseLost,
            Released,
            TimerDue,
            Pause,
            Resume,
            Cancel,
            Continue,
        ),
        *(OpenWork, CloseWork, StopWork, StartChild, CancelChild, WakeAt, Work),
    )
}
_PARTS: dict[str, Any] = {"request": Request, "child": Child}


def to_data(message: Any) -> list[Any]:
    """Return an input, an effect or work as plain data."""
    return [type(message).__name__, *(_part_data(value) for value in message)]


def _part_data(value: Any) -> Any:
    if isinstance(value, FrameState):
        return value.to_data()
    if type(value) in (Request, Child):
        return list(value)
    if isinstance(value, (list, tuple)) and value and type(value[0]) in (Event, Token):
        return [list(row) for row in value]
    return list(value) if type(value) is tuple else value


def from_data(data: Sequence[Any]) -> Any:
    """Return the message that `to_data` described. Raises ValueError for data that describes none."""
    name, *values = data
    kind = _KINDS.get(name)
    if kind is None or len(values) != len(kind._fields):
        raise ValueError(f"`{name}` with {len(values)} fields is not a message")
    return kind(*(_part(field, value) for field, value in zip(kind._fields, values, strict=True)))


def _part(field: str, value: Any) -> Any:
    if field in _PARTS:
        return _PARTS[field](*value)
    if field == "tokens":
        return [Token(*token) for token in value]
    if field == "events":
        return [Event(*event) for event in value]
    if field == "frame":
        return FrameState.from_data(value)
    return tuple(value) if field == "keychain" else value
