from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from noetlc.analysis.model import Site, TaskView
from noetlc.analysis.names import Access, NameUse, Reading
from noetlc.migrate.facts import has_several_statements
from noetlc.migrate.names import renamed_fields
from noetlc.rules.rule import Edit, Finding, Findings, Fix, Model, Rule, Severity
from noetlc.syntax.nodes import plain
from noetlc.syntax.span import Span
from noetlvm.language.scopes import FIELDS, FOR_LOOP_FIELDS, NAMESPACES, Shape, TemplatePosition, given_fields
from noetlvm.language.tool_kinds import ToolKind, builtin_kinds, find_kind
from noetlvm.nearest import nearest

_SCALARS = {Shape.TEXT: "text", Shape.INTEGER: "a whole number", Shape.NUMBER: "a number", Shape.BOOLEAN: "a boolean"}


_INSTEAD = {
    ("outcome", "data"): "result",
    ("outcome", "status_code"): "http.status",
    ("outcome.http", "status_code"): "status",
    ("outcome.http", "code"): "status",
    ("outcome.error", "code"): "kind",
    ("outcome.error", "type"): "kind",
    ("event.error", "code"): "kind",
    ("event.error", "type"): "kind",
}
"""Names that other tools use for a field, and the field."""


class UnknownField(Rule):
    severity = Severity.WARNING
    summary = "A template reads a field that `outcome`, `event`, a task's result or another known value does not have."
    why = "A field that does not exist is undefined: a guard that reads it is always false, and an input with it fails."
    example = """
      - step: start
        tool:
          - fetch:
              kind: http
              url: "https://example.com/items"
              spec:
                policy:
                  rules:
    -               - when: "{{ outcome.http.state == 429 }}"
    +               - when: "{{ outcome.http.status == 429 }}"
                      then: { do: retry, attempts: 5, delay: 2 }
                    - when: "{{ outcome.status == 'error' }}"
                      then: { do: fail }
                    - else:
                        then: { do: continue }
    """
    covers = ("formal §5", "formal §10.1", "brief §5.2", "S19")

    def check(self, model: Model) -> Findings:
        for reading in model.readings:
            for use in reading.names.uses:
                if not use.fields:
                    continue
                tasks = _result_tasks(model, reading, use)
                looped = _looped_result(model, reading.site, use)
                if looped and not _is_method(use.fields[looped - 1].name):
                    yield self._loop_field(model, reading.site, use, looped)
                elif tasks.kinds:
                    depth = 2 if use.name in ("event", "outcome") else 1
                    yield from self._result_field(model, reading.site, use, tasks, depth)
                elif reading.is_visible(use.name):
                    yield from self._path(model, reading, use)
            for use in reading.names.for_loop_uses:
                if use.fields and use.fields[0].name not in FOR_LOOP_FIELDS:
                    yield self._unknown(model, reading.site, "loop", use.fields[0], FOR_LOOP_FIELDS)

    def _loop_field(self, model: Model, site: Site, use: NameUse, depth: int) -> Finding:
        field = use.fields[depth - 1]
        path = ".".join(use.path[:depth])
        return self.finding(
            model.place(site, field.span),
            f"`{path}` is the result of a loop, a list, and has no field `{field.name}`",
            f"read `{path}[0].{field.name}` of one iteration, `{path} | map(attribute='{field.name}') | list` of all",
        )

    def _path(self, model: Model, reading: Reading, use: NameUse) -> Findings:
        """Follow a path as far as its values are known."""
        site, path = reading.site, use.name
        for field in use.fields:
            known = FIELDS.get(path)
            if known is None:
                return
            if known.shape in _SCALARS:
                message = f"`{path}` is {_SCALARS[known.shape]} and has no field `{field.name}`"
                yield self.finding(model.place(site, field.span), message, f"read `{path}` itself")
                return
            misplaced = None if use.is_optional else _misplaced(path, field.name, site)
            if misplaced:
                yield self.finding(model.place(site, field.span), *misplaced)
                return
            fields = _fields(path, site)
            if fields and field.name not in fields:
                yield self._unknown(model, site, path, field, fields)
                return
            path = f"{path}.{field.name}"

    def _result_field(self, model: Model, site: Site, use: NameUse, tasks: _ResultTasks, depth: int) -> Findings:
        """Report a field that no result of these kinds has."""
        kinds, several = tasks
        if len(use.fields) < depth:
            return
        fields = frozenset().union(*(kind.result_fields for name in kinds if (kind := find_kind(name))))
        field = use.fields[depth - 1]
        if field.name in fields or _is_method(field.name):
            return
        path = ".".join([use.name, *(each.name for each in use.fields[: depth - 1])])
        read = use.fields[depth - 1 :]
        taken, renamed = _renamed(kinds, [each.name for each in read], several)
        if renamed is None:
            yield self._unknown(model, site, path, field, fields)
            return
        place, end = model.place(site, field.span), model.place(site, read[taken - 1].span).end
        written = ".".join(each.name for each in read[:taken])
        fix = None
        if model.source.text[place.start - 1 : end] == f".{written}":
            edit = Edit(Span(place.start - 1, end), renamed)
            fix = Fix(f"read `{path}{renamed}`", (edit,), safe=False)
        of = " or ".join(_a(name) for name in sorted(kinds))
        message = f"the result of {of} task has no field `{field.name}`"
        yield self.finding(place, message, f"read `{path}{renamed}`", fix=fix)

    def _unknown(self, model: Model, site: Site, path: str, field: Access, fields: frozenset[str]) -> Finding:
        place = model.place(site, field.span)
        meant = _INSTEAD.get((path, field.name)) or nearest(field.name, fields)
        if (path, meant) == ("outcome", "result") and (kind := _kind(site)) and "data" in kind.result_fields:
            meant = "result.data"
        fix = None
        if meant and place.end - place.start == len(field.name):
            fix = Fix(f"read `{path}.{meant}`", (Edit(place, meant),), safe=False)
        listed = ", ".join(f"`{name}`" for name in sorted(fields))
        return self.finding(
            place,
            f"`{path}` has no field `{field.name}`",
            f"did you mean `{path}.{meant}`?" if meant else f"it has {listed}",
            fix=fix,
        )


def _is_method(name: str) -> bool:
    return name in ("items", "keys", "values", "get")


def _renamed(kinds: frozenset[str], path: list[str], several: bool) -> tuple[int, str | None]:
    """Return what v10 calls the first fields of another dialect, with their dots, and how many these are."""
    found = {renamed_fields(kind, path, several=several) for kind in kinds}
    return found.pop() if len(found) == 1 else (1, None)


class _ResultTasks(NamedTuple):
    """The tasks whose result a path starts with."""

    kinds: frozenset[str] = frozenset()
    """None if it may be of any form."""
    several: bool = False
    """Their SQL has several statements."""


def _result_tasks(model: Model, reading: Reading, use: NameUse) -> _ResultTasks:
    site, name = reading.site, use.name
    if name == "outcome" and use.fields[0].name == "result" and site.task is not None:
        return _tasks([site.task])
    owner = site.owner
    if name == "event":
        in_arc = site.position in (TemplatePosition.ARC_WHEN, TemplatePosition.ARC_ARGS)
        is_result = in_arc and use.fields[0].name == "result" and owner is not None and not owner.loops
        return _tasks(model.tasks_by_owner.get(owner, ())) if is_result and owner else _ANY
    if name == "_prev":
        return _tasks(model.tasks_by_owner.get(owner, ())) if owner and site.task else _ANY
    if name in NAMESPACES or model.definitions.namespaces_of(name, site):
        return _ANY
    if model.definitions.is_label(name, site) and owner:
        return _tasks(view for view in model.tasks_by_owner[owner] if view.label == name)
    if name in model.steps_by_name:
        read = model.owners_by_step.get(name)
        return _tasks(model.tasks_by_owner.get(read, ())) if read and not read.loops else _ANY
    return _ANY


def _looped_result(model: Model, site: Site, use: NameUse) -> int:
    """Return how many names the result of a loop has in a path; 0 where the path reads something else."""
    if use.name == "event":
        in_arc = site.position in (TemplatePosition.ARC_WHEN, TemplatePosition.ARC_ARGS)
        is_result = in_arc and use.fields[0].name == "result" and len(use.fields) > 1
        return 2 if is_result and site.owner and site.owner.loops else 0
    if use.name in NAMESPACES or model.definitions.namespaces_of(use.name, site):
        return 0
    read = model.owners_by_step.get(use.name)
    return 1 if read and read.loops and not model.definitions.is_label(use.name, site) else 0


_ANY = _ResultTasks()


def _tasks(views: Iterable[TaskView]) -> _ResultTasks:
    """Return tasks that all have results of a known form; else none."""
    views = tuple(views)
    kinds = {view.kind for view in views}
    known = [kind for name in kinds if (kind := find_kind(name)) and kind.result_fields]
    if len(known) != len(kinds):
        return _ANY
    return _ResultTasks(frozenset(kinds), any(_has_several_statements(view) for view in views))


def _has_several_statements(view: TaskView) -> bool:
    sql = view.task.get_extra("command")
    return sql is not None and has_several_statements(plain(sql))


_given = cache(given_fields)


def _fields(path: str, site: Site) -> frozenset[str]:
    """Return all the fields that stand under `path` here, or none if there may be any."""
    kind = _kind(site)
    if path == "outcome.result":
        return frozenset(kind.result_fields) if kind else frozenset()
    if FIELDS[path].shape is not Shape.OBJECT:
        return frozenset()
    if path == "outcome":
        return _given(path).union(kind.helpers) if kind else frozenset()
    return _given(path)


def _misplaced(path: str, field: str, site: Site) -> tuple[str, str] | None:
    """Explain why a field that exists elsewhere does not exist here."""
    if path == "outcome" and field in _fillers():
        kind = _kind(site)
        if kind is None or field in kind.helpers:
            return None
        fillers = " or ".join(f"`{name}`" for name in _fillers()[field])
        return (
            f"`outcome.{field}` is filled only by {fillers} tasks, and this is {_a(kind.name)} task",
            "read `outcome.error.kind` or `outcome.result`, which every kind fills",
        )
    if path == "event" and field == "loop" and site.position in (TemplatePosition.ARC_WHEN, TemplatePosition.ARC_ARGS):
        step = site.owner.step if site.owner else None
        if step is not None and step.loop is None:
            return f"`event.loop` exists only after a loop, and step `{_name(site)}` has none", "read `event.status`"
    return None


def _kind(site: Site) -> ToolKind | None:
    """Return the tool kind of the site's task, unless other tasks are put in its place."""
    kind = find_kind(site.task.kind) if site.task and site.task.kind else None
    return None if kind is None or kind.runs_on == "compiler" else kind


@cache
def _fillers() -> dict[str, tuple[str, ...]]:
    """Return the kinds that fill each helper under `outcome`."""
    kinds = builtin_kinds().values()
    helpers = {helper for kind in kinds for helper in kind.helpers}
    return {helper: tuple(kind.name for kind in kinds if helper in kind.helpers) for helper in helpers}


def _name(site: Site) -> str:
    return site.owner.name if site.owner else ""


def _a(kind: str) -> str:
    return f"{'an' if kind[:1] in 'aeiouh' else 'a'} `{kind}`"
