"""The attack set: no template escapes from data, and none takes more time or memory than it is given.

Each row of attacks.json says what must happen: `refused` by lint and the compiler, an error of a kind, or a harmless
value. Time is bounded by fuel, which does not depend on the machine; memory is measured.
"""

from __future__ import annotations

import copy
import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from noetlc.codegen.expressions import lower_template
from noetlc.codegen.stack_code import LoweringError
from noetlc.compile import compile_playbooks
from noetlc.finding import Severity
from noetlc.lint.check import check_bytes
from noetlc.syntax.template_parser import parse_template
from noetlvm.bytecode.program import ExpressionCode
from noetlvm.expr.errors import ExpressionError, Fuel
from noetlvm.expr.interpret import compile_expression
from noetlvm.expr.values import Undefined

ATTACKS: list[dict[str, Any]] = json.loads(Path(__file__).with_name("attacks.json").read_text(encoding="utf-8"))
PEAK_MAX = 16_000_000
SCOPE: dict[str, Any] = {
    "workload": {"a": 1},
    "ctx": {"n": 5, "items": [1], "numbers": [2, 1], "filter_name": "attr"},
    "args": {},
}


def template_of(row: dict[str, Any]) -> str:
    """Return the template; one written in parts has some of them many times."""
    parts = row["template"]
    if isinstance(parts, str):
        return parts
    return "".join(part if isinstance(part, str) else part[0] * part[1] for part in parts)


def expression_of(row: dict[str, Any]) -> ExpressionCode | None:
    """Return its code, or None if it is refused."""
    template = parse_template(template_of(row))
    try:
        return None if template.problems else lower_template(template).expression
    except LoweringError:
        return None


def outcome(expression: ExpressionCode, checked: bool) -> Any:
    evaluate = compile_expression(expression, checked=checked)
    try:
        value = evaluate(copy.deepcopy(SCOPE), Fuel())
    except ExpressionError as error:
        return str(error.kind)
    if isinstance(value, str) and len(value) > 200:
        return {"length": len(value)}
    return {"value": "undefined" if isinstance(value, Undefined) else written(value)}


def written(value: Any) -> Any:
    """Return a value as the file has it."""
    return "inf" if value == float("inf") else json.loads(json.dumps(value, default=str))


def playbook_of(row: dict[str, Any]) -> bytes:
    task = {"name": "t", "kind": "shell", "cmd": template_of(row)}
    document = {
        "apiVersion": "noetl.io/v2",
        "kind": "Playbook",
        "metadata": {"name": "attack", "path": "tests/attack"},
        "workflow": [{"step": "start", "tool": task}],
    }
    return json.dumps(document).encode()


names = pytest.mark.parametrize("row", ATTACKS, ids=lambda row: row["name"])


def test_the_set_is_large_enough() -> None:
    assert len({row["name"] for row in ATTACKS}) == len(ATTACKS) >= 150


ROADS = {"translated": False, "interpreted": True}
SLOW = {"interpreted-billion laughs as JSON"}
"""What takes seconds and differs from the other road in no code that takes them."""


@pytest.mark.parametrize(
    ("row", "checked"),
    [
        pytest.param(row, checked, id=id, marks=[pytest.mark.long] if id in SLOW else [])
        for row in ATTACKS
        for road, checked in ROADS.items()
        for id in [f"{road}-{row['name']}"]
    ],
)
def test_evaluation_does_what_is_expected_within_its_memory(row: dict[str, Any], checked: bool) -> None:
    expression = expression_of(row)
    if row["expected"] == "refused":
        assert expression is None
        return
    assert expression is not None
    outcome(expression, checked)  # so that what is imported on first use is not counted
    tracemalloc.start()
    found = outcome(expression, checked)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found == row["expected"]
    assert peak < PEAK_MAX


@names
def test_lint_and_compiler_survive_it_and_refuse_what_has_no_code(row: dict[str, Any]) -> None:
    data = playbook_of(row)
    found = check_bytes("attack.yaml", data)
    errors = [finding for finding in found.findings if finding.severity is Severity.ERROR]
    compiled = compile_playbooks([("attack.yaml", data)])
    if row["expected"] == "refused":
        assert errors
    if errors:
        assert compiled.program is None
