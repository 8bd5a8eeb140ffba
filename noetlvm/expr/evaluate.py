"""Expressions as functions: the VM's way to evaluate verified expression code."""

from __future__ import annotations

from collections.abc import Callable

from noetlvm.bytecode.program import Expression
from noetlvm.expr.fuel import Fuel
from noetlvm.expr.interpret import Scope, interpreter
from noetlvm.expr.translate import translate
from noetlvm.expr.values import Data

Evaluation = Callable[[Scope, Fuel], Data]


def compile_expression(expression: Expression, *, checked: bool = False) -> Evaluation:
    """Return a function of a scope and fuel that gives the expression's value, or raises ExpressionError only.

    A scope holds the namespaces by name, and under `steps` the last results of steps, a mapping or a function of the
    step's name. A name that is not there is undefined. In checked mode every belief of the verifier is asserted; it is
    many times slower.
    """
    translated = None if checked else translate(expression)
    return translated or interpreter(expression)
