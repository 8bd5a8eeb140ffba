"""The names a template sees, by its position (S11), and what is known of their values.

Two tables: `VISIBLE` lists the names of each position, `FIELDS` the fields under a name. Nothing here evaluates.
"""

from __future__ import annotations

from enum import StrEnum
from functools import cache

from noetlvm.language.events import BOUNDARY
from noetlvm.record import Record


class TemplatePosition(StrEnum):
    """A place in a playbook where a template may stand; the value is its title for people."""

    ADMIT = "admit rule"
    ARC_WHEN = "arc's `when`"
    ARC_ARGS = "arc's `args`"
    LOOP_IN = "`loop.in`"
    LOOP_SPEC = "`max_in_flight` or `rate` of a loop"
    TASK_INPUT = "task input"
    TASK_POLICY = "task policy rule"
    TASK_PATCH = "`set_iter` or `set_ctx`"
    TASK_DELAY = "`attempts` or `delay` of a retry"
    SUGAR_WHEN = "`when` of `choose`, `while` or `until`"
    SUGAR_MAX = "`max` of `while` or `until`"
    STATIC = "data that is read as it is written"


_SERVER_SIDE = frozenset({"workload", "ctx", "args", "event", "execution_id"})
_LOOP = frozenset({"workload", "ctx", "args", "execution_id", "iter"})
_TASK = frozenset({"workload", "keychain", "ctx", "iter", "args", "execution_id", "_prev", "_task", "_attempt"})
_AFTER_TASK = _TASK | {"outcome"}

VISIBLE: dict[TemplatePosition, frozenset[str]] = {
    TemplatePosition.ADMIT: _SERVER_SIDE,
    TemplatePosition.ARC_WHEN: _SERVER_SIDE,
    TemplatePosition.ARC_ARGS: _SERVER_SIDE,
    TemplatePosition.LOOP_IN: _LOOP,
    TemplatePosition.LOOP_SPEC: _LOOP,
    TemplatePosition.TASK_INPUT: _TASK,
    TemplatePosition.TASK_POLICY: _AFTER_TASK,
    TemplatePosition.TASK_PATCH: _AFTER_TASK,
    TemplatePosition.TASK_DELAY: _AFTER_TASK,
    # Sugar becomes the policy of a generated noop: that task's outcome is always ok.
    TemplatePosition.SUGAR_WHEN: _TASK,
    TemplatePosition.SUGAR_MAX: _TASK,
    # `workload`, `keychain` and `executor` are read before there is anything to see.
    TemplatePosition.STATIC: frozenset(),
}

LOOP_ONLY = frozenset({"iter"})
"""Names that exist only inside a loop; for `loop.in` that means an enclosing loop."""


@cache
def visible_names(position: TemplatePosition, in_loop: bool) -> frozenset[str]:
    """Return the names that exist at a position; those of a loop only inside one."""
    return VISIBLE[position] if in_loop else VISIBLE[position] - LOOP_ONLY


BARE_NAME_ORDER = ("args", "ctx", "iter", "workload")
"""Where a bare name is looked up, first hit wins. After these, in a task, the last result of the task of the same
pipeline with that label (S48), then the last result of the step of that name (S11)."""

FOR_LOOP_FIELDS = frozenset(
    {"index", "index0", "revindex", "revindex0", "first", "last", "length", "depth", "depth0", "previtem", "nextitem"}
)
"""What the name `loop` offers inside a template's own `{% for %}`; it has nothing to do with a step's loop."""


class Shape(StrEnum):
    """What kind of value stands behind a name, as far as it is known before a run."""

    TEXT = "text"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    OBJECT = "object"
    """A mapping with exactly the fields listed below it."""
    DATA = "data"
    """Anything: what the playbook or a tool put there. Fields listed below it are there besides."""


class Field(Record):
    """What is known of one name or field."""

    shape: Shape
    doc: str
    values: tuple[str, ...] = ()
    """All the values it can ever have, if they are few; comparing it with any other is a mistake."""


_ERROR_KIND = "Kind of the error: `timeout`, `template`, `fuel`, or a kind that the tool defines."

FIELDS: dict[str, Field] = {
    "workload": Field(Shape.DATA, "The playbook's inputs: defaults merged with the request. Never changes."),
    "keychain": Field(Shape.DATA, "Resolved credentials by name. Secret, and read-only."),
    "ctx": Field(Shape.DATA, "State of the execution, shared by its steps; written by `set_ctx`."),
    "args": Field(Shape.DATA, "Arguments of the token, from the arc that led here."),
    "execution_id": Field(Shape.TEXT, "Identifier of this execution."),
    "iter": Field(Shape.DATA, "State of the current loop iteration; written by `set_iter`."),
    "iter.index": Field(Shape.INTEGER, "Number of the iteration, from 0."),
    "iter.parent": Field(Shape.DATA, "`iter` of the enclosing loop."),
    "_prev": Field(Shape.DATA, "Result of the task before this one."),
    "_task": Field(Shape.TEXT, "Label of the current task."),
    "_attempt": Field(Shape.INTEGER, "Number of the current attempt, from 1."),
    "outcome": Field(Shape.OBJECT, "Outcome of the task."),
    "outcome.status": Field(Shape.TEXT, "Whether the tool succeeded.", ("ok", "error")),
    "outcome.result": Field(Shape.DATA, "Result of the tool."),
    "outcome.error": Field(Shape.OBJECT, "Error of the tool; undefined if it succeeded."),
    "outcome.error.kind": Field(Shape.TEXT, _ERROR_KIND),
    "outcome.error.retryable": Field(Shape.BOOLEAN, "Whether a retry may succeed."),
    "outcome.error.message": Field(Shape.TEXT, "Error message."),
    "outcome.error.details": Field(Shape.DATA, "Further details from the tool."),
    "outcome.meta": Field(Shape.OBJECT, "Time, duration and number of the attempt."),
    "outcome.meta.attempt": Field(Shape.INTEGER, "Number of the attempt, from 1."),
    "outcome.meta.duration_ms": Field(Shape.NUMBER, "Duration of the attempt in milliseconds."),
    "outcome.meta.ts": Field(Shape.NUMBER, "Time of the end of the attempt, in seconds since 1970."),
    "outcome.meta.trace_id": Field(Shape.TEXT, "Identifier of the topmost execution; a child has that of its parent."),
    "outcome.http": Field(Shape.OBJECT, "Details of the HTTP response; only for `kind: http`."),
    "outcome.http.status": Field(Shape.INTEGER, "Status code of the response."),
    "outcome.http.headers": Field(Shape.DATA, "Headers of the response."),
    "outcome.http.request_id": Field(Shape.TEXT, "The server's own identifier of the request."),
    "outcome.pg": Field(Shape.OBJECT, "Details from PostgreSQL; only for `kind: postgres`."),
    "outcome.pg.code": Field(Shape.TEXT, "PostgreSQL's error code, such as `40001`."),
    "outcome.pg.sqlstate": Field(Shape.TEXT, "The same code under its standard name."),
    "outcome.py": Field(Shape.OBJECT, "Details from Python; only for `kind: python`."),
    "outcome.py.stdout": Field(Shape.TEXT, "Standard output of the code."),
    "outcome.py.exception_type": Field(Shape.TEXT, "Name of the exception that the code raised."),
    "event": Field(Shape.OBJECT, "Boundary event of the step run that created the token."),
    "event.name": Field(Shape.TEXT, "Name of the boundary event.", tuple(BOUNDARY)),
    "event.status": Field(
        Shape.TEXT, "How the step run ended.", tuple(dict.fromkeys(str(row.boundary) for row in BOUNDARY.values()))
    ),
    "event.result": Field(Shape.DATA, "Result of the step run; for a loop, the list of its iterations' results."),
    "event.error": Field(Shape.OBJECT, "Error of the step run; undefined if it succeeded."),
    "event.error.kind": Field(Shape.TEXT, _ERROR_KIND),
    "event.error.retryable": Field(Shape.BOOLEAN, "Whether a retry may succeed, according to the tool."),
    "event.error.message": Field(Shape.TEXT, "Error message."),
    "event.error.details": Field(Shape.DATA, "Further details."),
    "event.loop": Field(Shape.OBJECT, "Counts of the iterations; only for a loop step."),
    "event.loop.total": Field(Shape.INTEGER, "Number of iterations."),
    "event.loop.ok": Field(Shape.INTEGER, "Number of iterations that succeeded."),
    "event.loop.failed": Field(Shape.INTEGER, "Number of iterations that failed."),
    "event.loop.failures": Field(Shape.DATA, "Failed iterations: a list of `{index, error}`, at most a hundred."),
    "event.step": Field(Shape.TEXT, "Name of the step that ended."),
    "event.execution_id": Field(Shape.TEXT, "Identifier of the execution."),
    "event.step_run_id": Field(Shape.TEXT, "Identifier of the step run that ended."),
    "event.seq": Field(Shape.INTEGER, "Sequence number of the event; with `execution_id`, it identifies the event."),
    "event.timestamp": Field(Shape.TEXT, "Time of the event, such as `2024-05-01T12:00:00.000+00:00`."),
    "event.source": Field(Shape.TEXT, "Process that reported the event.", ("server", "worker")),
    "event.entity": Field(Shape.TEXT, "Type of the event's subject.", ("step", "loop")),
    "event.entity_id": Field(Shape.TEXT, "Identifier of the event's subject."),
    "event.trace_id": Field(Shape.TEXT, "Identifier of the topmost execution; a child has that of its parent."),
    "event.data": Field(Shape.DATA, "The event's payload as it was recorded."),
}

NAMESPACES: dict[str, str] = {name: field.doc for name, field in FIELDS.items() if "." not in name}
"""Every name a template can see anywhere, with its meaning in one line."""


def given_fields(path: str) -> frozenset[str]:
    """Return the fields that the runtime itself puts under `path`, such as `index` and `parent` under `iter`."""
    prefix = path + "."
    below = (name.removeprefix(prefix) for name in FIELDS if name.startswith(prefix))
    return frozenset(name for name in below if "." not in name)


def is_open(path: str) -> bool:
    """Return whether anything at all may stand under `path`; if not, only its given fields exist."""
    return path not in FIELDS or FIELDS[path].shape is Shape.DATA
