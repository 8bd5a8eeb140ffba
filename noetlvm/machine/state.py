"""What is known of one execution: the fold of its log, and nothing else.

`fold.apply` is the only writer; everybody else reads. `ctx` is replaced, never changed in place, so that a loop can
hold the one of its start. `opened` is the single transient part: which threads became ready since somebody asked.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Self

LAYOUT = 3
"""Number of the form in which a state is written down. One in another form is not read: the log has it all."""

FAILURES_KEPT = 100
"""Unhandled failures that are remembered one by one; all are counted."""


class Command(NamedTuple):
    """Work to hand out: one logical thread, for whoever holds the lease of this number."""

    run: int
    iteration: str
    lease: int
    unit: str
    """The part of the run that one lease covers: iterations of a local loop share their run's lease (S22)."""


class FrameState:
    """Where a pipeline stands after the last `task.done` of its thread; `Frame` goes on from there.

    An attempt that only began is not in it: whoever takes over runs it again, under the same numbers.
    """

    __slots__ = ("attempt", "iter", "label", "labels", "masked", "pc", "prev", "rounds", "since", "task", "waiting")
    _FIELDS = ("pc", "prev", "iter", "rounds", "task", "label", "attempt", "waiting", "since", "masked", "labels")

    def __init__(self) -> None:
        self.pc = 0
        self.prev: Any = None
        self.iter: dict[str, Any] = {}
        """What `set_iter` wrote; the element, `index` and `parent` are not in it."""
        self.rounds: list[int] = []
        self.task = 0
        """Number of the last task run; a retry is due in it if `waiting` is set."""
        self.label = ""
        self.attempt = 0
        """Its last attempt."""
        self.waiting: float | None = None
        """Seconds to wait before its next attempt; None: no retry is due."""
        self.since: Any = None
        """When that wait began, as the outcome's `meta.ts` says it."""
        self.masked = False
        """A secret was taken out of `prev`."""
        self.labels: dict[str, Any] = {}
        """Results by task label, each with whether a secret was taken out of it; only of labels that are read (S48)."""

    def to_data(self) -> list[Any]:
        return [getattr(self, name) for name in self._FIELDS]

    @classmethod
    def from_data(cls, data: list[Any]) -> Self:
        made = cls()
        for name, value in zip(cls._FIELDS, data, strict=False):  # a snapshot of an earlier version has fewer
            setattr(made, name, value)
        return made


class Child(NamedTuple):
    """A child execution that a task asked for and waits for (S43)."""

    key: str
    """What the child is started under, once, however often it is asked for."""
    path: str
    version: Any
    workload: dict[str, Any]
    due: float | None
    """When the task stops waiting; None: never."""


class Thread:
    """One pipeline that is open: of a step run, or of one iteration."""

    __slots__ = ("child", "frame", "heard", "started")

    def __init__(self) -> None:
        self.frame = FrameState()
        self.started = False
        """Something was heard of it."""
        self.heard: tuple[int, int, bool] = (0, 0, True)
        """The last task run, attempt and whether that has ended; a report tells something new only beyond it."""
        self.child: Child | None = None

    def to_data(self) -> list[Any]:
        child = list(self.child) if self.child else None
        return [self.frame.to_data(), self.started, list(self.heard), child]

    @classmethod
    def from_data(cls, data: list[Any]) -> Self:
        made = cls()
        made.frame = FrameState.from_data(data[0])
        task, attempt, has_ended = data[2]
        made.started, made.heard = data[1], (task, attempt, has_ended)
        made.child = Child(*data[3]) if data[3] else None
        return made


class Loop:
    """One loop over one collection: a level of a loop step within one iteration of the level around it."""

    __slots__ = (
        "base",
        "ended",
        "failed",
        "items",
        "leaf",
        "next",
        "ok",
        "parallel",
        "patches",
        "results",
        "stored",
        "tolerant",
        "total",
        "width",
    )

    def __init__(self, data: dict[str, Any]) -> None:
        self.items: Any = data["items"]
        """The collection, or a reference to it."""
        self.total: int = data["total"]
        self.width: int = data["width"]
        self.parallel: bool = data["parallel"]
        self.leaf: bool = data["leaf"]
        """Its iterations run the pipeline; else each holds a loop."""
        self.tolerant: bool = data["best_effort"]
        self.next = 0
        """Index of the first iteration that was not opened yet."""
        self.ended = 0
        self.ok = 0
        self.failed = 0
        """Pipelines that ended so, in all loops inside too."""
        self.results: list[Any] = [None] * self.total
        self.stored: list[list[Any]] = []
        """What was put aside and is in `results` and `patches` no more: indices, and a reference to each of both."""
        self.patches: dict[int, dict[str, Any]] = {}
        """What the iterations wrote to `ctx`; only for a parallel loop."""
        self.base: dict[str, Any] | None = None
        """The `ctx` of its start; only for the outermost parallel loop."""

    def to_data(self) -> dict[str, Any]:
        return {
            "items": self.items,
            "total": self.total,
            "width": self.width,
            "parallel": self.parallel,
            "leaf": self.leaf,
            "best_effort": self.tolerant,
            "progress": [self.next, self.ended, self.ok, self.failed],
            "results": list(self.results),
            "stored": list(self.stored),
            "patches": [[index, self.patches[index]] for index in sorted(self.patches)],
            "base": self.base,
        }

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> Self:
        made = cls(data)
        made.next, made.ended, made.ok, made.failed = data["progress"]
        made.results = list(data["results"])
        made.stored = list(data.get("stored", ()))  # a snapshot of an earlier version has none
        made.patches = dict(data["patches"])
        made.base = data["base"]
        return made


class Run:
    """A step run that is open, or has ended and was not routed yet."""

    __slots__ = ("args", "boundary", "failure", "final", "leases", "loops", "since", "step", "threads")

    def __init__(self, step: str, args: dict[str, Any], final: bool) -> None:
        self.step = step
        self.args = args
        self.final = final
        """It is the run of `final_step` after everything else: nothing follows it (S4)."""
        self.since: float | None = None
        """When the first was heard of it; None: it waits for a worker."""
        self.threads: dict[str, Thread] = {}
        """Open pipelines by iteration."""
        self.loops: dict[str, Loop] = {}
        """Open loops by the iteration around them."""
        self.leases: dict[str, int] = {}
        """Current lease by unit, where it is not the first."""
        self.failure: list[Any] | None = None
        """Iteration and error that make a loop step fail once nothing of it runs any more (S27)."""
        self.boundary: dict[str, Any] | None = None
        """The boundary event as templates see it."""

    def to_data(self) -> dict[str, Any]:
        return {
            "step": self.step,
            "args": self.args,
            "final": self.final,
            "since": self.since,
            "threads": [[path, thread.to_data()] for path, thread in self.threads.items()],
            "loops": [[path, loop.to_data()] for path, loop in self.loops.items()],
            "leases": dict(self.leases),
            "failure": self.failure,
            "boundary": self.boundary,
        }

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> Self:
        made = cls(data["step"], data["args"], data["final"])
        made.since = data["since"]
        made.threads = {path: Thread.from_data(thread) for path, thread in data["threads"]}
        made.loops = {path: Loop.from_data(loop) for path, loop in data["loops"]}
        made.leases = dict(data["leases"])
        made.failure, made.boundary = data["failure"], data["boundary"]
        return made


class Token(NamedTuple):
    """A token that waits in front of a step."""

    step: str
    args: dict[str, Any]
    event: dict[str, Any] | None
    """The boundary event that made it, as templates see it; None for the first and the final token."""
    final: bool


_PLAIN = (
    *("execution_id", "bundle", "path", "parent", "depth", "trace", "status", "paused", "seq"),
    *("now", "since"),
    *("workload", "ctx", "results", "result", "result_place", "failures", "failure_count", "counts"),
    *("last_token", "last_run", "final_given"),
)
_WAITING = ("unstarted", "complete", "ended")


class State:
    """One execution."""

    __slots__ = (*_PLAIN, *_WAITING, "opened", "runs", "tokens")

    def __init__(self) -> None:
        self.execution_id = ""
        self.bundle = ""
        self.path = ""
        self.parent = ""
        """Execution that started this one; empty: none."""
        self.depth = 0
        self.trace = ""
        """The execution at the top of all that run for the same request; this one, if it has no parent."""
        self.status = "new"
        """new, requested, running, then success, failed or cancelled."""
        self.paused = False
        self.seq = 0
        """Events folded so far."""
        self.now = 0.0
        """When the last of them was recorded."""
        self.since = 0.0
        """When the workflow started."""
        self.workload: Any = {}
        self.ctx: dict[str, Any] = {}
        self.results: dict[str, Any] = {}
        """Result of the last completed run of each step."""
        self.result: Any = None
        """Result of a step run that no arc led on from: of the step that stands last in the workflow, its last run."""
        self.result_place = 0
        """Where that step stands."""
        self.failures: list[dict[str, Any]] = []
        self.failure_count = 0
        """Failures that nobody handled (S31)."""
        self.last_token = 0
        self.last_run = 0
        self.final_given = False
        self.counts = [0, 0, 0]
        """Step runs that succeeded, step runs that failed, tokens that were rejected."""
        self.tokens: dict[int, Token] = {}
        self.runs: dict[int, Run] = {}
        # What waits for a decision, in the order in which it came up.
        self.unstarted: dict[tuple[int, str], None] = {}
        """Iterations, or runs as a whole, whose loop has not begun."""
        self.complete: dict[tuple[int, str], None] = {}
        """Loops all of whose iterations have ended."""
        self.ended: dict[int, None] = {}
        """Runs to route."""
        self.opened: dict[tuple[int, str], None] = {}
        """Threads that became ready. Transient: the machine hands them out, and a restored state offers all."""

    @property
    def is_over(self) -> bool:
        return self.status in ("success", "failed", "cancelled")

    def to_data(self) -> dict[str, Any]:
        """Return plain data: equal for equal states, and enough to go on from."""
        data: dict[str, Any] = {"layout": LAYOUT} | {name: getattr(self, name) for name in _PLAIN}
        data["failures"], data["counts"] = list(self.failures), list(self.counts)
        data["results"] = dict(self.results)
        data["tokens"] = [[number, list(token)] for number, token in self.tokens.items()]
        data["runs"] = [[number, run.to_data()] for number, run in self.runs.items()]
        data["unstarted"] = [list(key) for key in self.unstarted]
        data["complete"] = [list(key) for key in self.complete]
        data["ended"] = list(self.ended)
        return data

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> Self:
        """Return the state that `to_data` told of; every open thread is ready in it."""
        made = cls()
        for name in _PLAIN:
            setattr(made, name, data.get(name, getattr(made, name)))  # a snapshot of an earlier version has fewer
        made.failures, made.counts, made.results = list(data["failures"]), list(data["counts"]), dict(data["results"])
        made.tokens = {number: Token(*token) for number, token in data["tokens"]}
        made.runs = {number: Run.from_data(run) for number, run in data["runs"]}
        made.unstarted = dict.fromkeys(map(_key, data["unstarted"]))
        made.complete = dict.fromkeys(map(_key, data["complete"]))
        made.ended = dict.fromkeys(data["ended"])
        made.reopen()
        return made

    def reopen(self) -> None:
        """Offer every open thread again: after a restart nobody works on any of them."""
        self.opened = {(number, path): None for number, run in self.runs.items() for path in run.threads}


def _key(pair: list[Any]) -> tuple[int, str]:
    number, path = pair
    return number, path
