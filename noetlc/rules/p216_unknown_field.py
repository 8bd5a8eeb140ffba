"""P216: a field that the value does not have."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from noetlc.analysis.model import Model, Site
from noetlc.analysis.names import Access, NameUse, Reading
from noetlc.finding import Edit, Finding, Fix, Severity
from noetlc.rules.rule import Rule
from noetlvm.language.scopes import FIELDS, FOR_LOOP_FIELDS, Shape, TemplatePosition, given_fields
from noetlvm.language.tool_kinds import ToolKind, builtin_kinds, find_kind
from noetlvm.nearest import nearest

_SCALARS = {
    Shape.TEXT: "text",
    Shape.INTEGER: "a whole number",
    Shape.NUMBER: "a number",
    Shape.BOOLEAN: "a boolean",
}


class UnknownField(Rule):
    code = "P216"
    name = "unknown-field"
    severity = Severity.WARNING
    summary = "A template reads a field that `outcome`, `event` or another known value does not have."
    why = "A field that does not exist is undefined, not an error: the guard that reads it is false for ever."
    bad = """
    - step: start
      tool:
        - fetch:
            kind: http
            url: "https://example.com/items"
            spec:
              policy:
                rules:
                  - when: "{{ outcome.http.state == 429 }}"
                    then: { do: retry, attempts: 5, delay: 2 }
                  - when: "{{ outcome.status == 'error' }}"
                    then: { do: fail }
                  - else:
                      then: { do: continue }
    """
    good = """
    - step: start
      tool:
        - fetch:
            kind: http
            url: "https://example.com/items"
            spec:
              policy:
                rules:
                  - when: "{{ outcome.http.status == 429 }}"
                    then: { do: retry, attempts: 5, delay: 2 }
                  - when: "{{ outcome.status == 'error' }}"
                    then: { do: fail }
                  - else:
                      then: { do: continue }
    """
    covers = ("formal §5", "formal §10.1", "brief §5.2", "S19")

    def check(self, model: Model) -> Iterator[Finding]:
        for reading in model.readings:
            for use in reading.names.uses:
                if use.fields and reading.is_visible(use.name):
                    yield from self._path(model, reading, use)
            for use in reading.names.for_loop_uses:
                if use.fields and use.fields[0].name not in FOR_LOOP_FIELDS:
                    yield self._unknown(model, reading.site, "loop", use.fields[0], FOR_LOOP_FIELDS)

    def _path(self, model: Model, reading: Reading, use: NameUse) -> Iterator[Finding]:
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

    def _unknown(self, model: Model, site: Site, path: str, field: Access, fields: frozenset[str]) -> Finding:
        place = model.place(site, field.span)
        meant = nearest(field.name, fields)
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
    """Say why a field that exists elsewhere does not exist here."""
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
