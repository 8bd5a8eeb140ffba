"""The net of a playbook: one place per step, and for each step what can become of a token that is there.

It is an abstraction: data is gone, and what is left of guards is which arcs can fire together. In exchange every
analysis is exact and answers for all runs of the net. `build` makes it from the facts of a source or a bundle.

A token at a step does one of these, and no token ever waits for another:

- it *fires*: the step runs, ends with one of its endings, and puts one token on each arc that fires;
- it is *dropped*, if the gate may deny it and denied tokens are dropped;
- it is *held*, if the gate may deny it and denied tokens wait; a run may end with held tokens (S30).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from noetlc.analysis.endings import FailureCause
from noetlc.analysis.formulas import (
    LOOP_DONE,
    NO_FACTS,
    STEP_DONE,
    STEP_FAILED,
    Facts,
    Formula,
    event_facts,
    text,
    text_length,
    verdict,
)
from noetlc.analysis.routers import Choice, choices, covering
from noetlvm.record import Record

if TYPE_CHECKING:
    from noetlvm.bytecode.program import Pipeline


class Where(Record):
    """A position in a source file; line and column count from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class Gate(StrEnum):
    """Whether a token is admitted, as far as the admission rules decide it without data."""

    OPEN = "open"
    SHUT = "shut"
    UNSURE = "unsure"


class StepKind(StrEnum):
    """What a step does when it runs."""

    ROUTING = "routing"
    """Routes without a tool."""
    TOOL = "tool"
    LOOP = "loop"


class Reason(StrEnum):
    """Why an arc never fires, or a step never runs."""

    CONSTANT = "constant"
    """The arc's guard is false whatever happens."""
    EVENT = "event"
    """The arc's guard requires an ending that the step never has."""
    SHADOWED = "shadowed"
    """Earlier arcs of an exclusive router are taken whenever this one could be."""
    SOURCE = "source"
    """The step that the arc leaves never runs."""
    GATE = "gate"
    """Tokens reach the step, and its admission rules never admit one."""
    NO_ARC = "no-arc"
    """No arc leads to the step, and it is not the entry."""
    ARCS = "arcs"
    """Every arc that leads to the step is dead."""
    NO_END = "no-end"
    """The final step runs when nothing else can move, and that never happens."""
    FINAL = "final"
    """The run ends with the final step, so its arcs never fire."""


class NetArc(Record):
    """An arc out of a step."""

    source: int
    index: int
    """Among the step's arcs, from 0."""
    target: int
    label: str
    """Its guard as text; empty if it has none."""
    handles_failure: bool
    """The guard reads `event`: a failure that takes this arc is a handled one (S31)."""
    where: Where | None = None
    reason: Reason | None = None
    """Why it never fires, as far as its own router decides that; None if it can fire."""
    shadowed_by: int | None = None
    """For a shadowed arc, the earlier arc that covers it; None if several do together."""
    is_impossible: bool = False
    """The guard requires an ending that no step of this kind has, such as `loop.done` of a step without a loop."""

    @property
    def number(self) -> int:
        """Its number in addresses and messages: the first arc is 1."""
        return self.index + 1


class Boundary(Record):
    """One boundary event of a step, and what its router may do then."""

    event: str
    choices: tuple[Choice, ...]
    """Independent of each other; what fires is the union of one alternative of each. Empty: nothing fires."""


class NetStep(Record):
    """A place, and the transition that consumes its tokens."""

    index: int
    name: str
    kind: StepKind
    inclusive: bool
    gate: Gate
    drops_denied: bool
    endings: tuple[Boundary, ...]
    arcs: tuple[NetArc, ...]
    widths: tuple[int | None, ...] = ()
    """For each loop, outermost first, how many iterations run at once; None where a template decides."""
    where: Where | None = None
    pipeline: Pipeline | None = None
    """The code between gate and router, for drawings."""
    reads: frozenset[str] = frozenset()
    """Keys of `ctx` that some template of the step may read."""
    writes: frozenset[str] = frozenset()
    """Keys of `ctx` that the step may write."""
    awaits: frozenset[str] = frozenset()
    """Keys of `ctx` that the gate cannot do without: while one is absent, the token waits. Known of sources only."""
    tools: tuple[str, ...] = ()
    """Kinds of its tasks, in order, each once."""
    desc: str = ""

    @property
    def can_run(self) -> bool:
        """True if the gate may admit a token."""
        return self.gate is not Gate.SHUT

    @property
    def may_hold(self) -> bool:
        """True if a run may end with a token held here."""
        return self.gate is not Gate.OPEN and not self.drops_denied

    @property
    def may_drop(self) -> bool:
        """True if a token may vanish here without a run of the step."""
        return self.gate is not Gate.OPEN and self.drops_denied

    @property
    def can_fail(self) -> bool:
        return any(ending.event == STEP_FAILED for ending in self.endings)

    @property
    def waits(self) -> bool:
        """True if a run of the step may wait for a tool; routing and `noop` tasks take no time."""
        return any(kind != "noop" for kind in self.tools)


class Net(Record):
    """The net of one playbook. A run begins with one token at the entry."""

    name: str
    path: str
    steps: tuple[NetStep, ...]
    entry: int
    final: int | None = None
    """Gets one token when nothing else can move (S4)."""

    def arc(self, source: int, index: int) -> NetArc:
        return self.steps[source].arcs[index]

    def index_of(self, name: str) -> int | None:
        return next((step.index for step in self.steps if step.name == name), None)


_READS_STEP = re.compile(r"""event\.step\b|\[?['"]step['"]""")
"""In source or code: a guard that may read `event.step`, so that its formula depends on the name of the step."""
_GATES = {True: Gate.OPEN, False: Gate.SHUT, None: Gate.UNSURE}


class PipelineEnds(NamedTuple):
    """How a pipeline can end."""

    done: bool
    failures: frozenset[FailureCause] = frozenset()


NO_PIPELINE = PipelineEnds(done=True)
UNKNOWN_PIPELINE = PipelineEnds(True, frozenset({FailureCause.OUTCOME}))


class ArcSummary(NamedTuple):
    """An arc, with its guard as a function of what is known about `event`."""

    target: str
    text: str | None
    """The guard as source or code: equal texts have equal formulas. None if there is none, which is not the empty text:
    that is a guard, and never holds."""
    guard: Callable[[Facts], Formula]
    handles_failure: bool
    where: Where | None


class StepSummary(Record):
    """Everything that the net needs of a step."""

    name: str
    ends: PipelineEnds
    loop_sizes: tuple[int | None, ...]
    """Iterations of each loop, outermost first; None if they depend on data. Loops inside an empty one are left out."""
    widths: tuple[int | None, ...]
    loop_failures: frozenset[FailureCause]
    """How the loops can fail apart from the pipeline."""
    best_effort: bool
    has_limits: bool
    """The step has time limits: whatever it does, it can be too slow or too late."""
    gate: Formula
    drops_denied: bool
    inclusive: bool
    arcs: tuple[ArcSummary, ...]
    reads: frozenset[str] = frozenset()
    writes: frozenset[str] = frozenset()
    awaits: frozenset[str] = frozenset()
    has_tool: bool = False
    tools: tuple[str, ...] = ()
    desc: str = ""
    where: Where | None = None
    pipeline: Pipeline | None = None

    @property
    def failures(self) -> frozenset[FailureCause]:
        """How the step can fail: a loop by a failed iteration, unless it is best effort (S27), and by itself."""
        spared = bool(self.loop_sizes) and (0 in self.loop_sizes or self.best_effort)
        found = self.loop_failures if spared else self.ends.failures | self.loop_failures
        return found | {FailureCause.TIME} if self.has_limits else found

    @property
    def events(self) -> tuple[str, ...]:
        """The boundary events that the step can have, success first."""
        done = self.ends.done
        if self.loop_sizes:
            done = done or self.best_effort or not all(self.loop_sizes)
        possible = ((LOOP_DONE if self.loop_sizes else STEP_DONE, done), (STEP_FAILED, bool(self.failures)))
        return tuple(event for event, can_be in possible if can_be)


class _WhyDead(NamedTuple):
    reason: Reason | None
    shadowed_by: int | None = None
    is_impossible: bool = False


_ALIVE = _WhyDead(None)


def build_net(name: str, path: str, steps: Sequence[StepSummary], entry: str, final: str | None) -> Net:
    numbers: dict[str, int] = {}
    for index, step in enumerate(steps):
        numbers.setdefault(step.name, index)
    builder = _Builder(numbers)
    made = tuple(builder.step(index, step) for index, step in enumerate(steps))
    return Net(name, path, made, numbers[entry], None if final is None else numbers[final])


LABEL_CHARS_MAX = 1_000
"""A formula whose text is longer labels no arc: the label is the guard as it is written."""
_ROUTERS_CACHED = 4096
_guards: dict[tuple[object, ...], list[Formula]] = {}
_choices: dict[tuple[object, ...], tuple[Choice, ...]] = {}
_labels: dict[str, str] = {}
"""What is known of routers by the texts of their guards: these recur from step to step and from file to file."""


class _Builder:
    """Builds the steps of one net. Routers with equal guards are computed once."""

    def __init__(self, numbers: dict[str, int]) -> None:
        self._numbers = numbers
        for cached in (_guards, _choices, _labels):
            if len(cached) > _ROUTERS_CACHED:
                cached.clear()

    def step(self, index: int, step: StepSummary) -> NetStep:
        endings = tuple(Boundary(event, self._router(step, event)) for event in step.events)
        return NetStep(
            index,
            step.name,
            StepKind.LOOP if step.loop_sizes else StepKind.TOOL if step.has_tool else StepKind.ROUTING,
            step.inclusive,
            _GATES[verdict(step.gate)],
            step.drops_denied,
            endings,
            self._arcs(index, step, endings),
            step.widths,
            step.where,
            step.pipeline,
            step.reads,
            step.writes,
            frozenset() if step.drops_denied else step.awaits,
            step.tools,
            step.desc,
        )

    def _key(self, step: StepSummary, event: str) -> tuple[object, ...]:
        texts = tuple(arc.text for arc in step.arcs)
        reads_name = any(text and _READS_STEP.search(text) for text in texts)
        return (event, bool(step.loop_sizes), texts, step.name if reads_name else "")

    def _formulas(self, step: StepSummary, event: str) -> list[Formula]:
        key = self._key(step, event)
        if key not in _guards:
            facts = event_facts(event, step.name, bool(step.loop_sizes))
            _guards[key] = [arc.guard(facts) for arc in step.arcs]
        return _guards[key]

    def _router(self, step: StepSummary, event: str) -> tuple[Choice, ...]:
        key = (*self._key(step, event), step.inclusive)
        if key not in _choices:
            _choices[key] = choices(self._formulas(step, event), step.inclusive)
        return _choices[key]

    def _label(self, arc: ArcSummary) -> str:
        if arc.text is None:
            return ""
        if arc.text not in _labels:
            formula = arc.guard(NO_FACTS)
            is_short = text_length(formula) <= LABEL_CHARS_MAX
            _labels[arc.text] = text(formula) if is_short else " ".join(arc.text.split())
        return _labels[arc.text]

    def _arcs(self, source: int, step: StepSummary, endings: tuple[Boundary, ...]) -> tuple[NetArc, ...]:
        alive = {arc for ending in endings for choice in ending.choices for fired in choice for arc in fired}
        dead = self._dead(step, [index for index in range(len(step.arcs)) if index not in alive])
        return tuple(
            NetArc(
                source,
                index,
                self._numbers[arc.target],
                self._label(arc),
                arc.handles_failure,
                arc.where,
                *dead.get(index, _ALIVE),
            )
            for index, arc in enumerate(step.arcs)
        )

    def _dead(self, step: StepSummary, indices: list[int]) -> dict[int, _WhyDead]:
        """Return why each of these arcs never fires."""
        if not indices:
            return {}
        found: dict[int, _WhyDead] = {}
        shadowed: dict[str, list[int]] = {}
        done = LOOP_DONE if step.loop_sizes else STEP_DONE
        formulas = {event: self._formulas(step, event) for event in (*step.events, done, STEP_FAILED)}
        for index in indices:
            event = next((e for e in step.events if verdict(formulas[e][index]) is not False), None)
            if event is not None:
                shadowed.setdefault(event, []).append(index)
            elif verdict(step.arcs[index].guard(NO_FACTS)) is False:
                found[index] = _WhyDead(Reason.CONSTANT)
            else:
                is_impossible = all(verdict(formulas[event][index]) is False for event in (done, STEP_FAILED))
                found[index] = _WhyDead(Reason.EVENT, None, is_impossible)
        for event, several in shadowed.items():
            by = covering(formulas[event], several)
            found |= {index: _WhyDead(Reason.SHADOWED, by.get(index)) for index in several}
        return found
