"""The net of a playbook: one place per step, and for each step what can become of a token that is there.

It is an abstraction: data is gone, and what is left of guards is which arcs can fire together. In exchange every
analysis is exact and answers for all runs of the net. This module holds values only; `noetlc.net.build` makes them.

A token at a step does one of these, and no token ever waits for another:

- it *fires*: the step runs, ends with one of its endings, and puts one token on each arc that fires;
- it is *dropped*, if the gate may deny it and denied tokens are dropped;
- it is *held*, if the gate may deny it and denied tokens wait; a run may end with held tokens (S30).
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from noetlc.analysis.formulas import STEP_FAILED
from noetlc.analysis.routers import Choice
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
    """The run is over after the final step, so its arcs never fire."""


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
    widths: tuple[int, ...] = ()
    """For each loop, outermost first, how many iterations run at once."""
    where: Where | None = None
    pipeline: Pipeline | None = None
    """The code between gate and router, for drawings."""
    reads: frozenset[str] = frozenset()
    """Keys of `ctx` that some template of the step may read."""
    writes: frozenset[str] = frozenset()
    """Keys of `ctx` that the step may write."""
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
        """Return an arc by its indices."""
        return self.steps[source].arcs[index]

    def index_of(self, name: str) -> int | None:
        """Return the index of the step of that name."""
        return next((step.index for step in self.steps if step.name == name), None)
