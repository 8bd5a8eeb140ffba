"""Decisions about tokens: whether a gate admits one, which arcs fire, how the execution ends.

S30, S31, S32, S4, S34. They record nothing; `decide` does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from noetlvm.data.encoding import UnencodableError
from noetlvm.expr.errors import ExpressionError, Fuel
from noetlvm.limits import ARGS_BYTES_MAX, ROUTER_STEPS_MAX
from noetlvm.machine.instructions import failure
from noetlvm.machine.loaded import Evaluator, LoadedPlaybook, LoadedStep
from noetlvm.machine.payload import TooLargeError
from noetlvm.machine.state import State


class AdmissionError(Exception):
    """The gate cannot be evaluated. `error` has the reason."""

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


class _CannotRouteError(Exception):
    def __init__(self, error: dict[str, Any]) -> None:
        self.error = error
        super().__init__(error["message"])


class Routing(NamedTuple):
    """The arcs of a step whose run has ended, and what their templates see."""

    net: LoadedPlaybook
    step: LoadedStep
    names: dict[str, Any]
    """What args see; not needed if no arc has a template."""
    guarded: dict[str, Any]
    """What guards see."""
    args: dict[str, Any]
    """What the run was given, as it is stored."""
    failed: bool
    """The run ended with `step.failed`."""
    fit: Callable[[dict[str, Any], int], dict[str, Any]]
    """Makes a mapping as small as this."""

    def route(self) -> tuple[dict[str, Any], list[tuple[str, dict[str, Any]]]]:
        """Return the data of `next.evaluated`, and step and args of each token.

        An arc that cannot be evaluated means that none fires.
        """
        arcs = self.step.arcs
        try:
            fired = self._firing()
            tokens = [(arcs[index].target, self._token_args(index)) for index in fired]
        except _CannotRouteError as problem:
            return {"arcs": [], "error": problem.error}, []
        data: dict[str, Any] = {"arcs": fired}
        if self.failed and any(arcs[index].handles_failure for index in fired):
            data["handled"] = True
        if arcs and not fired and not self.failed and self.net.no_next_is_error:
            data["error"] = failure("no_next", f"no arc of `{self.step.name}` holds, and `no_next_is_error` is set")
        return data, tokens

    def _firing(self) -> list[int]:
        fired = []
        left = ROUTER_STEPS_MAX
        for index in range(len(self.step.arcs)):
            fuel = Fuel()
            full = fuel.steps
            holds = self._holds(index, fuel)
            left -= full - fuel.steps
            if left < 0:
                message = f"the guards of `{self.step.name}` take more than {ROUTER_STEPS_MAX:,} steps together"
                raise _CannotRouteError(failure("fuel", f"{message}; compare what a task has computed"))
            if holds:
                fired.append(index)
                if not self.step.inclusive:
                    break
        return fired

    def _holds(self, index: int, fuel: Fuel) -> bool:
        guard = self.step.arcs[index].guard
        if guard is None:
            return not (self.failed and self.net.guards_success)
        try:
            return bool(guard(self.guarded, fuel))
        except ExpressionError as error:
            raise _CannotRouteError(guard.failure(error)) from None

    def _token_args(self, index: int) -> dict[str, Any]:
        """Return the firing step's args overlaid by the arc's."""
        arc = self.step.arcs[index]
        args = {**self.args, **self._written(arc.args)} if arc.args else self.args
        try:
            return self.fit(args, ARGS_BYTES_MAX)
        except (TooLargeError, UnencodableError) as error:
            message = f"no token can carry the args for `{arc.target}`: {error}"
            raise _CannotRouteError(failure("args", message)) from None

    def _written(self, args: Evaluator) -> dict[str, Any]:
        try:
            found: dict[str, Any] = args(self.names, Fuel())
        except ExpressionError as error:
            raise _CannotRouteError(args.failure(error)) from None
        return found


def summary(state: State) -> dict[str, Any]:
    """Return the args of the token for `final_step`."""
    succeeded, failed, rejected = state.counts
    return {
        "counts": {"succeeded": succeeded, "failed": failed, "rejected": rejected, "unhandled": state.failure_count},
        "failures": list(state.failures),
        "results": dict(sorted(state.results.items())),  # by name: they ended in an order of the schedule (S65)
    }


def final_status(state: State) -> str:
    """Return how the execution ends, now that nothing can move."""
    if state.status == "cancelling":
        return "cancelled"
    return "failed" if state.failure_count else "success"
