"""Whether a step lets a token in (S30). It only judges; what becomes of the token is `control`'s business."""

from __future__ import annotations

from enum import Enum
from typing import Any

from noetlvm.expr.errors import ExpressionError
from noetlvm.expr.fuel import Fuel
from noetlvm.machine.loaded import Evaluator


class Verdict(Enum):
    """What becomes of a token in front of a gate."""

    ENTER = "enter"
    WAIT = "wait"
    """It stays in its place and is tried again when something has changed."""
    DROP = "drop"


class AdmissionError(Exception):
    """The gate cannot be tested. `error` says why."""

    def __init__(self, error: dict[str, Any]) -> None:
        self.error = error
        super().__init__(error["message"])


def judge(gate: Evaluator, drops_denied: bool, names: dict[str, Any]) -> Verdict:
    """Test a gate: all of a step's admission rules in one."""
    try:
        if gate(names, Fuel()):
            return Verdict.ENTER
    except ExpressionError as error:
        raise AdmissionError(gate.failure(error)) from None
    return Verdict.DROP if drops_denied else Verdict.WAIT
