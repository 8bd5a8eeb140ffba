"""What always comes before a step, and what always comes after: dominators and post-dominators.

Before: every way that leads a token to the step passes there. After: every line of tokens from the step that comes to
an end passes there; a line is a token, one of the tokens it becomes, and so on.
"""

from __future__ import annotations

from noetlc.net.dominators import immediate_dominators
from noetlc.net.firing import line_may_end
from noetlc.net.reachability import Reach

_END = -1


def always_before(reach: Reach) -> dict[int, int | None]:
    """Return, for each step that tokens come to, its immediate dominator; None for the entry."""
    found = immediate_dominators(reach.net.entry, lambda step: (arc.target for arc in reach.ways.onward[step]))
    return {step: found[step] for step in reach.arrived}


def always_after(reach: Reach) -> dict[int, int | None]:
    """Return, for each step that tokens come to, its immediate post-dominator; None where there is none."""
    into: dict[int, list[int]] = {_END: [step for step in reach.arrived if line_may_end(reach.net.steps[step])]}
    for step in reach.arrived:
        for arc in reach.ways.onward[step]:
            into.setdefault(arc.target, []).append(step)
    found = immediate_dominators(_END, lambda step: into.get(step, ()))
    nearest = {step: found.get(step) for step in reach.arrived}
    return {step: None if above == _END else above for step, above in nearest.items()}
