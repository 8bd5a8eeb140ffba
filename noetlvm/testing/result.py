"""The result of a run in a test, with everything that a test may check."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

from noetlvm.data.event import Event
from noetlvm.data.references import Reference
from noetlvm.machine.payload import whole
from noetlvm.results.interface import MemoryResults, ResultStore
from noetlvm.rounds.recovery import folded
from noetlvm.store.interface import Execution, StoreReader

_SHORT_CHARS = 100


class CallMade(NamedTuple):
    """A tool that was called."""

    at: float
    """Seconds since the run began."""
    step: str
    iteration: str
    task: str
    attempt: int
    kind: str
    inputs: dict[str, Any]
    key: str
    """The task run's identifier: the same for all its attempts."""


class CallLog:
    """The calls of executions, and how many tools of each ran at once at most."""

    def __init__(self) -> None:
        self._calls: dict[str, list[CallMade]] = {}
        self._running: Counter[str] = Counter()
        self._most: Counter[str] = Counter()

    def begin(self, execution_id: str, made: CallMade) -> None:
        self._calls.setdefault(execution_id, []).append(made)
        self._running[execution_id] += 1
        self._most[execution_id] = max(self._most[execution_id], self._running[execution_id])

    def end(self, execution_id: str) -> None:
        self._running[execution_id] -= 1

    def played(self, execution_id: str) -> tuple[list[CallMade], int]:
        """Return the calls of an execution, and how many tools ran at once at most."""
        return list(self._calls.get(execution_id, ())), self._most[execution_id]


class RunResult(NamedTuple):
    """One execution, as its log and its calls show it."""

    execution_id: str
    status: str
    """`success`, `failed` or `cancelled`; `paused` or `running` if nothing could move any more."""
    ctx: dict[str, Any]
    result: Any
    failures: list[dict[str, Any]]
    events: list[Event]
    times: list[float]
    """When each event was recorded, in seconds since the run began."""
    calls: list[CallMade]
    in_flight: int
    """Most tools that ran at once."""
    children: list[RunResult]
    """Child executions, in the order in which they were started."""
    stored: dict[str, bytes]
    """Large results of all executions, by the keys of what refers to them."""

    def __repr__(self) -> str:
        """Return a summary in one line: all events would fill a page."""
        failed = f", failed: {self.failures[0]['error']['message']}" if self.failures else ""
        ran = f"{len(self.steps())} step runs, {len(self.calls)} calls, {len(self.events)} events"
        return f"<{self.status} after {self.seconds:g} s: {ran}, result {_short(self.result)}{failed}>"

    @property
    def seconds(self) -> float:
        """How long it took, by its own clock."""
        return self.times[-1] if self.times else 0

    def names(self) -> list[str]:
        """Return the events' names."""
        return [event.name for event in self.events]

    def steps(self) -> list[str]:
        """Return the steps that ran, in order."""
        return [event.data["step"] for event in self.events if event.name == "step.scheduled" and "step" in event.data]

    def to_data(self) -> dict[str, Any]:
        """Return it as JSON can hold it."""
        return {
            "status": self.status,
            "ctx": self.ctx,
            "result": self.result,
            "failures": shown(self.failures),
            "events": [shown(event._asdict()) | {"at": at} for event, at in zip(self.events, self.times, strict=True)],
            "calls": [shown(call._asdict()) for call in self.calls],
            "in_flight": self.in_flight,
            "children": [child.to_data() for child in self.children],
        }


def read_result(
    reader: StoreReader,
    results: ResultStore,
    row: Execution,
    played: Callable[[str], tuple[list[CallMade], int]],
    begin: float | None = None,
) -> RunResult:
    """Return the result of an execution from its store.

    `played` gives its calls, and how many tools ran at once at most. Times count from `begin`, by default its own.
    """
    id = row.execution_id
    state = folded(reader, id)
    log = list(reader.events(id))
    if begin is None:
        begin = log[0].timestamp if log else 0.0
    calls, in_flight = played(id)
    return RunResult(
        execution_id=id,
        status=row.status,
        ctx=whole(state.ctx, results.get),
        result=whole(state.result, results.get),
        failures=list(state.failures),
        events=[recorded.event for recorded in log],
        times=[recorded.timestamp - begin for recorded in log],
        calls=[call._replace(at=call.at - begin) for call in calls],
        in_flight=in_flight,
        children=[
            read_result(reader, results, child, played, begin) for child in reversed(reader.executions(parent=id))
        ],
        stored=results.blobs if isinstance(results, MemoryResults) else {},
    )


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHORT_CHARS else f"{text[: _SHORT_CHARS - 1]}…"


def shown(value: Any) -> Any:
    """Return data with references as people see them."""
    if type(value) is Reference:
        return value.to_data()
    if isinstance(value, dict):
        return {key: shown(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [shown(item) for item in value]
    return value
