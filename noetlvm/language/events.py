"""Every event an execution can record: its names, who reports it, its entity, its data and its status.

Names and meaning only. How an event changes state is the business of the machine that folds it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal, TypeAlias

from noetlvm.record import Record

# fmt: off
EventName: TypeAlias = Literal[
    "playbook.execution.requested", "playbook.request.evaluated", "workflow.started", "token.enqueued",
    "token.claimed", "token.denied", "token.rejected", "step.scheduled", "step.started", "task.started",
    "task.done", "child.finished", "ctx.patched", "step.done", "step.failed", "loop.started",
    "loop.iteration.started", "loop.iteration.done", "loop.iteration.failed", "loop.done", "next.evaluated",
    "workflow.finished", "playbook.processed", "execution.paused", "execution.resumed", "execution.cancelled",
    "execution.retried",
]
# fmt: on
"""A literal type: the type checker refuses an event, and a comparison with one, that the catalogue does not have."""


class Plane(StrEnum):
    """Who reports an event. Only the server ever writes it to the log."""

    SERVER = "server"
    WORKER = "worker"


class Entity(StrEnum):
    """What an event is about: the set of formal §10.1. A token is about the step that it waits for (S61)."""

    PLAYBOOK = "playbook"
    WORKFLOW = "workflow"
    STEP = "step"
    TASK = "task"
    LOOP = "loop"
    NEXT = "next"


class Status(StrEnum):
    """Status of the entity after the event (formal §10.1)."""

    IN_PROGRESS = "in_progress"
    SUCCESS = "success"
    ERROR = "error"
    PAUSED = "paused"


class Payload(Record):
    """One field of an event's `data`."""

    name: str
    doc: str
    optional: bool = False


class EventKind(Record):
    """One row of the catalogue."""

    name: EventName
    camel: str
    """The formal specification's name where it has one (formal §10.2), else one made the same way."""
    plane: Plane
    entity: Entity
    summary: str
    status: Status | None
    """Entity status after the event. None: derive it from the payload (error or success)."""
    payload: tuple[Payload, ...] = ()
    boundary: Status | None = None
    """The status it carries into routing, if the event makes the server evaluate `next` (S21)."""
    folded_into: EventName | None = None
    """The event that implies this one, where recording both would only make the log longer."""


def _payload(**fields: str) -> tuple[Payload, ...]:
    """Return fields by name; a text that begins with `?` describes one that may be absent."""
    return tuple(Payload(name, doc.removeprefix("?"), doc.startswith("?")) for name, doc in fields.items())


_SERVER, _WORKER = Plane.SERVER, Plane.WORKER
_GOING, _WELL, _BADLY = Status.IN_PROGRESS, Status.SUCCESS, Status.ERROR
_ERROR = "`{kind, retryable, message, details}`."
_RESULT = "What the pipeline gave: its last `_prev`."
_RULE = "?Number of the admission rule that denied it, from 1; one more than there are: no rule holds."
_RULE_AT = "?Where that rule was written."
_COUNTS = "`{total, ok, failed}`: how the pipelines of the loop ended."

# Planes are those of formal §10.2, which precedes step §8 (S1): loops belong to the data plane, though only the server
# sees iterations that several workers share (S22). A step without a tool, and a loop step that fails as a whole, get
# their boundary event from the server too (S27, S33).
_ROWS = (
    EventKind(
        "playbook.execution.requested",
        "PlaybookExecutionRequested",
        _SERVER,
        Entity.PLAYBOOK,
        "A run was requested.",
        _GOING,
        _payload(
            execution="Identifier of the execution.",
            bundle="Identifier of the bundle; empty: there is none to run.",
            path="Path of the playbook.",
            payload="What the request gives, to be merged over the workload defaults; left out of a refused one.",
            ctx="?What the request lets `ctx` begin with.",
            parent="?Parent execution, for a child.",
            depth="?Depth: how many executions are above a child.",
            trace="?The uppermost of them.",
            returns="?For a child: the step whose result the parent wants.",
        ),
    ),
    EventKind(
        "playbook.request.evaluated",
        "PlaybookRequestEvaluated",
        _SERVER,
        Entity.PLAYBOOK,
        "The request is sound, or is refused.",
        None,
        _payload(error="?Why it is refused; for a playbook that does not compile, `details.findings` has its errors."),
    ),
    EventKind(
        "workflow.started",
        "WorkflowStarted",
        _SERVER,
        Entity.WORKFLOW,
        "Workload and credentials are in place.",
        _GOING,
        _payload(workload="Defaults and request, merged; never changes."),
    ),
    EventKind(
        "token.enqueued",
        "TokenEnqueued",
        _SERVER,
        Entity.STEP,
        "A token was put in front of a step: the first one, one for each arc that fired, the final one, "
        "or one that a retry puts back.",
        _GOING,
        _payload(
            token="Number of the token.",
            step="Step it waits for.",
            args="What it carries.",
            final="?It is the token of `final_step`.",
            event="?Of a token that a retry puts back: the boundary event that first made it.",
        ),
    ),
    EventKind(
        "token.claimed",
        "TokenClaimed",
        _SERVER,
        Entity.STEP,
        "A step consumed a token.",
        _WELL,
        folded_into="step.scheduled",
    ),
    EventKind(
        "token.denied",
        "TokenDenied",
        _SERVER,
        Entity.STEP,
        "A gate did not admit a token, which waits from now on; recorded the first time only.",
        _GOING,
        _payload(token="Number of the token.", step="Step that it waits for.", rule=_RULE, at=_RULE_AT),
    ),
    EventKind(
        "token.rejected",
        "TokenRejected",
        _SERVER,
        Entity.STEP,
        "A token was not admitted: it is dropped, its gate cannot be tested, or nothing is left that could open it.",
        None,
        _payload(
            token="Number of the token.",
            step="Step that it waited for.",
            reason="`denied`, `at_rest`, `template` or `fuel`.",
            rule=_RULE,
            at=_RULE_AT,
            error="?Why the gate could not be tested.",
        ),
    ),
    EventKind(
        "step.scheduled",
        "StepScheduled",
        _SERVER,
        Entity.STEP,
        "A step consumed a token and is ready for a worker; or a lost lease was replaced.",
        _GOING,
        _payload(
            token="?Number of the token it consumed.",
            step="?Name of the step.",
            form="?`loop`, or `routing` for a step without a tool; else a pipeline.",
            lease="?Number of the lease that replaces a lost one.",
        ),
    ),
    EventKind("step.started", "StepStarted", _WORKER, Entity.STEP, "A worker began a step run.", _GOING),
    EventKind(
        "task.started",
        "TaskStarted",
        _WORKER,
        Entity.TASK,
        "An attempt of a task began.",
        _GOING,
        _payload(
            ts="?When it began.",
            inputs="?What the tool is given, secrets masked.",
            child="?`{path, version, workload, timeout}`: the child execution that it requests (S43).",
        ),
    ),
    EventKind(
        "task.done",
        "TaskProcessed",
        _WORKER,
        Entity.TASK,
        "An attempt of a task ended, with its outcome and directive.",
        None,
        _payload(
            outcome="`{status, result, error, meta}` and the tool's own part: `http`, `pg` or `py`.",
            do="`continue`, `jump`, `skip`, `break`, `fail` or `retry`.",
            pc="Where the pipeline continues.",
            iter="?What it writes to `iter`.",
            ctx="?What it writes to `ctx` in a parallel loop; elsewhere it is in `ctx.patched`.",
            wait_s="?Seconds to wait before the next attempt.",
            suspended="?The worker has left: after the wait the command is given out again.",
            rounds="?Round counters of the pipeline.",
            inputs="?What the tool was given, for a task that failed.",
            at="?Where the rule that failed it was written.",
            answered="?What the tool returned, if a rule that skips or cannot be evaluated replaced it.",
            masked="?A secret was taken out of the result that it hands on.",
            bound="?The result is readable under the task's label.",
            again="?A worker that takes over the pipeline runs it again for that secret.",
        ),
    ),
    EventKind(
        "child.finished",
        "ChildFinished",
        _SERVER,
        Entity.TASK,
        "The child execution that a task waits for has ended, could not be started, or took too long.",
        None,
        _payload(key="What the child was started under.", outcome="Outcome of the task: `{status, result, error}`."),
    ),
    EventKind(
        "ctx.patched",
        "CtxPatched",
        _SERVER,
        Entity.WORKFLOW,
        "Keys of `ctx` were written.",
        _WELL,
        _payload(patch="The keys and their new values."),
    ),
    EventKind(
        "step.done",
        "StepDone",
        _WORKER,
        Entity.STEP,
        "A step run succeeded.",
        _WELL,
        _payload(result=_RESULT),
        Status.SUCCESS,
    ),
    EventKind(
        "step.failed",
        "StepFailed",
        _WORKER,
        Entity.STEP,
        "A step run, looped or not, failed.",
        _BADLY,
        _payload(
            error=_ERROR,
            task="?Label of the task that failed.",
            at="?Where the rule or the task that failed was written.",
            failed_iteration="?For a loop: the iteration whose failure it is.",
            cancelled="?For a run that took longer than it may: its iterations that were cancelled.",
            loop=f"?For a loop: {_COUNTS}",
        ),
        Status.ERROR,
    ),
    EventKind(
        "loop.started",
        "LoopStarted",
        _WORKER,
        Entity.LOOP,
        "A loop has its collection and begins; for a nested one, within the iteration that the event names.",
        _GOING,
        _payload(
            items="The collection, or a reference to it.",
            total="How many iterations there are.",
            width="How many may be open at once.",
            parallel="Whether `ctx` writes are buffered until its end.",
            leaf="Whether its iterations run the pipeline, not a loop.",
            best_effort="Whether a failed iteration is only counted.",
            rate="?`[max, per]`: how many iterations begin in how many seconds (S53).",
        ),
    ),
    EventKind("loop.iteration.started", "LoopIterationStarted", _WORKER, Entity.LOOP, "An iteration began.", _GOING),
    EventKind(
        "loop.iteration.done",
        "LoopIterationCompleted",
        _WORKER,
        Entity.LOOP,
        "An iteration succeeded.",
        _WELL,
        _payload(
            result="What the pipeline gave; for an iteration that holds a loop, the list of its results.",
            ctx="?What the loop inside wrote to `ctx`, merged, where a parallel loop is around it.",
            stored="?Where results and writes of iterations before it are from now on, and which.",
        ),
    ),
    EventKind(
        "loop.iteration.failed",
        "LoopIterationFailed",
        _WORKER,
        Entity.LOOP,
        "An iteration failed.",
        _BADLY,
        _payload(
            error=_ERROR,
            task="?Label of the task that failed.",
            at="?Where the rule or the task that failed was written.",
            cancelled="?Another iteration failed before this one began, or its own loop ended; it counts as neither.",
            fatal="?The step fails whatever its failure mode: its `ctx` writes cannot be merged.",
        ),
    ),
    EventKind(
        "loop.done",
        "LoopDone",
        _WORKER,
        Entity.LOOP,
        "All iterations of a loop step have ended.",
        _WELL,
        _payload(result="Results of the iterations in index order, or a reference to them.", loop=_COUNTS),
        Status.SUCCESS,
    ),
    EventKind(
        "next.evaluated",
        "NextEvaluated",
        _SERVER,
        Entity.NEXT,
        "Arcs were tested and the firing ones chosen; a `token.enqueued` follows for each.",
        None,
        _payload(
            arcs="Numbers of the arcs that fired, from 0.",
            handled="?An arc that reads `event` took care of a failure.",
            error="?Why the arcs could not be evaluated, or that none held where one must.",
            place="?Where the step stands in the workflow, if no arc fired.",
        ),
    ),
    EventKind(
        "workflow.finished",
        "WorkflowFinished",
        _SERVER,
        Entity.WORKFLOW,
        "No token can move and nothing runs.",
        None,
        _payload(status="`success`, `failed` or `cancelled`."),
    ),
    EventKind(
        "playbook.processed",
        "PlaybookProcessed",
        _SERVER,
        Entity.PLAYBOOK,
        "The execution has ended.",
        None,
        _payload(status="`success`, `failed` or `cancelled`.", failures="?Number of failures that nobody handled."),
    ),
    EventKind(
        "execution.paused",
        "ExecutionPaused",
        _SERVER,
        Entity.PLAYBOOK,
        "No new work is given out until resumed.",
        Status.PAUSED,
    ),
    EventKind("execution.resumed", "ExecutionResumed", _SERVER, Entity.PLAYBOOK, "Work is given out again.", _GOING),
    EventKind(
        "execution.cancelled",
        "ExecutionCancelled",
        _SERVER,
        Entity.PLAYBOOK,
        "A request cancelled the execution.",
        _BADLY,
        _payload(children="Keys of the child executions that stop with it, the first hundred (S43)."),
    ),
    EventKind(
        "execution.retried",
        "ExecutionRetried",
        _SERVER,
        Entity.PLAYBOOK,
        "A failed execution, whose log this one's begins with, continues as this execution. Tokens of failures that "
        "nothing handled follow, and those that waited at its end.",
        _GOING,
        _payload(
            execution="Identifier of the new execution.",
            bundle="Identifier of its bundle.",
            retried_from="Execution that failed.",
            tokens="Number of tokens that are put back by the events that follow.",
            undone="What their runs had added to the counts of succeeded and failed runs and rejected tokens.",
        ),
    ),
)

EVENTS: dict[str, EventKind] = {row.name: row for row in _ROWS}

BOUNDARY: dict[str, EventKind] = {row.name: row for row in _ROWS if row.boundary}
"""The events that end a step run and so make the server evaluate its arcs."""
