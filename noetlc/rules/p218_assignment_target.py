from collections.abc import Iterator

from noetlc.analysis.names import FOR_LOOP
from noetlc.rules.rule import Findings, Model, Rule, Severity
from noetlc.syntax import template_ast as t


class AssignmentTarget(Rule):
    severity = Severity.ERROR
    summary = "A `set` or `for` writes into data, or to the `loop` of a block."
    why = (
        "Data does not change in place, because another template may read it. `loop` describes the `for` block, so "
        "no variable inside the block may have that name."
    )
    example = """
      - step: start
        tool:
    -     - say: {kind: shell, command: [echo, "{% set ctx.count = 1 %}{{ ctx.count }}"]}
    +     - say: {kind: shell, command: [echo, "{% set count = 1 %}{{ count }}"]}
    """
    covers = ("S12",)

    def check(self, model: Model) -> Findings:
        for reading in model.readings:
            for target, in_for in _targets(reading.template.parts, in_for=False):
                problem = _problem(target, in_for)
                if problem:
                    yield self.finding(model.place(reading.site, target.span), *problem)


def _problem(target: t.Expression, in_for: bool) -> tuple[str, str] | None:
    if not isinstance(target, t.Name):
        return "data does not change in place, so only a name can be set", "set a variable"
    if target.name == FOR_LOOP and in_for:
        return "`loop` belongs to the `for` block around it", "choose another name"
    return None


def _targets(parts: tuple[t.Part, ...], *, in_for: bool) -> Iterator[tuple[t.Expression, bool]]:
    """Yield every target, those of a tuple one by one, and whether it is written inside a `for` block."""
    for part in parts:
        if isinstance(part, t.If):
            for branch in part.branches:
                yield from _targets(branch.body, in_for=in_for)
            yield from _targets(part.otherwise, in_for=in_for)
        elif isinstance(part, t.For):
            yield from ((name, True) for name in _names(part.target))
            yield from _targets(part.body, in_for=True)
            yield from _targets(part.otherwise, in_for=in_for)
        elif isinstance(part, t.Set | t.SetBlock):
            yield from ((name, in_for) for name in _names(part.target))
            if isinstance(part, t.SetBlock):
                yield from _targets(part.body, in_for=in_for)


def _names(target: t.Expression) -> Iterator[t.Expression]:
    if isinstance(target, t.Tuple):
        for item in target.items:
            yield from _names(item)
    else:
        yield target
