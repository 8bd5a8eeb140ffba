"""Every event an execution can record: its dotted name, its CamelCase name, who reports it and what it is about.

Names and meaning only. What an event carries and how it changes state is the business of the machine that folds it.
"""

from __future__ import annotations

from enum import StrEnum

from noetlvm.record import Record


class Plane(StrEnum):
    """Who reports an event. Only the server ever writes it to the log."""

    SERVER = "server"
    WORKER = "worker"


class Entity(StrEnum):
    """What an event is about."""

    PLAYBOOK = "playbook"
    WORKFLOW = "workflow"
    STEP = "step"
    TASK = "task"
    LOOP = "loop"
    NEXT = "next"
    TOKEN = "token"


class Status(StrEnum):
    """How the entity stands once the event has happened (formal §10.1)."""

    IN_PROGRESS = "in_progress"
    SUCCESS = "success"
    ERROR = "error"
    PAUSED = "paused"


class Event(Record):
    """One row of the catalogue."""

    name: str
    camel: str
    """The formal specification's name where it has one (formal §10.2), else one made the same way."""
    plane: Plane
    entity: Entity
    summary: str
    boundary: Status | None = None
    """The status it carries into routing, if the event makes the server evaluate `next` (S21)."""


_SERVER, _WORKER = Plane.SERVER, Plane.WORKER

# The server owns the loop's beginning and end, because only it sees iterations that several workers share (S22).
# A step without a tool, and a loop step that fails as a whole, get their boundary event from the server (S27, S33);
# the plane named here is the one that reports the ordinary case.
_ROWS = (
    Event(
        "playbook.execution.requested", "PlaybookExecutionRequested", _SERVER, Entity.PLAYBOOK, "A run was asked for."
    ),
    Event("playbook.request.evaluated", "PlaybookRequestEvaluated", _SERVER, Entity.PLAYBOOK, "The request is sound."),
    Event("workflow.started", "WorkflowStarted", _SERVER, Entity.WORKFLOW, "Workload and credentials are in place."),
    Event("token.enqueued", "TokenEnqueued", _SERVER, Entity.TOKEN, "A token was put in front of a step."),
    Event("token.claimed", "TokenClaimed", _SERVER, Entity.TOKEN, "A step consumed a token."),
    Event("token.rejected", "TokenRejected", _SERVER, Entity.TOKEN, "A step's admit rules never let a token in."),
    Event("step.scheduled", "StepScheduled", _SERVER, Entity.STEP, "A step run is ready for a worker."),
    Event("step.started", "StepStarted", _WORKER, Entity.STEP, "A worker began a step run."),
    Event("task.started", "TaskStarted", _WORKER, Entity.TASK, "A task run began."),
    Event("task.done", "TaskProcessed", _WORKER, Entity.TASK, "A task run ended, with its outcome and directive."),
    Event("ctx.patched", "CtxPatched", _SERVER, Entity.WORKFLOW, "Keys of `ctx` were written."),
    Event("step.done", "StepDone", _WORKER, Entity.STEP, "A step run succeeded.", Status.SUCCESS),
    Event("step.failed", "StepFailed", _WORKER, Entity.STEP, "A step run, looped or not, failed.", Status.ERROR),
    Event("loop.started", "LoopStarted", _SERVER, Entity.LOOP, "A loop has its collection and begins."),
    Event("loop.iteration.started", "LoopIterationStarted", _WORKER, Entity.LOOP, "An iteration began."),
    Event("loop.iteration.done", "LoopIterationCompleted", _WORKER, Entity.LOOP, "An iteration succeeded."),
    Event("loop.iteration.failed", "LoopIterationFailed", _WORKER, Entity.LOOP, "An iteration failed."),
    Event("loop.done", "LoopDone", _SERVER, Entity.LOOP, "All iterations of a loop have ended.", Status.SUCCESS),
    Event("next.evaluated", "NextEvaluated", _SERVER, Entity.NEXT, "Arcs were tested and the firing ones chosen."),
    Event("workflow.finished", "WorkflowFinished", _SERVER, Entity.WORKFLOW, "No token can move and nothing runs."),
    Event("playbook.processed", "PlaybookProcessed", _SERVER, Entity.PLAYBOOK, "The execution is over."),
    Event("execution.paused", "ExecutionPaused", _SERVER, Entity.PLAYBOOK, "No new work is given out until resumed."),
    Event("execution.resumed", "ExecutionResumed", _SERVER, Entity.PLAYBOOK, "Work is given out again."),
    Event("execution.cancelled", "ExecutionCancelled", _SERVER, Entity.PLAYBOOK, "Somebody stopped the execution."),
)

EVENTS: dict[str, Event] = {row.name: row for row in _ROWS}

BOUNDARY: dict[str, Event] = {row.name: row for row in _ROWS if row.boundary}
"""The events that end a step run and so make the server evaluate its arcs."""
