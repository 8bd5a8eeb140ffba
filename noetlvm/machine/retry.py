"""What a retry of a failed execution puts back (S56): the tokens of step runs whose failure nothing handled.

The new execution's log begins with the whole log of the failed one, so everything that succeeded stays as it is. Then
`execution.retried` opens it again, and a token takes the place of each that led to a failure or still waited at the
end. The token of `final_step` is not among them: it comes again when the new execution is at rest.
"""

from __future__ import annotations

from collections.abc import Iterable

from noetlvm.data.event import Event, Recorded
from noetlvm.machine.fold import apply
from noetlvm.machine.messages import Retry
from noetlvm.machine.state import State, Token


class RetryPlan:
    """A log, folded, and what a retry of its execution puts back."""

    def __init__(self, log: Iterable[Recorded]) -> None:
        self.state = State()
        self._taken: dict[int, tuple[int, Token]] = {}
        """Number and token of each run that is not routed yet."""
        self._lost: dict[int, Token] = {}
        """Tokens to put back, by number."""
        self._undone = [0, 0, 0]
        """Counts of the state that their runs and rejections made."""
        for recorded in log:
            self._watch(recorded.event)
            apply(self.state, recorded.event, recorded.timestamp)
        self.state.touched = {}

    def retry(self, execution_id: str, bundle: str) -> Retry:
        """Return the input that starts the retry as an execution of its own."""
        tokens = [self._lost[number] for number in sorted(self._lost)]
        return Retry(execution_id, bundle, self.state.execution_id, tokens, list(self._undone))

    @property
    def has_begun(self) -> bool:
        """Return whether there is anything to run again, the final step included; not so for a refused request."""
        return any(self._undone)

    def _watch(self, event: Event) -> None:
        """Note what an event does to tokens, before the state drops them."""
        data, state = event.data, self.state
        if event.name == "step.scheduled" and "token" in data:
            self._taken[event.run] = data["token"], state.tokens[data["token"]]
        elif event.name == "token.rejected" and (data["reason"] == "at_rest" or data.get("error")):
            self._lose(data["token"], state.tokens[data["token"]], 2)
        elif event.name == "next.evaluated":
            number, token = self._taken.pop(event.run)
            boundary = state.runs[event.run].boundary or {}
            failed = boundary["status"] == "error"
            if token.final or (failed and not data.get("handled")) or data.get("error"):
                self._lose(number, token, 1 if failed else 0)
        elif event.name == "execution.retried":
            self._lost, self._undone = {}, [0, 0, 0]

    def _lose(self, number: int, token: Token, count: int) -> None:
        self._undone[count] += 1
        if not token.final:
            self._lost[number] = token
