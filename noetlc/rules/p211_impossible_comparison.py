from collections.abc import Iterator
from typing import NamedTuple

from noetlc.analysis.model import Site
from noetlc.analysis.names import NameUse, Reading
from noetlc.rules.rule import Edit, Finding, Findings, Fix, Model, Rule, Severity
from noetlc.syntax import template_ast as t
from noetlc.syntax.span import Span
from noetlvm.language.events import BOUNDARY
from noetlvm.language.scopes import FIELDS, Field, Shape, TemplatePosition
from noetlvm.nearest import nearest

_SIDES_SWAPPED = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_ORDER = frozenset({"<", "<=", ">", ">="})
_LISTS = frozenset({"in", "not in"})
_NEVER_OF = {Shape.TEXT: (bool, int, float), Shape.INTEGER: (str,), Shape.NUMBER: (str,), Shape.BOOLEAN: (str,)}
"""Types of literals that a value of this shape never equals. Numbers equal booleans and none, as far as is known."""

_TITLES = {
    Shape.TEXT: "text",
    Shape.INTEGER: "a whole number",
    Shape.NUMBER: "a number",
    Shape.BOOLEAN: "true or false",
}
_LITERAL_TITLES: dict[type, str] = {str: "text", bool: "a boolean", int: "a number", float: "a number"}
_EFFECTS = {
    "==": "never holds",
    "in": "never holds",
    "!=": "always holds",
    "not in": "always holds",
    **dict.fromkeys(_ORDER, "fails"),
}

_MEANT: dict[str, dict[str, str]] = {
    "outcome.status": {"success": "ok", "succeeded": "ok", "done": "ok", "failed": "error", "failure": "error"},
    "event.status": {"ok": "success", "done": "success", "failed": "error", "failure": "error"},
    "event.name": {row.camel: str(row.name) for row in BOUNDARY.values()}
    | {"success": "step.done", "ok": "step.done", "error": "step.failed", "failed": "step.failed"}
    | {"loop.failed": "step.failed"}
    | dict.fromkeys(("call.done", "call.completed", "step.completed", "step.success", "step.exit"), "step.done")
    | dict.fromkeys(("call.error", "call.failed", "step.error"), "step.failed"),
}
"""Common names, and the name here."""


class _Comparison(NamedTuple):
    use: NameUse
    op: str
    literals: tuple[t.Const, ...]


class ImpossibleComparison(Rule):
    severity = Severity.ERROR
    stops_compiler = False
    summary = "A field with a known set of values, or a known type, is compared with a value that it never has."
    why = "The guard is false for every outcome, so the retry never happens or the arc never fires."
    example = """
      - step: start
        tool:
          - fetch:
              kind: http
              url: "https://example.com/items"
              spec:
                policy:
                  rules:
    -               - when: "{{ outcome.status == 'failed' }}"
    +               - when: "{{ outcome.status == 'error' }}"
                      then: { do: retry, attempts: 3, delay: 1 }
                    - else:
                        then: { do: continue }
    """
    covers = ("formal §5", "formal §8.3", "S21")

    def check(self, model: Model) -> Findings:
        for reading in model.readings:
            for comparison in _comparisons(reading):
                field = FIELDS.get(".".join(comparison.use.path))
                if field is not None and reading.is_visible(comparison.use.name):
                    yield from self._check(model, reading, comparison, field)

    def _check(self, model: Model, reading: Reading, comparison: _Comparison, field: Field) -> Findings:
        if any(literal.value is None for literal in comparison.literals):
            return
        path = ".".join(comparison.use.path)
        never = _NEVER_OF.get(field.shape, ())
        first = comparison.literals[0]
        if all(type(literal.value) in never for literal in comparison.literals):
            yield self._wrong_type(model, reading, path, field, comparison)
            return
        values = _possible(path, field, reading.site)
        if comparison.op in _ORDER or not values or any(literal.value in values for literal in comparison.literals):
            return
        meant = _meant(path, first, values) if len(comparison.literals) == 1 else ""
        yield self.finding(
            model.place(reading.site, _span(comparison.literals)),
            f"`{path}` is never {_shown(comparison.literals)}{_where(comparison, field, reading.site)}, "
            f"so this comparison {_EFFECTS[comparison.op]}",
            _help(meant, values),
            fix=_replacement(model, reading, first, meant),
        )

    def _wrong_type(self, model: Model, reading: Reading, path: str, field: Field, comparison: _Comparison) -> Finding:
        first = comparison.literals[0]
        written = _rewritten(first, field.shape)
        is_type, literal_type = _TITLES[field.shape], _LITERAL_TITLES[type(first.value)]
        return self.finding(
            model.place(reading.site, _span(comparison.literals)),
            f"`{path}` is {is_type} and {_shown(comparison.literals)} is {literal_type}, "
            f"so this comparison {_EFFECTS[comparison.op]}",
            f"write `{written}`" if written else f"compare it with {is_type}",
        )


def _comparisons(reading: Reading) -> Iterator[_Comparison]:
    """Yield each comparison of a path with literals; chains are left alone."""
    names = reading.names
    for compare in names.compares:
        if len(compare.ops) != 1:
            continue
        op, right = compare.ops[0].op, compare.ops[0].expression
        use, literals = names.use_of(compare.left), _literals(right, op)
        if use is None and op in _SIDES_SWAPPED:
            use, literals, op = names.use_of(right), _literals(compare.left, op), _SIDES_SWAPPED[op]
        if use is not None and literals:
            yield _Comparison(use, op, literals)


def _literals(expression: t.Expression, op: str) -> tuple[t.Const, ...]:
    """Return what is compared with, if all of it is written out."""
    if op not in _LISTS:
        return (expression,) if isinstance(expression, t.Const) else ()
    items = expression.items if isinstance(expression, t.List | t.Tuple) else ()
    literals = tuple(item for item in items if isinstance(item, t.Const))
    return literals if len(literals) == len(items) else ()


def _possible(path: str, field: Field, site: Site) -> tuple[str, ...]:
    """Return the values that a field can have here; none if they are not known."""
    step = (
        site.owner.step
        if site.owner and site.position in (TemplatePosition.ARC_WHEN, TemplatePosition.ARC_ARGS)
        else None
    )
    if step is None:
        return field.values
    if path == "event.name":
        return tuple(name for name in field.values if name != ("step.done" if step.loop else "loop.done"))
    if path == "event.entity" and not step.loop:
        return ("step",)
    return field.values


def _where(comparison: _Comparison, field: Field, site: Site) -> str:
    """Return why a value is impossible, if the step before and not the field itself excludes it."""
    owner = site.owner
    if owner is None or not any(literal.value in field.values for literal in comparison.literals):
        return ""
    return f" after step `{owner.name}`, which has {'a' if owner.loops else 'no'} loop"


def _help(meant: str, values: tuple[str, ...]) -> str:
    listed = " or ".join(f"`'{value}'`" for value in values)
    return f"did you mean `'{meant}'`? It is {listed}" if meant else f"it is {listed}"


def _meant(path: str, literal: t.Const, values: tuple[str, ...]) -> str:
    if not isinstance(literal.value, str):
        return ""
    known = _MEANT.get(path, {}).get(literal.value, "")
    other_end = {"step.done": "loop.done", "loop.done": "step.done"} if path == "event.name" else {}
    for candidate in (known, other_end.get(known or literal.value, "")):
        if candidate in values:
            return candidate
    return nearest(literal.value, values)


def _replacement(model: Model, reading: Reading, literal: t.Const, meant: str) -> Fix | None:
    """Replace what is between the quotes; strings with escape sequences are not changed."""
    inner = Span(literal.span.start + 1, literal.span.end - 1)
    if not meant or reading.template.text[inner.start : inner.end] != literal.value:
        return None
    return Fix(f"compare with `{meant}`", (Edit(model.place(reading.site, inner), meant),), safe=False)


def _span(literals: tuple[t.Const, ...]) -> Span:
    return Span(literals[0].span.start, literals[-1].span.end)


def _shown(literals: tuple[t.Const, ...]) -> str:
    return " or ".join(f"`{_literal(literal.value)}`" for literal in literals)


def _literal(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _rewritten(literal: t.Const, shape: Shape) -> str:
    """Return the literal as one of the field's own type, if it reads as one."""
    value = literal.value
    if shape is Shape.TEXT:
        return "" if isinstance(value, bool) else f"'{value}'"
    if not isinstance(value, str):
        return ""
    if shape is Shape.BOOLEAN:
        return value.lower() if value.lower() in ("true", "false") else ""
    return value if value.isascii() and value.isdigit() else ""
