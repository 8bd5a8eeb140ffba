"""Which step can have run before which, by the arcs alone: guards may hold or not. It reports nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from noetlc.analysis.model import Model

_VISITS_MAX = 200_000
"""Steps looked at for one playbook; searches beyond that answer yes, so that no playbook takes long."""


class StepOrder:
    """Answers for one playbook."""

    def __init__(self, model: Model) -> None:
        self._sources: dict[str, list[str]] = {}
        self._visits_left = _VISITS_MAX
        self._anything_goes = any((problem.object, problem.key) == ("step", "next") for problem in model.problems)
        spec = model.playbook.executor.spec if model.playbook.executor else None
        self._final = spec.final_step.text if spec and spec.final_step else ""
        for step in model.steps:
            mode = step.next.spec.mode if step.next and step.next.spec else None
            # With one token there is one order. Several tokens may overtake each other in any way.
            self._anything_goes |= mode is not None and mode.text == "inclusive"
            for arc in (step.next.arcs or ()) if step.next else ():
                if step.step and arc.step:
                    self._sources.setdefault(arc.step.text, []).append(step.step.text)

    def can_precede(self, earlier: str, later: str) -> bool:
        """Tell whether a run of `earlier` can be over when a run of `later` begins."""
        if self._anything_goes or later == self._final:
            return True
        seen: set[str] = set()
        waiting = [later]
        while waiting and self._visits_left > 0:
            for source in self._sources.get(waiting.pop(), ()):
                self._visits_left -= 1
                if source == earlier:
                    return True
                if source not in seen:
                    seen.add(source)
                    waiting.append(source)
        return self._visits_left <= 0
