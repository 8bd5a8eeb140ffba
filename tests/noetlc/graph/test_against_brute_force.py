"""Every answer about random nets is the one that brute force gives, and every witness replays."""

from __future__ import annotations

import random
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING

import pytest

from noetlc.graph.analyse import analyse, path_witness
from noetlc.graph.report import GraphFinding
from noetlc.net.concurrency import together_moves
from noetlc.net.findings import FACTS, NetFindingKind
from noetlc.net.net import Reason
from noetlc.net.program import program_net as build_net
from noetlc.net.reach import reach
from tests.noetlc.graph.brute_force import MANY, BruteForce, TooLarge, keys_read, truths
from tests.noetlc.graph.random_playbooks import RandomPlaybook, random_playbook
from tests.noetlc.graph.replay import replay

if TYPE_CHECKING:
    from noetlc.graph.report import GraphReport
    from tests.noetlc.graph.brute_force import Marking

FEW, BATCHES = 5, 20
"""The rest is among the long tests."""
NETS_PER_BATCH = 110
FITTING_PER_BATCH = 100


class Comparison:
    """One net: what the analyses say, what brute force says."""

    def __init__(self, playbook: RandomPlaybook) -> None:
        self.playbook = playbook
        self.game = BruteForce(playbook)
        self.markings = self.game.cover()
        self.report = analyse(build_net(playbook.program()), requested=FACTS)
        self.arrived = {n for n in range(self.game.count) if any(marking[n] for marking in self.markings)}

    def name(self, number: int) -> str:
        return self.game.names[number]

    def check(self) -> None:
        self.check_reachability()
        self.check_completion()
        self.check_bounds()
        self.check_order()
        self.check_concurrency()
        self.check_paths()
        self.check_findings()

    def runs(self, number: int) -> bool:
        return number in self.arrived and self.game.admits[number]

    def check_reachability(self) -> None:
        reachable = {self.name(number) for number in range(self.game.count) if self.runs(number)}
        final = self.playbook.final
        if final and self.game.admits[self.game.names.index(final)] and self.game.can_end_from(self.game.start):
            reachable.add(final)
        assert set(self.report.reachable) == reachable
        assert {one.step for one in self.report.unreachable} == set(self.game.names) - reachable
        fired = {
            (self.name(fire.step), arc + 1)
            for number in range(self.game.count)
            if self.runs(number)
            for fire in self.game.fires[number]
            for arc in fire.arcs or ()
        }
        every = {(step.name, n) for step in self.playbook.steps for n in range(1, len(step.arcs) + 1)}
        assert {(dead.step, dead.arc) for dead in self.report.dead_arcs} == every - fired
        for dead in self.report.dead_arcs:
            assert dead.reason in self.possible_reasons(dead.step, dead.arc), dead

    def possible_reasons(self, name: str, arc: int) -> set[Reason]:
        step = self.playbook.steps[self.game.names.index(name)]
        if not self.runs(self.game.names.index(name)):
            return {Reason.SOURCE, Reason.FINAL}
        guard = step.arcs[arc - 1][1]
        held = {event: any(truths(guard, event, name)) for event in ("step.done", "loop.done", "step.failed")}
        if not any(held.values()):
            return {Reason.CONSTANT}
        return {Reason.SHADOWED} if any(held[event] for event in step.flavour.events) else {Reason.EVENT}

    def check_completion(self) -> None:
        assert self.report.can_complete == self.game.always_can_end(self.markings)
        trapped = {name for finding in self.of_kind(NetFindingKind.TRAP) for name in finding.steps}
        assert bool(trapped) == (not self.report.can_complete)
        for name in trapped:
            assert not self.game.can_end_from(self.game.single(self.game.names.index(name)))

    def check_bounds(self) -> None:
        most = {n: max(marking[n] for marking in self.markings) for n in self.arrived}
        bounded = all(count < MANY for count in most.values())
        assert self.report.bounded == bounded
        assert self.report.max_tokens == (max(sum(marking) for marking in self.markings) if bounded else None)
        expected = {self.name(n): count if count < MANY else None for n, count in most.items()}
        assert self.report.step_tokens == expected
        if bounded:
            assert sum(replay(self.game, self.report.max_tokens_witness)[-1]) == self.report.max_tokens

    def check_order(self) -> None:
        for number in self.arrived:
            expected = {
                self.name(other)
                for other in self.arrived - {number}
                if not any(marking[number] for marking in self.game.cover(without=other))
            }
            assert chain(self.report.always_before, self.name(number)) == expected
            after = {
                self.name(other)
                for other in range(self.game.count)
                if other != number and not self.game.line_can_end(number, other)
            }
            if self.game.line_can_end(number, None):
                assert chain(self.report.always_after, self.name(number)) == after

    def check_concurrency(self) -> None:
        numbers = sorted(self.arrived)
        expected = {pair for pair in combinations_with_replacement(numbers, 2) if self.together(*pair)}
        assert self.report.concurrent_complete
        assert self.report.concurrent == tuple((self.name(one), self.name(other)) for one, other in sorted(expected))
        found = reach(self.report.net)
        for pair in combinations_with_replacement(numbers, 2):
            assert bool(together_moves(found, *pair)) == (pair in expected)

    def together(self, one: int, other: int) -> bool:
        return any(covers(marking, one, other) for marking in self.markings)

    def check_paths(self) -> None:
        lines = list(self.game.lines(0))
        ending = [line for line in lines if self.game.line_ends(line[-1])]
        assert len(self.report.shortest_path) == min(map(len, ending), default=0)
        loops = {n for n in self.arrived for line in self.game.lines(n) if n in self.game.onward(line[-1])}
        assert {name for cycle in self.report.cycles for name in cycle} == {self.name(number) for number in loops}
        for cycle in self.report.cycles:
            assert set(cycle) == {self.name(n) for n in loops if self.name(n) in self.round_trip(cycle[0])}
        longest = None if loops else max(map(len, lines))
        assert (self.report.longest_path and len(self.report.longest_path)) == longest
        for number in range(self.game.count):
            witness = path_witness(self.report.net, None, self.name(number))
            comes = number in loops if number == 0 else number in self.arrived
            assert (witness is not None) == comes
            if witness:
                assert replay(self.game, witness)[-1][number]
        ended = path_witness(self.report.net, None, None)
        assert (ended is not None) == self.game.can_end_from(self.game.start)
        if ended is not None:
            assert self.game.has_ended(replay(self.game, ended)[-1])

    def round_trip(self, name: str) -> set[str]:
        start = self.game.names.index(name)
        reached = {line[-1] for line in self.game.lines(start)}
        return {self.name(n) for n in reached if any(line[-1] == start for line in self.game.lines(n))}

    # ---- findings

    def of_kind(self, kind: NetFindingKind) -> list[GraphFinding]:
        return [finding for finding in self.report.findings if finding.kind is kind]

    def check_findings(self) -> None:
        steps = {finding.step for finding in self.of_kind(NetFindingKind.UNREACHABLE)}
        assert steps == {one.step for one in self.report.unreachable}
        reported = {(finding.step, finding.arc) for finding in self.of_kind(NetFindingKind.DEAD_ARC)}
        own = {Reason.CONSTANT, Reason.EVENT, Reason.SHADOWED}
        assert reported == {(dead.step, dead.arc) for dead in self.report.dead_arcs if dead.reason in own}
        assert bool(self.of_kind(NetFindingKind.UNBOUNDED)) == (not self.report.bounded)
        assert {finding.step for finding in self.of_kind(NetFindingKind.UNHANDLED_FAILURE)} == self.unhandled()
        assert set(self.report.unhandled_failures) == self.unhandled()
        assert not self.report.left_out
        assert self.reported_races() == self.races()
        for finding in self.report.findings:
            assert finding.witness, finding
            SHOWS[finding.kind](self, finding, replay(self.game, finding.witness))

    def unhandled(self) -> set[str]:
        found = set()
        for number in self.arrived:
            by_event: dict[str, set[int]] = {}
            for fire in self.game.fires[number]:
                if fire.arcs is not None:
                    by_event.setdefault(fire.event, set()).update(fire.arcs)
            if by_event.get("step.failed") == set() and any(by_event.values()):
                found.add(self.name(number))
        return found

    def writes(self, number: int) -> set[str]:
        step = self.playbook.steps[number]
        return {step.writes} if step.writes and "fail" not in step.flavour.tasks else set()

    def races(self) -> set[tuple[str, frozenset[str]]]:
        found = set()
        for one, other in combinations_with_replacement(sorted(n for n in self.arrived if self.runs(n)), 2):
            reads = keys_read(self.playbook.steps[one]), keys_read(self.playbook.steps[other])
            keys = (self.writes(one) & (reads[1] | self.writes(other))) | (self.writes(other) & reads[0])
            if self.together(one, other):
                found |= {(key, frozenset((self.name(one), self.name(other)))) for key in keys}
        return found

    def reported_races(self) -> set[tuple[str, frozenset[str]]]:
        return {
            (finding.message.split("`ctx.")[1][0], frozenset((finding.step, other)))
            for finding in self.of_kind(NetFindingKind.RACE)
            for other in finding.steps
        }

    def shows_unreachable(self, finding: GraphFinding, markings: list[Marking]) -> None:
        ran = {firing.step for firing in finding.witness if not firing.event.startswith("token.")}
        assert finding.step not in ran

    def shows_dead_arc(self, finding: GraphFinding, markings: list[Marking]) -> None:
        assert finding.witness[-1].step == finding.step
        assert finding.arc not in finding.witness[-1].arcs

    def shows_trap(self, finding: GraphFinding, markings: list[Marking]) -> None:
        number = self.game.names.index(finding.step)
        visits = [marking for marking in markings if marking[number]]
        assert len(visits) > 1
        assert covers(visits[-1], number, number) or visits[-1][number] == 1

    def shows_growth(self, finding: GraphFinding, markings: list[Marking]) -> None:
        last = markings[-1]
        assert any(
            earlier != last and all(then <= now for then, now in zip(earlier, last, strict=True))
            for earlier in markings[:-1]
        )

    def shows_race(self, finding: GraphFinding, markings: list[Marking]) -> None:
        assert covers(markings[-1], self.game.names.index(finding.step), self.game.names.index(finding.steps[0]))

    def shows_unhandled_failure(self, finding: GraphFinding, markings: list[Marking]) -> None:
        last = finding.witness[-1]
        assert (last.step, last.event, last.arcs) == (finding.step, "step.failed", ())


SHOWS = {
    NetFindingKind.UNREACHABLE: Comparison.shows_unreachable,
    NetFindingKind.DEAD_ARC: Comparison.shows_dead_arc,
    NetFindingKind.TRAP: Comparison.shows_trap,
    NetFindingKind.UNBOUNDED: Comparison.shows_growth,
    NetFindingKind.RACE: Comparison.shows_race,
    NetFindingKind.UNHANDLED_FAILURE: Comparison.shows_unhandled_failure,
}


def covers(marking: Marking, one: int, other: int) -> bool:
    return marking[one] > 1 if one == other else marking[one] > 0 and marking[other] > 0


def chain(nearest: dict[str, str | None], name: str) -> set[str]:
    found = set()
    above = nearest[name]
    while above is not None:
        found.add(above)
        above = nearest[above]
    return found


def compare_with_brute_force(playbook: RandomPlaybook) -> GraphReport | None:
    """Return the report, or None if the net is too large to go through by brute force."""
    try:
        comparison = Comparison(playbook)
    except TooLarge:
        return None
    comparison.check()
    return comparison.report


@pytest.mark.parametrize(
    "batch", [*range(FEW), *(pytest.param(batch, marks=pytest.mark.long) for batch in range(FEW, BATCHES))]
)
def test_random_nets_get_the_answers_of_brute_force(batch: int) -> None:
    reports = [
        compare_with_brute_force(random_playbook(random.Random(batch * NETS_PER_BATCH + number)))
        for number in range(NETS_PER_BATCH)
    ]
    fitting = [report for report in reports if report is not None]
    assert len(fitting) >= FITTING_PER_BATCH
    kinds = {finding.kind for report in fitting for finding in report.findings}
    assert kinds == set(NetFindingKind), "the generator no longer makes nets of every kind"
