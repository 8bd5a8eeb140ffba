"""What a name of another dialect is called in v10, by the position it is read at."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum

from noetlc.migrate.facts import PlaybookFacts, StepFacts, TaskFacts

_DONE = frozenset({"call.done", "step.exit", "step.completed", "call.completed", "step.success", "action_completed"})
_FAILED = frozenset({"call.error", "call.failed", "step.error", "action_failed"})
_OUTCOME_FIELDS = frozenset({"status", "error", "http", "pg", "py", "meta"})
_OUTCOME_RENAMED = {
    ("pg", "message"): "outcome.error.message",
    ("pg", "error"): "outcome.error.message",
    ("py", "exception"): "outcome.py.exception_type",
    ("meta", "duration"): "outcome.meta.duration_ms",
    ("meta", "timestamp"): "outcome.meta.ts",
    ("http", "status_code"): "outcome.http.status",
}
_STATUSES = {
    "success": "ok",
    "ok": "ok",
    "completed": "ok",
    "error": "error",
    "failed": "error",
    "failure": "error",
}
"""Words for how a tool call ended, and v10's in rules."""
_ERROR_STATUS = frozenset({"status", "status_code"})
_SQL = frozenset({"postgres", "duckdb", "snowflake", "ducklake"})
_FIELDS: dict[str, dict[str, str]] = {
    "http": {"status_code": ".status", "body": ".data", "json": ".data"},
    "sql": {"data": ".rows", "result": ".rows", "results": ".rows"},
}
"""Fields of results that v10 names otherwise, by kind."""
_CHILD_RESULT = frozenset({"status", "result", "ctx"})
_SQL_RESULT = frozenset({"rows", "columns", "row_count", "statements"})


class ReadAt(StrEnum):
    """A position of a template, as far as names differ."""

    INPUT = "input"
    RULE = "rule"
    AFTER = "after"
    """A task after the step's own: `_prev` is the result."""
    ARC = "arc"
    OTHER = "other"


_RESULT = {ReadAt.INPUT: "_prev", ReadAt.RULE: "outcome.result", ReadAt.AFTER: "_prev", ReadAt.ARC: "event.result"}


class NameScope:
    """Renames what one template reads. `codes` are the constructs found, `reports` those that need a hand."""

    def __init__(
        self,
        facts: PlaybookFacts,
        where: ReadAt,
        step: StepFacts | None = None,
        task: TaskFacts | None = None,
        previous: TaskFacts | None = None,
        given: Mapping[str, str] | None = None,
    ) -> None:
        self._facts = facts
        self._where = where
        self._step = step
        self._task = step.last if step and where in (ReadAt.ARC, ReadAt.AFTER) else task
        if where is ReadAt.INPUT:
            self._task = previous
        self._base = _RESULT.get(where)
        self._given = given or {}
        self._fields_of_result: set[tuple[str, ...]] = set()
        """Paths like `output.status` that are compared with what no outcome's status is."""
        self.codes: list[str] = []
        self.reports: list[tuple[str, str]] = []

    def result_is(self, name: str) -> None:
        """Record where the result is read, if not at the usual place."""
        self._base = name

    # ---- the renaming

    def path(self, path: tuple[str, ...]) -> tuple[int, str] | None:
        root = path[0]
        if root in self._given:
            return 1, self._given[root]
        if root in ("input", "args") and path[1:2] and path[1] in self._given:
            return 2, self._given[path[1]]
        handler = _HANDLERS.get(root)
        if handler and (root in _RESERVED or root not in self._facts.defined):
            return handler(self, path)
        step = self._facts.by_name.get(root)
        if step is None or step.last is None or step.has_loop or root in self._facts.workload | self._facts.labels:
            return None
        base = self._own_result(step)
        found = self._after(path, 1, base or root, step.last, wrapped=False)
        return found or (self._found("R701", 1, base) if base else None)

    def _own_result(self, step: StepFacts) -> str:
        """Return where a step's own result is read before the step has ended; its name does not have it yet."""
        if self._step is not step:
            return ""
        if self._where is ReadAt.AFTER or (self._where is ReadAt.RULE and len(step.tasks) == 1):
            return self._base or ""
        return ""

    def constant(self, path: tuple[str, ...], value: str) -> str:
        if path[:2] in (("outcome", "status"), ("output", "status")) or (
            path[0] in ("result", "response") and path[1:] == ("status",) and self._kind != "http"
        ):
            return self._status(path, value)
        if path == ("event", "name") and (value in _DONE or value in _FAILED):
            self.codes.append("R703")
            if self._where in (ReadAt.RULE, ReadAt.AFTER):
                return "ok" if value in _DONE else "error"
            done = "loop.done" if self._step and self._step.has_loop else "step.done"
            return done if value in _DONE else "step.failed"
        return value

    def _status(self, path: tuple[str, ...], value: str) -> str:
        new = _STATUSES.get(value)
        if new is None:
            if path[0] != "outcome":
                self._fields_of_result.add(path)
            return value
        if self._where is ReadAt.ARC and new == "ok":
            new = "success"
        if new != value:
            self.codes.append("R702")
        return new

    @property
    def _kind(self) -> str:
        return self._task.kind if self._task else ""

    def _found(self, code: str, count: int, text: str) -> tuple[int, str]:
        self.codes.append(code)
        return count, text

    # ---- results

    def _result(self, path: tuple[str, ...]) -> tuple[int, str] | None:
        base = self._base
        if base is None or (self._where is ReadAt.INPUT and self._task is None):
            self.reports.append(("R910", f"`{path[0]}` is read where no tool has answered yet"))
            return None
        if path in self._fields_of_result:
            return self._found("R701", 1, base)
        if path[0] == "output" and len(path) > 1 and path[1] in _OUTCOME_FIELDS:
            return self._envelope(path)
        if path[0] == "output" and path[1:2] == ("result",):
            is_childs = self._kind == "playbook" and len(path) > 2 and path[2] not in _CHILD_RESULT
            return self._found("R701", 1 if is_childs else 2, base)
        self.codes.append("R701")
        if path[0] == "output" and path[1:3] == ("data", "data"):
            self.codes.append("R710")
        if path[1:2] == ("status",) and self._kind != "http":
            return 2, {ReadAt.RULE: "outcome.status", ReadAt.ARC: "event.status"}.get(self._where, f"{base}.status")
        if path[1:2] == ("error",) and self._where in (ReadAt.RULE, ReadAt.ARC):
            return 2, "outcome.error" if self._where is ReadAt.RULE else "event.error"
        return self._after(path, 1, base, self._task, wrapped=True)

    def _after(
        self, path: tuple[str, ...], count: int, base: str, task: TaskFacts | None, *, wrapped: bool
    ) -> tuple[int, str] | None:
        """Rename the first field of a result. `wrapped`: the dialect put the result under `data`."""
        field = path[count] if len(path) > count else ""
        kind = task.kind if task else ""
        taken, renamed = renamed_fields(kind, path[count:], several=bool(task and task.has_several_statements))
        if renamed is None and wrapped and field == "data" and kind != "http" and task and not task.returns_data:
            renamed = ""
        if renamed is not None:
            if renamed != "" or not wrapped:
                self.codes.append("R708")
            return count + taken, base + renamed
        return (count, base) if wrapped else None

    def _envelope(self, path: tuple[str, ...]) -> tuple[int, str] | None:
        self.codes.append("R701")
        found = self._outcome(("outcome", *path[1:]))
        return found or (1, "outcome")

    def _outcome(self, path: tuple[str, ...]) -> tuple[int, str] | None:
        if self._where is ReadAt.ARC:
            return self._outcome_in_arc(path)
        if path[1:2] == ("result",):
            return self._renamed(path, 2, "outcome.result")
        new = _OUTCOME_RENAMED.get((path[1], path[2])) if len(path) > 2 else None
        return self._found("R708", 3, new) if new else None

    def _outcome_in_arc(self, path: tuple[str, ...]) -> tuple[int, str] | None:
        if path[1:2] in (("result",), ("error",), ("status",)):
            return self._found("R701", 1, "event")
        self.reports.append(("R910", f"`{'.'.join(path)}` is not known to arcs"))
        return None

    def _error(self, path: tuple[str, ...]) -> tuple[int, str] | None:
        if self._where is ReadAt.RULE:
            if path[1:2] and path[1] in _ERROR_STATUS:
                return self._found("R701", 2, "outcome.http.status")
            return self._found("R701", 1, "outcome.error")
        return self._found("R701", 1, "event.error") if self._where is ReadAt.ARC else None

    def _event(self, path: tuple[str, ...]) -> tuple[int, str] | None:
        if path[1:2] in (("response",), ("payload",), ("output",)):
            return self._found("R701", 2, self._base or "event.result")
        if self._where in (ReadAt.RULE, ReadAt.AFTER):
            if path[1:2] == ("name",):
                return 2, "outcome.status"
            if path[1:2] in (("error",), ("result",)):
                return 1, "outcome"
        if path[1:2] == ("result",) and self._step and not self._step.has_loop:
            return self._renamed(path, 2, "event.result")
        return None

    def _previous(self, path: tuple[str, ...]) -> tuple[int, str] | None:
        if self._where is not ReadAt.INPUT or len(path) < 2:
            return None
        return self._renamed(path, 1, "_prev")

    def _renamed(self, path: tuple[str, ...], count: int, base: str) -> tuple[int, str] | None:
        """Rename the first fields of the task's result, which `base` reads."""
        several = bool(self._task and self._task.has_several_statements)
        taken, renamed = renamed_fields(self._kind, path[count:], several=several)
        return self._found("R708", count + taken, base + renamed) if renamed is not None else None

    # ---- other names

    def _vars(self, path: tuple[str, ...]) -> tuple[int, str] | None:
        if len(path) < 2:
            return self._found("R704", 1, "ctx")
        return self._found("R704", 2, self._facts.vars.target(self._step.name if self._step else "", path[1]))

    def _job(self, path: tuple[str, ...]) -> tuple[int, str] | None:
        if path[1:2] in (("uuid",), ("execution_id",), ("id",)):
            return self._found("R705", 2, "execution_id")
        return None

    def _status_code(self, path: tuple[str, ...]) -> tuple[int, str] | None:
        return self._found("R708", 1, "outcome.http.status") if self._where is ReadAt.RULE else None

    def _loop_index(self, path: tuple[str, ...]) -> tuple[int, str] | None:
        return self._found("R706", 1, "iter.index")

    def _token(self, path: tuple[str, ...]) -> tuple[int, str] | None:
        return self._found("R707", 2, "args") if path[1:2] == ("args",) else None

    def _env(self, path: tuple[str, ...]) -> tuple[int, str] | None:
        self.reports.append(("R905", f"`{'.'.join(path)}` reads the environment"))
        return None


def renamed_fields(kind: str, path: Sequence[str], *, several: bool) -> tuple[int, str | None]:
    """Return what the first fields of a kind's result are called, with their dots, and how many these are.

    None where the names are right. `several`: its SQL has several statements, whose results are a list.
    """
    family = "sql" if kind in _SQL else kind
    if family == "sql":
        for count, field in enumerate(path[:2], 1):
            if field.startswith("command_") and field[8:].isdigit():
                number = int(field[8:])
                return count, f".statements[{number}]" if number or several else ""
            if field in _SQL_RESULT and count == 2:
                return 1, ""  # `data` is the result as a whole
            if field not in _FIELDS["sql"]:
                break
    return 1, _FIELDS.get(family, {}).get(path[0]) if path else None


_Handler = Callable[[NameScope, tuple[str, ...]], tuple[int, str] | None]
_HANDLERS: dict[str, _Handler] = {
    "result": NameScope._result,
    "response": NameScope._result,
    "output": NameScope._result,
    "outcome": NameScope._outcome,
    "error": NameScope._error,
    "_err": NameScope._error,
    "event": NameScope._event,
    "_prev": NameScope._previous,
    "vars": NameScope._vars,
    "job": NameScope._job,
    "loop_index": NameScope._loop_index,
    "status_code": NameScope._status_code,
    "token": NameScope._token,
    "env": NameScope._env,
}
_RESERVED = frozenset({"outcome", "event", "_prev", "_err"})
"""Names of the language itself: no playbook can define them."""
