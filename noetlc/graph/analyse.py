"""Every analysis of one net, combined in a report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from noetlc.finding import Severity
from noetlc.graph.networkx_graph import NetworkxReach, longest_path, networkx_reach, shortest_path
from noetlc.graph.ordering import always_after, always_before
from noetlc.graph.report import DeadArc, Firing, GraphFinding, GraphReport, Unreachable, Witness
from noetlc.net.concurrency import concurrent_pairs
from noetlc.net.findings import FACTS, SEVERITIES, NetFinding, NetFindingKind, NetFindings
from noetlc.net.moves import Move
from noetlc.net.net import Net, NetArc, Reason
from noetlc.net.reach import dead_arcs, why_never
from noetlc.net.tokens import Completion, Growth, completion, most_tokens, step_tokens

WITNESS_WORK_MAX = 200_000
"""Steps visited and firings listed for the witnesses of one kind of finding. A net with more findings than that allows,
which takes thousands of steps, gets the first of each kind; the report counts those left out.
"""

_SEARCHED = (NetFindingKind.TRAP, NetFindingKind.UNBOUNDED, NetFindingKind.RACE)
"""Kinds whose witnesses take a search of the net."""


def analyse(
    net: Net,
    source: str = "",
    silenced: frozenset[tuple[str, str]] = frozenset(),
    requested: frozenset[NetFindingKind] = frozenset(),
) -> GraphReport:
    """Return everything that is known about a net; `source` is the file that it was read from.

    `silenced` has the code and message of findings to leave out. Facts are findings only where `requested` has them.
    """
    kinds = [kind for kind in NetFindingKind if kind not in FACTS or kind in requested]
    return _Analysis(net, silenced, kinds).report(source)


class _Analysis:
    def __init__(self, net: Net, silenced: frozenset[tuple[str, str]], kinds: Sequence[NetFindingKind]) -> None:
        self._kinds = kinds
        self._net = net
        self._silenced = silenced
        self._reach = networkx_reach(net)
        self._found = NetFindings(self._reach)
        self._firings: dict[Move, Firing] = {}

    def report(self, source: str) -> GraphReport:
        reach, net = self._reach, self._net
        before = always_before(reach)
        growing = self._found.growths
        most = most_tokens(reach) if not growing else None
        pairs, complete = concurrent_pairs(reach)
        longest = longest_path(reach)
        findings, left_out = self._findings()
        return GraphReport(
            net=net,
            source=source,
            reachable=tuple(step.name for step in net.steps if self._found.runs(step.index)),
            unreachable=tuple(
                Unreachable(step.name, why_never(reach, step)) for step in net.steps if not self._found.runs(step.index)
            ),
            dead_arcs=tuple(self._dead_arc(arc, reason) for arc, reason in dead_arcs(reach)),
            can_complete=all(self._found.ends.can_end(step) for step in reach.arrived),
            bounded=not growing,
            max_tokens=most.total if most else None,
            max_tokens_witness=self._witness(most.moves()) if most else (),
            step_tokens=self._by_name(step_tokens(reach, before, self._unbounded(growing))),
            cycles=tuple(self._names(members) for members in reach.cycles),
            always_before=self._pairs(before),
            always_after=self._pairs(always_after(reach)),
            concurrent=tuple((net.steps[one].name, net.steps[other].name) for one, other in pairs),
            concurrent_complete=complete,
            shortest_path=self._names(shortest_path(reach)),
            longest_path=None if longest is None else self._names(longest),
            unhandled_failures=self._names(self._found.unhandled_steps()),
            findings=findings,
            left_out=left_out,
        )

    def _unbounded(self, growing: Iterable[Growth]) -> set[int]:
        """Return the steps at which tokens accumulate."""
        found: set[int] = set()
        for growth in growing:
            if growth.extra.target not in found:
                found |= self._reach.paths.first_arcs(growth.extra.target).keys()
        return found

    # ---- names and positions

    def _name(self, step: int) -> str:
        return self._net.steps[step].name

    def _names(self, steps: Iterable[int]) -> tuple[str, ...]:
        return tuple(self._name(step) for step in steps)

    def _by_name(self, counts: dict[int, int | None]) -> dict[str, int | None]:
        return {self._name(step): count for step, count in counts.items()}

    def _pairs(self, nearest: dict[int, int | None]) -> dict[str, str | None]:
        return {self._name(step): None if other is None else self._name(other) for step, other in nearest.items()}

    def _dead_arc(self, arc: NetArc, reason: Reason) -> DeadArc:
        by = None if arc.shadowed_by is None else arc.shadowed_by + 1
        return DeadArc(self._name(arc.source), arc.number, self._name(arc.target), reason, by)

    def _witness(self, moves: Iterable[Move]) -> Witness:
        """Return moves as firings; witnesses begin alike, so each firing is made once."""
        return tuple(self._firings.get(move) or self._new_firing(move) for move in moves)

    def _new_firing(self, move: Move) -> Firing:
        return self._firings.setdefault(move, firing_of(self._net, move))

    # ---- findings

    def _findings(self) -> tuple[tuple[GraphFinding, ...], dict[NetFindingKind, int]]:
        """Return the findings, each with its witness, and how many of each kind are left out."""
        found: list[GraphFinding] = []
        left_out: dict[NetFindingKind, int] = {}
        for kind, findings in self._found.of_kinds(self._kinds):
            work = 0
            for finding in findings:
                if (finding.code, finding.message) in self._silenced:
                    continue
                if work > WITNESS_WORK_MAX:
                    left_out[kind] = left_out.get(kind, 0) + 1
                    continue
                found.append(self._shown(finding))
                work += len(found[-1].witness) + (len(self._net.steps) if kind in _SEARCHED else 0)
        return tuple(found), left_out

    def _shown(self, finding: NetFinding) -> GraphFinding:
        return GraphFinding(
            finding.kind,
            _severity(finding.code),
            self._name(finding.step),
            finding.message,
            self._witness(finding.moves()),
            finding.arc.where if finding.arc else self._net.steps[finding.step].where,
            finding.arc.number if finding.arc else None,
            self._names(finding.steps),
            "" if finding.is_consequence else finding.code,
            finding.help,
        )


def _severity(code: str) -> Severity:
    """Return the severity of the lint rule with this code; a note for what is no mistake."""
    return SEVERITIES[code] if code else Severity.NOTE


def firing_of(net: Net, move: Move) -> Firing:
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

    Without a start it begins at the entry; without an end it continues until the run has ended.
    """
    first = net.entry if start is None else net.index_of(start)
    last = None if end is None else net.index_of(end)
    if first is None or (end is not None and last is None):
        return None
    moves = ending_moves(completion(net), first) if last is None else moves_between(networkx_reach(net), first, last)
    return None if moves is None else tuple(firing_of(net, move) for move in moves)


def moves_between(reach: NetworkxReach, start: int, end: int) -> list[Move] | None:
    path = reach.shortest(start, end)
    return None if path is None else reach.paths.moves(path)


def ending_moves(ends: Completion, start: int) -> list[Move] | None:
    return ends.moves(start) if ends.can_end(start) else None
