"""Evaluates templates and hand-written code, translated and interpreted, which must agree."""

from __future__ import annotations

from typing import Any

from noetlc.codegen.expressions import lower_template
from noetlc.syntax.template_parser import parse_template
from noetlvm.bytecode.isa import EXPRESSION
from noetlvm.bytecode.program import ExpressionCode, Instruction
from noetlvm.expr.errors import ExpressionError, Fuel
from noetlvm.expr.interpret import compile_expression


def code(*rows: tuple[Any, ...], slots: int = 0) -> ExpressionCode:
    """Return an expression of instructions written as `("ATTR", "a")`."""
    return ExpressionCode(tuple(Instruction(EXPRESSION[row[0]], row[1:]) for row in rows), slots)


def run(expression: ExpressionCode, scope: dict[str, Any] | None = None, fuel: Fuel | None = None) -> Any:
    """Return what both ways of evaluation give; the error that both raise is raised."""
    limits = fuel or Fuel()
    outcomes = [
        _outcome(expression, scope or {}, Fuel(limits.steps, limits.bytes), checked) for checked in (False, True)
    ]
    translated, interpreted = outcomes
    assert translated[1:] == interpreted[1:]
    if isinstance(translated[0], ExpressionError):
        raise translated[0]
    return translated[0]


def _outcome(expression: ExpressionCode, scope: dict[str, Any], fuel: Fuel, checked: bool) -> tuple[Any, ...]:
    evaluate = compile_expression(expression, checked=checked)
    try:
        value = evaluate(scope, fuel)
    except ExpressionError as error:
        return error, str(error.kind), error.message, error.at
    return value, repr(value), fuel.steps, fuel.bytes


def value_of(template: str, scope: dict[str, Any] | None = None, *, guard: bool = False) -> Any:
    """Return a template's value."""
    return run(lower_template(parse_template(template), guard=guard).expression, scope)
