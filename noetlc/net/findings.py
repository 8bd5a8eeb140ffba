"""Findings about nets, for `lint` and `graph` alike: one code, one wording, one witness each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from functools import cached_property, partial
from typing import NamedTuple

from noetlc.analysis.formulas import STEP_FAILED
from noetlc.finding import Severity
from noetlc.net.concurrency import races, together_moves
from noetlc.net.moves import Move, firing
from noetlc.net.net import NetArc, NetStep, Reason
from noetlc.net.reach import Reach, dead_arcs, moves_from, near_miss, why_never
from noetlc.net.tokens import Completion, Growth, completion, growth_moves, growths, trap_moves, traps
from noetlvm.record import Record

_NAMES_MAX = 8
"""Steps that a message names."""
_CYCLES_MAX = 20
"""Traps whose cycle is searched for."""


class NetFindingKind(StrEnum):
    """What a finding is about; the words that `graph --fail-on` takes."""

    UNREACHABLE = "unreachable"
    DEAD_ARC = "dead-arc"
    TRAP = "trap"
    UNBOUNDED = "unbounded"
    RACE = "race"
    UNHANDLED_FAILURE = "unhandled-failure"


FACTS = frozenset({NetFindingKind.UNHANDLED_FAILURE})
"""Kinds that are facts of the summary, and findings only for who requests them: to fail is what the language does."""


UNREACHABLE = "P410"
DEAD_ARC, SHADOWED_ARC, CONSTANT_GUARD, OTHER_EVENT = "P411", "P408", "P210", "P211"
TRAP, TRAP_WITHOUT_TOOL = "P412", "P414"
UNBOUNDED = "P413"
RACE = "P512"
SEVERITIES = {
    **dict.fromkeys((UNREACHABLE, DEAD_ARC, SHADOWED_ARC, CONSTANT_GUARD), Severity.WARNING),
    **dict.fromkeys((TRAP, UNBOUNDED, RACE), Severity.WARNING),
    **dict.fromkeys((OTHER_EVENT, TRAP_WITHOUT_TOOL), Severity.ERROR),
}
"""The severities of the lint rules, which `graph` reports without importing them."""
UNHANDLED_FAILURE = ""
"""Most steps that call a tool may fail without a handler, so that no lint rule reports it."""

_WHY_STEP = {
    Reason.GATE: ("its admission rules never admit a token", "change the rules of `spec.policy.admit`"),
    Reason.NO_ARC: ("no arc leads to it", "add `- step: {name}` to the `arcs` of the step before it, or remove it"),
    Reason.ARCS: ("no arc that can fire leads to it", "correct the arcs that lead to it, or remove it"),
    Reason.NO_END: ("no run reaches an end before it", "give every cycle an exit"),
}
"""By reason: what is wrong, and what to do."""


class NetFinding(NamedTuple):
    """Something wrong with a net."""

    code: str
    """The lint rule that reports it."""
    kind: NetFindingKind
    step: int
    message: str
    help: str
    moves: Callable[[], list[Move]]
    """The witness: a firing sequence that shows it."""
    arc: NetArc | None = None
    steps: tuple[int, ...] = ()
    """Further steps that belong to it: the cycle, the other side of a race."""
    key: str = ""
    """The key of `ctx` that a race is about."""
    related: tuple[tuple[NetArc | int, str], ...] = ()
    """Arcs and steps to point at, each with a remark."""
    is_consequence: bool = False
    """Another finding is the cause: `graph` lists both, lint reports the cause."""


class NetFindings(Record, cached=True):
    """The findings about one net, by kind."""

    reach: Reach

    @cached_property
    def ends(self) -> Completion:
        return completion(self.reach.net)

    @cached_property
    def growths(self) -> list[Growth]:
        return list(growths(self.reach)) if self.reach.cycles else []

    def of_kinds(self, kinds: Iterable[NetFindingKind]) -> Iterator[tuple[NetFindingKind, Iterator[NetFinding]]]:
        """Yield the findings of each kind."""
        yield from ((kind, self.of_kind(kind)) for kind in kinds)

    def of_kind(self, kind: NetFindingKind) -> Iterator[NetFinding]:
        return _FINDERS[kind](self)

    def runs(self, step: int) -> bool:
        """True if a step can run. The final step runs when nothing else can move, so some run must end first."""
        if self.reach.runs(step):
            return True
        net = self.reach.net
        return step == net.final and net.steps[step].can_run and self.ends.can_end(net.entry)

    def _name(self, step: int) -> str:
        return self.reach.net.steps[step].name

    def _names(self, steps: Iterable[int]) -> str:
        names = [f"`{self._name(step)}`" for step in steps]
        more = f" and {len(names) - _NAMES_MAX} more" if len(names) > _NAMES_MAX else ""
        return ", ".join(names[:_NAMES_MAX]) + more

    def _unreachable(self) -> Iterator[NetFinding]:
        for step in self.reach.net.steps:
            if not self.runs(step.index):
                why, help = _WHY_STEP[why_never(self.reach, step)]
                yield NetFinding(
                    UNREACHABLE,
                    NetFindingKind.UNREACHABLE,
                    step.index,
                    f"`{step.name}` never runs: {why}",
                    help.format(name=step.name),
                    partial(near_miss, self.reach, step),
                    is_consequence=step.index not in self._first_unreachable,
                )

    @cached_property
    def _first_unreachable(self) -> set[int]:
        """The steps that never run and whose cause is neither a dead arc nor another step that never runs."""
        never = [step for step in self.reach.net.steps if not self.runs(step.index)]
        first = {step.index for step in never if why_never(self.reach, step) is not Reason.ARCS}
        dead = [arc.target for arc, reason in dead_arcs(self.reach) if reason not in (Reason.SOURCE, Reason.FINAL)]
        explained = self._onward({*first, *dead})
        for step in never:  # what is left are cycles that nothing leads to: their first step stands for them
            if step.index not in explained:
                first.add(step.index)
                explained |= self._onward({step.index})
        return first

    def _onward(self, steps: set[int]) -> set[int]:
        """Return the steps, and all that arcs lead to from those that never run."""
        found, waiting = set(steps), list(steps)
        while waiting:
            number = waiting.pop()
            if not self.runs(number):
                new = {arc.target for arc in self.reach.net.steps[number].arcs} - found
                found |= new
                waiting.extend(new)
        return found

    def _dead_arcs(self) -> Iterator[NetFinding]:
        for arc, reason in dead_arcs(self.reach):
            if reason in (Reason.SOURCE, Reason.FINAL):
                continue
            source = self.reach.net.steps[arc.source]
            code, why, help = _why_dead(source, arc, reason)
            message = f"the arc from `{source.name}` to `{self._name(arc.target)}` never fires: {why}"
            by = () if arc.shadowed_by is None else (arc.shadowed_by,)
            moves = partial(moves_from, self.reach, arc.source, *by)
            related = tuple((source.arcs[earlier], "this arc comes first") for earlier in by)
            yield NetFinding(code, NetFindingKind.DEAD_ARC, arc.source, message, help, moves, arc, related=related)

    def _traps(self) -> Iterator[NetFinding]:
        if not self.reach.cycles:
            return
        for number, members in enumerate(traps(self.reach, self.ends)):
            waits = any(self.reach.net.steps[member].waits for member in members)
            message = f"once a token is at {self._names(members)}, the run can never end: every path leads back"
            if not waits:
                message += ", and no step on it calls a tool"
            yield NetFinding(
                TRAP if waits else TRAP_WITHOUT_TOOL,
                NetFindingKind.TRAP,
                members[0],
                message,
                "guard an arc, so that the branch ends when no arc holds, or add an arc that leads out",
                partial(trap_moves, self.reach, members[0]),
                steps=tuple(members),
                related=((members[0], self._cycle(members[0])),) if number < _CYCLES_MAX else (),
            )

    def _cycle(self, step: int) -> str:
        targets = [arc.target for arc in self.reach.paths.round_trip(step) or ()]
        return f"the cycle: {' → '.join(map(self._name, [step, *targets[:_NAMES_MAX]]))}" + (
            " → …" if len(targets) > _NAMES_MAX else ""
        )

    def _unbounded(self) -> Iterator[NetFinding]:
        for growth in self.growths:
            cycle = self.reach.components[self.reach.component_of[growth.step]]
            step, extra = self._name(growth.step), self._name(growth.extra.target)
            yield NetFinding(
                UNBOUNDED,
                NetFindingKind.UNBOUNDED,
                growth.step,
                f"tokens accumulate at `{extra}`: each round through `{step}` fires the arc to it together with the "
                f"arc to `{self._name(growth.stays.target)}`, which leads back",
                "write `mode: exclusive`, or give the two arcs guards that exclude each other",
                partial(growth_moves, self.reach, growth),
                growth.extra,
                tuple(cycle),
                related=((growth.stays, "this arc leads back, and fires together with it"),),
            )

    def _races(self) -> Iterator[NetFinding]:
        if not any(step.inclusive for step in self.reach.net.steps):
            return
        for race in races(self.reach):
            named = race.others[:_NAMES_MAX]
            others = ["a second run of it" if n == race.writer else f"`{self._name(n)}`" for n in named]
            beside = ", ".join(others) + (f" and {race.count - len(named)} more" if race.count > len(named) else "")
            yield NetFinding(
                RACE,
                NetFindingKind.RACE,
                race.writer,
                f"`{self._name(race.writer)}` writes `ctx.{race.key}`, and can run at the same time as {beside}",
                "let each step write a key of its own, and combine them in a step that comes after both",
                partial(together_moves, self.reach, race.writer, race.others[0]),
                steps=race.others,
                key=race.key,
                related=tuple((n, "this step reads or writes it too") for n in named if n != race.writer),
            )

    def unhandled_steps(self) -> Iterator[int]:
        """Yield each step with an arc for success and none for failure."""
        for number in self.reach.arrived:
            step = self.reach.net.steps[number]
            leads_on = {ending.event: any(any(choice) for choice in ending.choices) for ending in step.endings}
            if step.can_run and leads_on.get(STEP_FAILED) is False and any(leads_on.values()):
                yield number

    def _unhandled_failures(self) -> Iterator[NetFinding]:
        for step in self.unhandled_steps():
            name = self._name(step)
            yield NetFinding(
                UNHANDLED_FAILURE,
                NetFindingKind.UNHANDLED_FAILURE,
                step,
                f"if `{name}` fails, no arc fires: the branch ends there, and nothing handles the failure",
                "add an arc with `when: \"{{ event.name == 'step.failed' }}\"`",
                partial(self._failing_moves, step),
            )

    def _failing_moves(self, number: int) -> list[Move]:
        step = self.reach.net.steps[number]
        endings = {ending.event: ending for ending in step.endings}
        failure = firing(step, endings[STEP_FAILED])
        assert failure is not None  # no particular arc has to fire
        return [*self.reach.moves_to(number), failure]


_FINDERS: dict[NetFindingKind, Callable[[NetFindings], Iterator[NetFinding]]] = {
    NetFindingKind.UNREACHABLE: NetFindings._unreachable,
    NetFindingKind.DEAD_ARC: NetFindings._dead_arcs,
    NetFindingKind.TRAP: NetFindings._traps,
    NetFindingKind.UNBOUNDED: NetFindings._unbounded,
    NetFindingKind.RACE: NetFindings._races,
    NetFindingKind.UNHANDLED_FAILURE: NetFindings._unhandled_failures,
}


def _why_dead(step: NetStep, arc: NetArc, reason: Reason) -> tuple[str, str, str]:
    """Return the code, the reason and the remedy for an arc that never fires."""
    if reason is Reason.CONSTANT:
        return CONSTANT_GUARD, "its guard is always false", "compare something that can change, or remove the arc"
    if arc.is_impossible:
        why = "the step never ends in the way that its guard requires"
        return OTHER_EVENT, why, "compare `event` with an ending that this step has"
    if reason is Reason.EVENT:
        why = f"`{step.name}` always fails" if step.can_fail else f"`{step.name}` cannot fail"
        return DEAD_ARC, why, "remove the arc, or put it on the step whose ending it is for"
    if arc.shadowed_by is None:
        why = "the arcs before it together are taken whenever it could be"
        return DEAD_ARC, why, "put it first, or write `mode: inclusive` to take both"
    taken = "always taken" if not step.arcs[arc.shadowed_by].label else "taken whenever this one could be"
    help = "put the special case before the general one, or write `mode: inclusive` to take both"
    return SHADOWED_ARC, f"an earlier arc is {taken}", help
