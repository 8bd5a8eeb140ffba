"""Expressions as functions: the VM's way to evaluate verified expression code."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from noetlvm.bytecode.program import ExpressionCode
    from noetlvm.expr.fuel import Fuel
    from noetlvm.expr.interpret import Scope
    from noetlvm.expr.values import Data

Evaluation: TypeAlias = "Callable[[Scope, Fuel], Data]"


def compile_expression(expression: ExpressionCode, *, checked: bool = False) -> Evaluation:
    """Return a function of a scope and fuel that gives the expression's value, or raises ExpressionError only.

    A scope holds the namespaces by name, and under `steps` the last results of steps, a mapping or a function of the
    step's name. A name that is not there is undefined. In checked mode every belief of the verifier is asserted; it is
    many times slower.
    """
    if not checked:
        from noetlvm.expr.translate import translate

        translated = translate(expression)
        if translated:
            return translated
    from noetlvm.expr.interpret import interpreter

    return interpreter(expression)
