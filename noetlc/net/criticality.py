"""Critical steps: the success of a step leads on, and its failure leads nowhere and is handled by nothing."""

from __future__ import annotations

from collections.abc import Iterator

from noetlc.net.firing import Move, firing
from noetlc.net.net import STEP_FAILED
from noetlc.net.reachability import Reach


def critical_steps(reach: Reach) -> Iterator[int]:
    """Yield each step that can run, can fail, and strands the branch if it does."""
    for number in reach.arrived:
        step = reach.net.steps[number]
        leads_on = {ending.event: any(any(choice) for choice in ending.choices) for ending in step.endings}
        if step.can_run and leads_on.get(STEP_FAILED) is False and any(leads_on.values()):
            yield number


def failing_moves(reach: Reach, step: int) -> list[Move]:
    """Return a firing sequence that ends with the failure of a step."""
    endings = {ending.event: ending for ending in reach.net.steps[step].endings}
    failure = firing(reach.net.steps[step], endings[STEP_FAILED])
    assert failure is not None  # nothing in particular has to fire
    return [*reach.moves_to(step), failure]
