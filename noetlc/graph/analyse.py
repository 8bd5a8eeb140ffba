"""Every analysis over one net, put together as a report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import NamedTuple

from noetlc.graph.report import DeadArc, Firing, GraphFinding, GraphReport, Kind, Unreachable, Witness
from noetlc.net.bounds import Growth, growth_moves, growths, most_tokens
from noetlc.net.completion import Completion, completion, trap_moves, traps
from noetlc.net.concurrency import concurrent_pairs, together_moves
from noetlc.net.criticality import critical_steps, failing_moves
from noetlc.net.firing import Move
from noetlc.net.net import Arc, Net, Reason
from noetlc.net.order import always_after, always_before
from noetlc.net.paths import longest_path, shortest_path
from noetlc.net.races import races
from noetlc.net.reachability import Reach, dead_arcs, moves_from, near_miss, reach, why_never
from noetlc.net.step_tokens import step_tokens

_WHY_STEP = {
    Reason.GATE: "its admission rules never let a token in",
    Reason.NO_ARC: "no arc leads to it",
    Reason.ARCS: "every arc that leads to it is dead",
    Reason.NO_END: "the run never comes to rest before it",
}
_WHY_ARC = {
    Reason.CONSTANT: "its guard is always false",
    Reason.EVENT: "the step never ends in the way that its guard asks for",
    Reason.SHADOWED: "arc {by} comes first and takes all that it would",
}


WITNESS_WORK_MAX = 200_000
"""Work on the witnesses of one kind of finding: steps looked at and firings written down. A net with more findings than
that allows, which takes thousands of steps, gets the first of each kind; the report says how many are left out.
"""


def analyse(net: Net, source: str = "") -> GraphReport:
    """Return everything that is known about a net; `source` is what to call the file it came from."""
    return _Analysis(net).report(source)


_SEARCHED = (Kind.TRAP, Kind.UNBOUNDED, Kind.RACE)
"""Kinds whose witnesses are searched for in the net."""
_NAMES_MAX = 8
"""Steps that a message names."""


class _Claim(NamedTuple):
    """A finding that has yet to be shown."""

    kind: Kind
    step: int
    message: str
    moves: Callable[[], list[Move]]
    steps: tuple[int, ...] = ()
    arc: Arc | None = None


class _Analysis:
    def __init__(self, net: Net) -> None:
        self._net = net
        self._reach = reach(net)
        self._ends = completion(net)
        self._firings: dict[Move, Firing] = {}

    def report(self, source: str) -> GraphReport:
        found, net = self._reach, self._net
        before = always_before(found)
        growing = list(growths(found))
        most = most_tokens(found) if not growing else None
        pairs, complete = concurrent_pairs(found)
        longest = longest_path(found)
        critical = list(critical_steps(found))
        findings, left_out = self._findings(growing, critical)
        return GraphReport(
            net=net,
            source=source,
            reachable=tuple(step.name for step in net.steps if self._runs(step.index)),
            unreachable=tuple(
                Unreachable(step.name, why_never(found, step)) for step in net.steps if not self._runs(step.index)
            ),
            dead_arcs=tuple(self._dead_arc(arc, reason) for arc, reason in dead_arcs(found)),
            can_complete=all(self._ends.can_end(step) for step in found.arrived),
            bounded=not growing,
            max_tokens=most.total if most else None,
            max_tokens_witness=self._witness(most.moves()) if most else (),
            step_tokens=self._by_name(step_tokens(found, before, self._endless(growing))),
            cycles=tuple(self._names(members) for members in found.cycles),
            always_before=self._pairs(before),
            always_after=self._pairs(always_after(found)),
            concurrent=tuple((net.steps[one].name, net.steps[other].name) for one, other in pairs),
            concurrent_complete=complete,
            shortest_path=self._names(shortest_path(found)),
            longest_path=None if longest is None else self._names(longest),
            critical=self._names(critical),
            findings=findings,
            left_out=left_out,
        )

    def _runs(self, step: int) -> bool:
        """The final step runs once all else is at rest, so some run must end; it may also be on the way there."""
        if self._reach.runs(step):
            return True
        return step == self._net.final and self._net.steps[step].can_run and self._ends.can_end(self._net.entry)

    def _endless(self, growing: Iterable[Growth]) -> set[int]:
        """Return the steps at which tokens pile up."""
        found: set[int] = set()
        for growth in growing:
            if growth.extra.target not in found:
                found |= self._reach.ways.first_arcs(growth.extra.target).keys()
        return found

    # ---- names and places

    def _name(self, step: int) -> str:
        return self._net.steps[step].name

    def _names(self, steps: Iterable[int]) -> tuple[str, ...]:
        return tuple(self._name(step) for step in steps)

    def _by_name(self, counts: dict[int, int | None]) -> dict[str, int | None]:
        return {self._name(step): count for step, count in counts.items()}

    def _pairs(self, nearest: dict[int, int | None]) -> dict[str, str | None]:
        return {self._name(step): None if other is None else self._name(other) for step, other in nearest.items()}

    def _dead_arc(self, arc: Arc, reason: Reason) -> DeadArc:
        by = None if arc.shadowed_by is None else arc.shadowed_by + 1
        return DeadArc(self._name(arc.source), arc.number, self._name(arc.target), reason, by)

    def _witness(self, moves: Iterable[Move]) -> Witness:
        """Return moves as firings; witnesses begin alike, so each is made once."""
        return tuple(self._firings.get(move) or self._new_firing(move) for move in moves)

    def _new_firing(self, move: Move) -> Firing:
        return self._firings.setdefault(move, firing_of(self._net, move))

    # ---- findings

    def _findings(self, growing: list[Growth], critical: list[int]) -> tuple[tuple[GraphFinding, ...], dict[Kind, int]]:
        """Return the findings, each with its witness, and how many of each kind have been left out."""
        found: list[GraphFinding] = []
        left_out: dict[Kind, int] = {}
        for claims in self._claims(growing, critical):
            work = 0
            for claim in claims:
                if work > WITNESS_WORK_MAX:
                    left_out[claim.kind] = left_out.get(claim.kind, 0) + 1
                    continue
                found.append(self._shown(claim))
                work += len(found[-1].witness) + (len(self._net.steps) if claim.kind in _SEARCHED else 0)
        return tuple(found), left_out

    def _claims(self, growing: list[Growth], critical: list[int]) -> Iterator[Iterator[_Claim]]:
        yield from (self._unreachable(), self._dead(), self._traps())
        yield from (self._growths(growing), self._races(), self._critical(critical))

    def _shown(self, claim: _Claim) -> GraphFinding:
        where = claim.arc.where if claim.arc else self._net.steps[claim.step].where
        return GraphFinding(
            claim.kind,
            self._name(claim.step),
            claim.message,
            self._witness(claim.moves()),
            where,
            claim.arc.number if claim.arc else None,
            self._names(claim.steps),
        )

    def _unreachable(self) -> Iterator[_Claim]:
        for step in self._net.steps:
            if not self._runs(step.index):
                message = f"`{step.name}` never runs: {_WHY_STEP[why_never(self._reach, step)]}"
                yield _Claim(Kind.UNREACHABLE, step.index, message, partial(near_miss, self._reach, step))

    def _dead(self) -> Iterator[_Claim]:
        for arc, reason in dead_arcs(self._reach):
            if reason in _WHY_ARC:
                source, target = self._name(arc.source), self._name(arc.target)
                why = _WHY_ARC[reason].format(by=(arc.shadowed_by or 0) + 1)
                message = f"arc {arc.number} of `{source}`, to `{target}`, never fires: {why}"
                by = () if arc.shadowed_by is None else (arc.shadowed_by,)
                yield _Claim(
                    Kind.DEAD_ARC, arc.source, message, partial(moves_from, self._reach, arc.source, *by), arc=arc
                )

    def _traps(self) -> Iterator[_Claim]:
        for members in traps(self._reach, self._ends):
            names = ", ".join(f"`{name}`" for name in self._names(members[:_NAMES_MAX]))
            more = f" and {len(members) - _NAMES_MAX} more" if len(members) > _NAMES_MAX else ""
            message = f"once a token is at {names}{more}, the run can never end: every way on leads back"
            yield _Claim(Kind.TRAP, members[0], message, partial(trap_moves, self._reach, members[0]), tuple(members))

    def _growths(self, growing: list[Growth]) -> Iterator[_Claim]:
        for growth in growing:
            cycle = self._reach.components[self._reach.component_of[growth.step]]
            message = (
                f"tokens pile up at `{self._name(growth.extra.target)}`: each round through "
                f"`{self._name(growth.step)}` fires arc {growth.extra.number} together with arc "
                f"{growth.stays.number}, which leads round again"
            )
            moves = partial(growth_moves, self._reach, growth)
            yield _Claim(Kind.UNBOUNDED, growth.step, message, moves, tuple(cycle), growth.extra)

    def _races(self) -> Iterator[_Claim]:
        for race in races(self._reach):
            beside = ["a second run of it" if n == race.writer else f"`{self._name(n)}`" for n in race.others]
            writer = self._name(race.writer)
            message = f"`{writer}` writes `ctx.{race.key}`, and may run at the same time as {', '.join(beside)}"
            moves = partial(together_moves, self._reach, race.writer, race.others[0])
            yield _Claim(Kind.RACE, race.writer, message, moves, race.others)

    def _critical(self, critical: list[int]) -> Iterator[_Claim]:
        for step in critical:
            name = self._name(step)
            message = f"if `{name}` fails, no arc leads on: the branch ends there, and nothing handles the failure"
            yield _Claim(Kind.CRITICAL, step, message, partial(failing_moves, self._reach, step))


def firing_of(net: Net, move: Move) -> Firing:
    """Return a move with its names and places, for people and for replay."""
    step = net.steps[move.step]
    arcs = [step.arcs[index] for index in move.arcs]
    return Firing(
        step.name,
        move.event,
        tuple(arc.number for arc in arcs),
        tuple(net.steps[arc.target].name for arc in arcs),
        step.where,
        tuple(arc.where for arc in arcs),
    )


def path_witness(net: Net, start: str | None, end: str | None) -> Witness | None:
    """Return the shortest firing sequence from one step to another; None if there is none, or no such step.

    Without a start it begins at the entry; without an end it goes on until the run is over.
    """
    first = net.entry if start is None else net.index_of(start)
    last = None if end is None else net.index_of(end)
    if first is None or (end is not None and last is None):
        return None
    moves = ending_moves(completion(net), first) if last is None else moves_between(reach(net), first, last)
    return None if moves is None else tuple(firing_of(net, move) for move in moves)


def moves_between(found: Reach, start: int, end: int) -> list[Move] | None:
    """Return the moves of a token from one step to another."""
    path = found.ways.round_trip(start) if start == end else found.ways.path(start, end)
    return None if path is None else found.ways.moves(path)


def ending_moves(ends: Completion, start: int) -> list[Move] | None:
    """Return the moves from one token to the end of the run."""
    return ends.moves(start) if ends.can_end(start) else None
