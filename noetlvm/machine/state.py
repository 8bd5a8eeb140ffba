"""The state of one execution: the fold of its log, and nothing else.

`fold.apply` is the only writer. Mappings that templates see (`ctx`, `results`) are replaced and never changed in place,
so that a running step retains what it was given (S57) at no cost. Two parts are not data of the log: `untested` and
`ctx_size` are caches (dropping them changes no decision), and `touched` collects what the events of the current
decision changed, from which its effects follow.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Self

from noetlvm.machine.payload import CtxSize

LAYOUT = 11
"""Version of the snapshot format. A snapshot of another version is not read: the log has everything."""

FAILURES_LISTED = 100
"""Unhandled failures that are listed one by one; all are counted."""

Position = tuple[int, str]
"""A part of a step run: number of the run and index path of the iteration, empty outside a loop."""

Offer = tuple[int, str]
"""What a thread needs: its lease, and the key of the child that it waits for, empty if it needs a worker."""


class View(NamedTuple):
    """What a step run sees of the rest of the execution."""

    ctx: dict[str, Any]
    results: dict[str, Any]
    """Result of the last completed run of each step."""


class _Shared:
    """Writes mappings that several owners share once, and refers to them by position."""

    def __init__(self) -> None:
        self.mappings: list[dict[str, Any]] = []
        self._positions: dict[int, int] = {}

    def view(self, view: View) -> list[int]:
        return [self._position(view.ctx), self._position(view.results)]

    def _position(self, mapping: dict[str, Any]) -> int:
        position = self._positions.setdefault(id(mapping), len(self.mappings))
        if position == len(self.mappings):
            self.mappings.append(mapping)
        return position


def _view(data: list[int], mappings: list[dict[str, Any]]) -> View:
    ctx, results = data
    return View(mappings[ctx], mappings[results])


class FrameState:
    """Where a pipeline stands after the last `task.done` of its thread; `Frame` continues from there.

    An attempt that only started is not part of it: the next worker runs it again, under the same numbers.
    """

    __slots__ = (
        "attempt",
        "iter",
        "label",
        "labels",
        "masked",
        "pc",
        "prev",
        "resumes",
        "rounds",
        "task",
        "waiting",
        "waits",
    )
    _FIELDS = (
        *("pc", "prev", "iter", "rounds", "task", "label", "attempt", "waiting", "masked", "labels"),
        *("waits", "resumes"),
    )

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
        """Seconds that a worker waits before its next attempt; None: no retry is due."""
        self.masked = False
        """A secret was removed from `prev`."""
        self.labels: dict[str, Any] = {}
        """Results by task label, each with whether a secret was removed from it; only of labels that are read (S48)."""
        self.waits = 0
        """Task runs that were waits between rounds."""
        self.resumes: dict[str, Any] | None = None
        """In such a wait: label and attempt of the task before it, which templates see."""

    def to_data(self) -> list[Any]:
        return [getattr(self, name) for name in self._FIELDS]

    @classmethod
    def from_data(cls, data: list[Any]) -> Self:
        made = cls()
        for name, value in zip(cls._FIELDS, data, strict=False):
            setattr(made, name, value)
        return made


class Child(NamedTuple):
    """A child execution that a task waits for (S43)."""

    key: str
    """Idempotency key: the child is started once under it."""
    path: str
    version: Any
    workload: dict[str, Any]
    due: float | None
    """When the task stops waiting; None: never."""
    returns: str = ""
    """Step of the child whose result is wanted; empty: the child's own choice."""


class Attempt(NamedTuple):
    """The last attempt of a task that a thread's worker has reported."""

    task: int = 0
    """Number of the task run."""
    number: int = 0
    has_ended: bool = True
    label: str = ""
    since: float = 0.0
    """When that was reported, by the time of the log."""

    def meta(self, now: float) -> dict[str, Any]:
        """Return `meta` of an outcome that the server records for it (formal §5)."""
        return {"attempt": self.number, "duration_ms": max(0, round((now - self.since) * 1000)), "ts": now}


NO_ATTEMPT = Attempt()


class Thread:
    """An open pipeline: of a step run, or of one iteration."""

    __slots__ = ("answer", "child", "frame", "lease", "opens", "reported", "started", "view")

    def __init__(self, view: View, lease: int, opens: float) -> None:
        self.view = view
        """What it sees: as of its opening, with its own writes (S57)."""
        self.lease = lease
        """Number under which a worker may report. It grows whenever a worker loses or leaves the thread."""
        self.opens = opens
        """When it may begin, by the rate of its loop (S53), or continue after a wait of the server's; 0: at once."""
        self.frame = FrameState()
        self.started = False
        """A worker has reported something of its iteration."""
        self.reported = NO_ATTEMPT
        """Only what is beyond it is news."""
        self.child: Child | None = None
        self.answer: dict[str, Any] | None = None
        """Outcome of that child."""

    @property
    def offer(self) -> Offer:
        return self.lease, self.child.key if self.child and self.answer is None else ""

    def to_data(self, shared: _Shared) -> list[Any]:
        child = list(self.child) if self.child else None
        return [
            shared.view(self.view),
            self.lease,
            self.frame.to_data(),
            self.started,
            list(self.reported),
            child,
            self.answer,
            self.opens,
        ]

    @classmethod
    def from_data(cls, data: list[Any], mappings: list[dict[str, Any]]) -> Self:
        view, lease, frame, started, reported, child, answer, opens = data
        made = cls(_view(view, mappings), lease, opens)
        made.frame = FrameState.from_data(frame)
        made.started, made.reported = started, Attempt(*reported)
        made.child, made.answer = Child(*child) if child else None, answer
        return made


class LoopRun:
    """One loop over one collection: a level of a loop step within one iteration of the level around it."""

    __slots__ = (
        "base", "bytes", "ended", "failed", "failures", "items", "leaf", "next", "ok", "parallel", "patches",
        "rate", "results", "sizes", "starts", "stored", "tolerant", "total", "width",
    )  # fmt: skip

    def __init__(self, data: dict[str, Any]) -> None:
        self.items: Any = data["items"]
        """The collection, or a reference to it."""
        self.total: int = data["total"]
        self.width: int = data["width"]
        self.parallel: bool = data["parallel"]
        self.leaf: bool = data["leaf"]
        """Its iterations run the pipeline; else each holds a loop."""
        self.rate: list[Any] | None = data.get("rate")
        """How many iterations may begin in how many seconds; None: any number."""
        self.starts: list[float] = []
        """When the last of them may begin, as many as the rate allows at once."""
        self.tolerant: bool = data["best_effort"]
        self.next = 0
        """Index of the first iteration that is not open yet."""
        self.ended = 0
        self.ok = 0
        self.failed = 0
        """Pipelines that ended so, in all loops inside too."""
        self.failures: dict[int, dict[str, Any]] = {}
        """Errors of its own iterations, by index."""
        self.results: list[Any] = [None] * self.total
        self.patches: dict[int, dict[str, Any]] = {}
        """What the iterations wrote to `ctx`; only for a parallel loop."""
        self.sizes: dict[int, int] = {}
        """Size of result and patch of each iteration that has ended and is not stored, in the order of ending."""
        self.bytes = 0
        """Their sum."""
        self.stored: list[list[Any]] = []
        """Chunks moved out of `results` and `patches`: indices, a reference to the results and one to the patches."""
        self.base: View | None = None
        """What was visible when it started; only for the outermost parallel loop."""

    def to_data(self, shared: _Shared) -> dict[str, Any]:
        return {
            "items": self.items,
            "total": self.total,
            "width": self.width,
            "parallel": self.parallel,
            "leaf": self.leaf,
            "best_effort": self.tolerant,
            "progress": [self.next, self.ended, self.ok, self.failed],
            "results": list(self.results),
            "patches": [list(pair) for pair in self.patches.items()],
            "sizes": [list(pair) for pair in self.sizes.items()],
            "stored": list(self.stored),
            "rate": self.rate,
            "starts": list(self.starts),
            "failures": [list(pair) for pair in self.failures.items()],
            "base": self.base and shared.view(self.base),
        }

    @classmethod
    def from_data(cls, data: dict[str, Any], mappings: list[dict[str, Any]]) -> Self:
        made = cls(data)
        made.next, made.ended, made.ok, made.failed = data["progress"]
        made.results = list(data["results"])
        made.patches = dict(data["patches"])
        made.sizes = dict(data["sizes"])
        made.bytes = sum(made.sizes.values())
        made.stored = list(data["stored"])
        made.starts = list(data["starts"])
        made.failures = dict(data["failures"])
        made.base = data["base"] and _view(data["base"], mappings)
        return made


class Run:
    """A step run that is open, or has ended and is not routed yet."""

    __slots__ = (
        "args", "boundary", "failure", "final", "leases", "loops", "patches", "since", "step", "threads", "view",
    )  # fmt: skip

    def __init__(self, step: str, args: dict[str, Any], final: bool, view: View) -> None:
        self.step = step
        self.args = args
        self.final = final
        """It is the run of `final_step` after everything else: nothing follows it (S4)."""
        self.view = view
        """What it sees: as of its scheduling (S57)."""
        self.since: float | None = None
        """When a worker first reported something; None: it waits for a worker."""
        self.threads: dict[str, Thread] = {}
        """Open pipelines by iteration."""
        self.loops: dict[str, LoopRun] = {}
        """Open loops by the iteration around them."""
        self.patches = 0
        """How often it has written to `ctx`."""
        self.leases: dict[str, int] = {}
        """First lease of threads that open later, by unit, where it is not 1: the one before was lost."""
        self.failure: list[Any] | None = None
        """Iteration and error that make a loop step fail once nothing of it runs (S27)."""
        self.boundary: dict[str, Any] | None = None
        """The boundary event as templates see it."""

    def to_data(self, shared: _Shared) -> dict[str, Any]:
        return {
            "step": self.step,
            "args": self.args,
            "final": self.final,
            "view": shared.view(self.view),
            "since": self.since,
            "threads": [[path, thread.to_data(shared)] for path, thread in self.threads.items()],
            "loops": [[path, loop.to_data(shared)] for path, loop in self.loops.items()],
            "patches": self.patches,
            "leases": dict(self.leases),
            "failure": self.failure,
            "boundary": self.boundary,
        }

    @classmethod
    def from_data(cls, data: dict[str, Any], mappings: list[dict[str, Any]]) -> Self:
        made = cls(data["step"], data["args"], data["final"], _view(data["view"], mappings))
        made.since = data["since"]
        made.threads = {path: Thread.from_data(thread, mappings) for path, thread in data["threads"]}
        made.loops = {path: LoopRun.from_data(loop, mappings) for path, loop in data["loops"]}
        made.patches, made.leases = data["patches"], dict(data["leases"])
        made.failure, made.boundary = data["failure"], data["boundary"]
        return made


class Token(NamedTuple):
    """A token that waits in front of a step."""

    step: str
    args: dict[str, Any]
    event: dict[str, Any] | None
    """The boundary event that made it, as templates see it, or a reference; None for the first and the final token."""
    final: bool
    is_denied: bool = False
    """Its gate has not admitted it, which is recorded."""


_PLAIN = (
    *(
        "execution_id",
        "bundle",
        "path",
        "parent",
        "depth",
        "trace",
        "returns",
        "retried_from",
        "status",
        "paused",
        "seq",
    ),
    *("now", "since"),
    *("workload", "writers", "result", "result_place", "failures", "failure_count", "counts"),
    *("last_token", "last_run", "last_boundary", "final_given"),
)
_PENDING = ("unstarted", "complete", "ended")
_DERIVED = ("children", "untested", "ctx_size", "touched")


class State:
    __slots__ = (*_PLAIN, *_PENDING, *_DERIVED, "runs", "tokens", "view")

    def __init__(self) -> None:
        self.execution_id = ""
        self.bundle = ""
        self.path = ""
        self.parent = ""
        """Execution that started this one; empty: none."""
        self.depth = 0
        self.trace = ""
        """The execution at the root of all that run for the same request; this one, if it has no parent."""
        self.returns = ""
        """Step whose result is the execution's; empty: the one that leads nowhere."""
        self.retried_from = ""
        """Failed execution whose log this one's begins with (S56); empty: none."""
        self.status = "new"
        """new, requested, running, cancelling, then success, failed or cancelled."""
        self.paused = False
        self.seq = 0
        """Events folded so far."""
        self.now = 0.0
        """When the last of them was recorded."""
        self.since = 0.0
        """When the workflow started."""
        self.workload: Any = {}
        self.view = View({}, {})
        self.writers: dict[str, list[int]] = {}
        """First write of each key of `ctx`: the earliest run that has written it, that run's patch, the place in it."""
        self.result: Any = None
        """Result of a step run that no arc leads on from: of the step that is last in the workflow, its last run."""
        self.result_place = 0
        """Position of that step."""
        self.failures: list[dict[str, Any]] = []
        self.failure_count = 0
        """Unhandled failures (S31)."""
        self.last_token = 0
        self.last_run = 0
        self.last_boundary: dict[str, Any] | None = None
        """Boundary event of the run that was routed last, as templates see it: the `event` of the tokens it sends."""
        self.final_given = False
        self.counts = [0, 0, 0]
        """Step runs that succeeded, step runs that failed, tokens that were rejected."""
        self.tokens: dict[int, Token] = {}
        self.runs: dict[int, Run] = {}
        # What needs a decision, in the order in which it came up.
        self.unstarted: dict[Position, None] = {}
        """Iterations, or runs as a whole, whose loop has not started."""
        self.complete: dict[Position, None] = {}
        """Loops all of whose iterations have ended."""
        self.ended: dict[int, None] = {}
        """Runs to route."""
        # Derived.
        self.children: dict[Position, None] = {}
        """Threads that wait for a child."""
        self.untested: dict[int, None] = {}
        """Tokens whose gate has to be tested again."""
        self.ctx_size: CtxSize | None = None
        self.touched: dict[Position, Offer | None] = {}
        """Threads that the events of this decision opened, changed or closed, and what each needed before."""

    @property
    def ctx(self) -> dict[str, Any]:
        return self.view.ctx

    @property
    def results(self) -> dict[str, Any]:
        return self.view.results

    @property
    def is_over(self) -> bool:
        return self.status in ("success", "failed", "cancelled")

    def thread(self, run: int, iteration: str) -> Thread | None:
        """Return an open thread; none of an execution that is being cancelled, which accepts no report."""
        found = self.runs.get(run)
        return found.threads.get(iteration) if found and self.status != "cancelling" else None

    def to_data(self) -> dict[str, Any]:
        """Return plain data: equal for equal states, and enough to continue from."""
        shared = _Shared()
        data: dict[str, Any] = {"layout": LAYOUT} | {name: getattr(self, name) for name in _PLAIN}
        data["failures"], data["counts"] = list(self.failures), list(self.counts)
        data["view"] = shared.view(self.view)
        data["tokens"] = [[number, list(token)] for number, token in self.tokens.items()]
        data["runs"] = [[number, run.to_data(shared)] for number, run in self.runs.items()]
        data["unstarted"] = [list(key) for key in self.unstarted]
        data["complete"] = [list(key) for key in self.complete]
        data["ended"] = list(self.ended)
        data["mappings"] = shared.mappings
        return data

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> Self:
        """Return the state that `to_data` describes."""
        made, mappings = cls(), data["mappings"]
        for name in _PLAIN:
            setattr(made, name, data[name])
        made.failures, made.counts = list(data["failures"]), list(data["counts"])
        made.view = _view(data["view"], mappings)
        made.tokens = {number: Token(*token) for number, token in data["tokens"]}
        made.runs = {number: Run.from_data(run, mappings) for number, run in data["runs"]}
        made.unstarted = dict.fromkeys(map(_position, data["unstarted"]))
        made.complete = dict.fromkeys(map(_position, data["complete"]))
        made.ended = dict.fromkeys(data["ended"])
        made.untested = dict.fromkeys(made.tokens)
        made.children = {
            (number, path): None
            for number, run in made.runs.items()
            for path, thread in run.threads.items()
            if thread.offer[1]
        }
        return made


def _position(pair: list[Any]) -> Position:
    number, path = pair
    return number, path
