"""From a program to its net. The only place that knows both."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from noetlc.graph.endings import events_of
from noetlc.graph.guards import formula_of, listing
from noetlc.graph.state import ctx_reads, ctx_writes
from noetlc.net.conditions import Formula, text, verdict
from noetlc.net.net import Arc, Choice, Ending, Gate, Net, Reason, Step, StepKind, Where
from noetlc.net.operands import NO_FACTS, event_facts
from noetlc.net.routers import choices, is_covered
from noetlvm.bytecode.program import DebugMap, Playbook, Program, Transition

_GATES = {True: Gate.OPEN, False: Gate.SHUT, None: Gate.UNSURE}


def nets_of(program: Program) -> tuple[Net, ...]:
    """Return the net of each playbook of a program; the first is the main one's."""
    return tuple(
        build_net(playbook, program.debug, f"{playbook.path}#" if number else "")
        for number, playbook in enumerate(program.playbooks)
    )


def build_net(playbook: Playbook, debug: DebugMap | None = None, prefix: str = "") -> Net:
    """Return the net of one playbook. `prefix` is what its addresses in the debug map begin with."""
    numbers: dict[str, int] = {}
    for index, step in enumerate(playbook.steps):
        numbers.setdefault(step.name, index)
    builder = _Builder(numbers, _places(debug), prefix)
    return Net(
        playbook.name,
        playbook.path,
        tuple(builder.step(index, step) for index, step in enumerate(playbook.steps)),
        numbers[playbook.entry_step],
        numbers[playbook.final_step] if playbook.final_step is not None else None,
    )


def _places(debug: DebugMap | None) -> dict[str, Where]:
    if debug is None:
        return {}
    found: dict[str, Where] = {}
    for entry in debug.entries:
        if entry.construct in ("step", "arc") and entry.marks:
            mark = entry.marks[0]
            found[entry.address] = Where(debug.files[mark.file], mark.line, mark.column)
    return found


class _Router:
    """The guards of one router under one event, and what it may do with them."""

    def __init__(self, step: Transition, event: str) -> None:
        facts = event_facts(event, step.name, bool(step.loops)) if event else NO_FACTS
        self.guards: list[Formula] = [formula_of(arc.guard, facts) for arc in step.arcs]
        self.choices: tuple[Choice, ...] = choices(self.guards, step.inclusive)


class _Builder:
    """Makes the steps of one net. Routers that are written alike are worked out once."""

    def __init__(self, numbers: dict[str, int], places: dict[str, Where], prefix: str) -> None:
        self._numbers = numbers
        self._places = places
        self._prefix = prefix
        self._routers: dict[tuple[object, ...], _Router] = {}

    def step(self, index: int, step: Transition) -> Step:
        events = events_of(step)
        written = tuple(listing(arc.guard.code) if arc.guard else "" for arc in step.arcs)
        routers = [self._router(step, event, written) for event in events]
        return Step(
            index,
            step.name,
            StepKind.LOOP if step.loops else StepKind.TOOL if step.pipeline else StepKind.ROUTING,
            step.inclusive,
            _GATES[verdict(formula_of(step.admit))],
            step.drops_denied,
            tuple(Ending(event, router.choices) for event, router in zip(events, routers, strict=True)),
            tuple(self._arcs(index, step, routers, written)),
            tuple(loop.width for loop in step.loops),
            self._places.get(self._prefix + step.name),
            step.pipeline,
            ctx_reads(step),
            ctx_writes(step),
        )

    def _router(self, step: Transition, event: str, written: tuple[str, ...]) -> _Router:
        reads_name = any("'event'" in guard and "'step'" in guard for guard in written)
        key = (event, bool(step.loops), step.inclusive, written, step.name if reads_name else "")
        if key not in self._routers:
            self._routers[key] = _Router(step, event)
        return self._routers[key]

    def _arcs(
        self, source: int, step: Transition, routers: Sequence[_Router], written: tuple[str, ...]
    ) -> Iterator[Arc]:
        alive = {arc for router in routers for choice in router.choices for fired in choice for arc in fired}
        whenever = self._router(step, "", written)
        for index, arc in enumerate(step.arcs):
            reason, by = (None, None) if index in alive else _why_dead(index, whenever, routers)
            yield Arc(
                source,
                index,
                self._numbers[arc.target],
                text(whenever.guards[index]) if arc.guard else "",
                arc.handles_failure,
                self._places.get(f"{self._prefix}{step.name}/arc.{index + 1}"),
                reason,
                by,
            )


def _why_dead(index: int, whenever: _Router, routers: Sequence[_Router]) -> tuple[Reason, int | None]:
    if verdict(whenever.guards[index]) is False:
        return Reason.CONSTANT, None
    asked = [router for router in routers if verdict(router.guards[index]) is not False]
    if not asked:
        return Reason.EVENT, None
    guards = asked[0].guards
    covering = (earlier for earlier in range(index) if is_covered(guards[index], guards[earlier]))
    return Reason.SHADOWED, next(covering, index - 1)
