"""Which steps can run and which arcs can fire, and why the others cannot."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from noetlc.net.components import components
from noetlc.net.firing import Move, Ways, any_firing, denial, path_to
from noetlc.net.net import Arc, Net, Reason, Step
from noetlvm.record import Record


class Reach(Record, cached=True):
    """Where tokens come to, other than the final step's own token."""

    net: Net
    ways: Ways

    @cached_property
    def first_arcs(self) -> dict[int, Arc | None]:
        """Each step that a token comes to, with the arc that brings it there soonest."""
        return self.ways.first_arcs(self.net.entry)

    @cached_property
    def arrived(self) -> list[int]:
        """The steps that a token comes to, in the order written."""
        return sorted(self.first_arcs)

    @cached_property
    def components(self) -> list[list[int]]:
        """The strongly connected components of these steps; each comes after all that it leads to."""
        return components([self.net.entry], lambda step: (arc.target for arc in self.ways.onward[step]))

    @cached_property
    def component_of(self) -> dict[int, int]:
        """The place of each step's component."""
        return {step: number for number, members in enumerate(self.components) for step in members}

    @cached_property
    def cycles(self) -> list[list[int]]:
        """The components that have a cycle, each with its steps in the order written."""
        return sorted(members for members in self.components if self.is_cycle(members))

    @cached_property
    def arcs_to(self) -> dict[int, list[Arc]]:
        """The arcs that lead to each step, dead or alive."""
        found: dict[int, list[Arc]] = {}
        for step in self.net.steps:
            for arc in step.arcs:
                found.setdefault(arc.target, []).append(arc)
        return found

    def is_cycle(self, members: list[int]) -> bool:
        """Tell whether a component is more than a single step that does not lead to itself."""
        return len(members) > 1 or any(arc.target == members[0] for arc in self.ways.onward[members[0]])

    def runs(self, step: int) -> bool:
        """Tell whether a step can run, other than as the final step."""
        return step in self.first_arcs and self.net.steps[step].can_run

    def moves_to(self, step: int) -> list[Move]:
        """Return the shortest firing sequence that brings a token to a step."""
        return self.ways.moves(path_to(step, self.first_arcs) or [])


def reach(net: Net) -> Reach:
    """Return where tokens come to."""
    return Reach(net, Ways(net))


def why_never(reach: Reach, step: Step) -> Reason:
    """Return why a step never runs."""
    if step.index == reach.net.final:
        return Reason.NO_END if step.can_run else Reason.GATE
    if step.index in reach.first_arcs:
        return Reason.GATE
    return Reason.ARCS if reach.arcs_to.get(step.index, []) else Reason.NO_ARC


def dead_arcs(reach: Reach) -> Iterator[tuple[Arc, Reason]]:
    """Yield each arc that never fires, and why."""
    for step in reach.net.steps:
        for arc in step.arcs:
            if not reach.runs(step.index):
                yield arc, Reason.FINAL if step.index == reach.net.final else Reason.SOURCE
            elif arc.reason is not None:
                yield arc, arc.reason


def near_miss(reach: Reach, step: Step) -> list[Move]:
    """Return a firing sequence that comes as near to a step that never runs as one can."""
    if step.index in reach.first_arcs:
        return [*reach.moves_to(step.index), denial(step)]
    sources = [arc.source for arc in reach.arcs_to.get(step.index, []) if reach.runs(arc.source)]
    return moves_from(reach, min(sources)) if sources else first_move(reach)


def moves_from(reach: Reach, source: int, *arcs: int) -> list[Move]:
    """Return a firing sequence that ends with a step that can run, firing these arcs."""
    last = any_firing(reach.net.steps[source], *arcs)
    return [*reach.moves_to(source), *([last] if last else [])]


def first_move(reach: Reach) -> list[Move]:
    """Return what the entry does with the first token."""
    entry = reach.net.steps[reach.net.entry]
    return moves_from(reach, entry.index) if entry.can_run else [denial(entry)]
