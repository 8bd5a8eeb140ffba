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
_RESULT = "Result of the pipeline: its last `_prev`."
_RULE = "?Number of the admission rule that denied it, from 1. If no rule matched: the number of rules plus 1."
_RULE_AT = "?Position of that rule in the playbook."
_CANCELLED = "?The server ended it: the step exceeded a time limit, or the execution was cancelled."
_COUNTS = "`{total, ok, failed}`: numbers of pipeline runs of the loop."

# Planes are those of formal §10.2, which precedes step §8 (S1): loops belong to the data plane, though only the server
# sees iterations that several workers share (S22). A step without a tool, and a loop step that fails as a whole, get
# their boundary event from the server too (S27, S33).
_ROWS = (
    EventKind(
        "playbook.execution.requested",
        "PlaybookExecutionRequested",
        _SERVER,
        Entity.PLAYBOOK,
        "An execution was requested.",
        _GOING,
        _payload(
            execution="Identifier of the execution.",
            bundle="Identifier of the bundle; empty if the request was refused without one.",
            path="Path of the playbook.",
            payload="Payload of the request, which is merged over the workload defaults; absent in a refused request.",
            ctx="?Initial `ctx` of the request.",
            parent="?Parent execution, for a child.",
            depth="?For a child: the number of its ancestors.",
            trace="?For a child: its topmost ancestor.",
            returns="?For a child: the step whose result the parent uses (`return_step`).",
        ),
    ),
    EventKind(
        "playbook.request.evaluated",
        "PlaybookRequestEvaluated",
        _SERVER,
        Entity.PLAYBOOK,
        "The request was accepted or refused.",
        None,
        _payload(
            error="?Reason of the refusal; if the playbook does not compile, `details.findings` lists its errors."
        ),
    ),
    EventKind(
        "workflow.started",
        "WorkflowStarted",
        _SERVER,
        Entity.WORKFLOW,
        "The execution starts; workload and credentials are resolved.",
        _GOING,
        _payload(workload="Workload: the defaults merged with the payload. It never changes."),
    ),
    EventKind(
        "token.enqueued",
        "TokenEnqueued",
        _SERVER,
        Entity.STEP,
        "A token was created for a step: the entry token, a token for an arc that fired, the final token, "
        "or a token that a retry restores.",
        _GOING,
        _payload(
            token="Number of the token.",
            step="Step for which it waits.",
            args="Arguments of the token.",
            final="?It is the token of `final_step`.",
            event="?For a token that a retry restores: the boundary event that created it first.",
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
        "A gate did not admit a token, and the token waits. Recorded once for each token.",
        _GOING,
        _payload(token="Number of the token.", step="Step for which it waits.", rule=_RULE, at=_RULE_AT),
    ),
    EventKind(
        "token.rejected",
        "TokenRejected",
        _SERVER,
        Entity.STEP,
        "A token was rejected: its gate drops it, its gate cannot be evaluated, or the execution ends while it waits.",
        None,
        _payload(
            token="Number of the token.",
            step="Step for which it waited.",
            reason="`denied`, `at_rest`, `template` or `fuel`.",
            rule=_RULE,
            at=_RULE_AT,
            error="?Error in the evaluation of the gate.",
        ),
    ),
    EventKind(
        "step.scheduled",
        "StepScheduled",
        _SERVER,
        Entity.STEP,
        "A step consumed a token and is ready for a worker, or a lost lease was replaced.",
        _GOING,
        _payload(
            token="?Number of the token it consumed.",
            step="?Name of the step.",
            form="?`loop`, or `routing` for a step without a tool; absent for a pipeline.",
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
            ts="?Time of the start; absent if its tool is not called: its inputs are no data, or a rule skips it.",
            inputs="?Inputs of the tool, with secrets masked.",
            child="?`{path, version, workload, timeout}` of the child execution that it requests (S43).",
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
            pc="Number of the instruction at which the pipeline continues.",
            iter="?Keys and values that it writes to `iter`.",
            ctx="?In a parallel loop: keys and values that it writes to `ctx`. Otherwise `ctx.patched` has them.",
            wait_s="?Seconds to wait before the next attempt.",
            suspended="?The worker has released the pipeline; the command is available again after the wait.",
            rounds="?Round counters of the pipeline.",
            inputs="?For a failed task: the inputs of the tool.",
            at="?For a failed task: position of the rule that failed it.",
            answered="?Outcome of the tool, if a rule replaced it: a `skip`, or a rule that could not be evaluated.",
            masked="?The recorded result contains a masked secret.",
            resumes="?For a wait between rounds: label and attempt of the task before it.",
            bound="?Later tasks can read the result by the task's label.",
            again="?A worker that takes over the pipeline runs the task again to read the masked secret.",
            cancelled=_CANCELLED,
        ),
    ),
    EventKind(
        "child.finished",
        "ChildFinished",
        _SERVER,
        Entity.TASK,
        "The child execution that a task waits for has ended, could not be started, or took too long.",
        None,
        _payload(key="Start key of the child.", outcome="Outcome of the task: `{status, result, error}`."),
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
        "A step run failed, with or without a loop.",
        _BADLY,
        _payload(
            error=_ERROR,
            task="?Label of the task that failed.",
            at="?Position of the rule or task that failed.",
            failed_iteration="?For a loop: the iteration that failed.",
            cancelled=_CANCELLED,
            loop=f"?For a loop: {_COUNTS}",
        ),
        Status.ERROR,
    ),
    EventKind(
        "loop.started",
        "LoopStarted",
        _WORKER,
        Entity.LOOP,
        "A loop started. For a nested loop, the event names the enclosing iteration.",
        _GOING,
        _payload(
            items="The collection, or a reference to it.",
            total="Number of iterations.",
            width="Number of iterations that may run at once.",
            parallel="Whether writes to `ctx` are merged at the end of the loop.",
            leaf="Whether its iterations run the pipeline and not an inner loop.",
            best_effort="Whether a failed iteration does not fail the step.",
            rate="?`[max, per]`: at most `max` iterations start in `per` seconds (S53).",
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
            result="Result of the pipeline; for an iteration that contains a loop, the list of its results.",
            ctx="?Inside a parallel loop: the merged writes of the inner loop to `ctx`.",
            stored="?Earlier iterations whose results and writes moved to the result store, with the references.",
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
            at="?Position of the rule or task that failed.",
            cancelled="?The server ended it: another iteration failed, the step exceeded a time limit, or the "
            "execution was cancelled. Not counted as ok or failed.",
            fatal="?The step fails even with `best_effort`, because the writes to `ctx` cannot be merged.",
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
        "The router evaluated its arcs. A `token.enqueued` follows for each arc that fires.",
        None,
        _payload(
            arcs="Numbers of the arcs that fired, from 0.",
            handled="?The failure is handled: an arc whose guard reads `event` fired.",
            error="?Error in the evaluation of the arcs, or that no arc fired although one is required.",
            place="?If no arc fired: the position of the step in the workflow.",
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
        _payload(status="`success`, `failed` or `cancelled`.", failures="?Number of unhandled failures."),
    ),
    EventKind(
        "execution.paused",
        "ExecutionPaused",
        _SERVER,
        Entity.PLAYBOOK,
        "The execution was paused; no work starts until it is resumed.",
        Status.PAUSED,
    ),
    EventKind("execution.resumed", "ExecutionResumed", _SERVER, Entity.PLAYBOOK, "The execution was resumed.", _GOING),
    EventKind(
        "execution.cancelled",
        "ExecutionCancelled",
        _SERVER,
        Entity.PLAYBOOK,
        "A request cancelled the execution.",
        _BADLY,
        _payload(children="Start keys of the child executions that are cancelled too, at most a hundred (S43)."),
    ),
    EventKind(
        "execution.retried",
        "ExecutionRetried",
        _SERVER,
        Entity.PLAYBOOK,
        "A failed execution continues as this execution, whose log begins with a copy of the failed one. The tokens of "
        "unhandled failures follow, and the tokens that waited at the end.",
        _GOING,
        _payload(
            execution="Identifier of the new execution.",
            bundle="Identifier of its bundle.",
            retried_from="Identifier of the failed execution.",
            tokens="Number of tokens that the next events restore.",
            undone="Numbers by which the counts of succeeded runs, failed runs and rejected tokens are reduced.",
        ),
    ),
)

EVENTS: dict[str, EventKind] = {row.name: row for row in _ROWS}

BOUNDARY: dict[str, EventKind] = {row.name: row for row in _ROWS if row.boundary}
"""The events that end a step run and so make the server evaluate its arcs."""
