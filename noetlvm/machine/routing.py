"""Which arcs fire after a boundary event, and what their tokens carry (S31, S32)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from noetlvm.data.encoding import UnencodableError
from noetlvm.expr.errors import ExpressionError
from noetlvm.expr.fuel import Fuel
from noetlvm.limits import ARGS_BYTES_MAX
from noetlvm.machine.effects import failure
from noetlvm.machine.loaded import Evaluator, LoadedPlaybook, LoadedStep
from noetlvm.machine.payload import TooLargeError


class _CannotRouteError(Exception):
    def __init__(self, error: dict[str, Any]) -> None:
        self.error = error
        super().__init__(error["message"])


class Routing(NamedTuple):
    """The arcs of a step whose run has ended, and what their templates see."""

    net: LoadedPlaybook
    step: LoadedStep
    names: dict[str, Any]
    """Not needed if no arc has a template."""
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
        for index in range(len(self.step.arcs)):
            if self._holds(index):
                fired.append(index)
                if not self.step.inclusive:
                    break
        return fired

    def _holds(self, index: int) -> bool:
        guard = self.step.arcs[index].guard
        if guard is None:
            return not (self.failed and self.net.guards_success)
        try:
            return bool(guard(self.names, Fuel()))
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
