"""Evaluation of guards and arguments, beside Jinja2's compiled expression and a Python lambda over the same dicts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jinja2 import ChainableUndefined
from jinja2 import __version__ as jinja_version
from jinja2.sandbox import SandboxedEnvironment

from bench.measurement import Contestant, Row, at_most, best_of, faster
from bench.workplace import Workplace
from noetlc.codegen.expressions import lower_template
from noetlc.syntax.template_parser import parse_template
from noetlvm.expr.errors import Fuel
from noetlvm.expr.interpret import compile_expression

SCOPE: dict[str, Any] = {
    "outcome": {"status": "error", "http": {"status": 500}, "result": {"items": [1, 2]}},
    "ctx": {"page": 4, "host": "example.org"},
    "iter": {"city": {"name": "Oslo"}},
}

CASES: dict[str, tuple[str, bool, Callable[[dict[str, Any]], object]]] = {
    "guard": (
        "{{ outcome.status == 'error' and outcome.http.status in [429, 500] }}",
        True,
        lambda s: s["outcome"]["status"] == "error" and s["outcome"]["http"]["status"] in [429, 500],
    ),
    "number": ("{{ ctx.page + 1 }}", False, lambda s: s["ctx"]["page"] + 1),
    "text": (
        "https://{{ ctx.host }}/{{ iter.city.name }}?page={{ ctx.page }}",
        False,
        lambda s: f"https://{s['ctx']['host']}/{s['iter']['city']['name']}?page={s['ctx']['page']}",
    ),
}
"""A template, whether it is a guard, and the same in Python."""

_TIMES = 20_000
_TIMES_JINJA = _TIMES // 20


def measure(workplace: Workplace) -> list[Row]:
    """Time each case; figures are seconds for one evaluation."""
    rows: list[Row] = []
    for name, (template, guard, function) in CASES.items():
        times = best_of(_contestants(template, guard, function), workplace.rounds)
        ours = times["ours"] / _TIMES
        rows.append(Row(f"evaluate {name}", ours, "Python lambda", times["lambda"] / _TIMES, at_most(4)))
        rows.append(Row(f"evaluate {name}", ours, f"Jinja2 {jinja_version}", times["jinja"] / _TIMES_JINJA, faster(10)))
    return rows


def _contestants(template: str, guard: bool, function: Callable[[dict[str, Any]], object]) -> list[Contestant]:
    evaluate = compile_expression(lower_template(parse_template(template), guard=guard).expression)
    fuel = Fuel(steps=1 << 62, bytes=1 << 62)
    theirs = _of_jinja(template)
    return [
        Contestant("ours", lambda: _repeat(lambda: evaluate(SCOPE, fuel), _TIMES)),
        Contestant("lambda", lambda: _repeat(lambda: function(SCOPE), _TIMES)),
        Contestant("jinja", lambda: _repeat(theirs, _TIMES_JINJA)),
    ]


def _of_jinja(template: str) -> Callable[[], object]:
    environment = SandboxedEnvironment(undefined=ChainableUndefined)
    if parse_template(template).is_single:
        expression = environment.compile_expression(template[2:-2])
        return lambda: expression(SCOPE)
    compiled = environment.from_string(template)
    return lambda: compiled.render(SCOPE)


def _repeat(function: Callable[[], object], times: int) -> None:
    for _ in range(times):
        function()
