"""Whether a step admits a token, and which rule denies it (S30). What happens to the token is decided elsewhere."""

from __future__ import annotations

from typing import Any

from noetlvm.expr.errors import ExpressionError
from noetlvm.expr.fuel import Fuel
from noetlvm.machine.loaded import Evaluator


class AdmissionError(Exception):
    """The gate cannot be tested. `error` says why."""

    def __init__(self, error: dict[str, Any]) -> None:
        self.error = error
        super().__init__(error["message"])


def judge(gate: Evaluator, names: dict[str, Any]) -> bool:
    """Test a gate: all of a step's admission rules in one."""
    try:
        return bool(gate(names, Fuel()))
    except ExpressionError as error:
        raise AdmissionError(gate.failure(error)) from None


def denial(gate: Evaluator, names: dict[str, Any]) -> dict[str, Any]:
    """Return number and place of the rule by which a gate has just denied a token; nothing if that is not known."""
    rule, at = gate.deciding_rule(names)
    return {key: value for key, value in (("rule", rule), ("at", at)) if value}
