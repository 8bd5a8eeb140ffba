"""The net of a playbook: one place a step, and for each step what may become of a token that is there.

It is an abstraction. Data is gone: what is left of a guard is which arcs may fire together. In exchange everything
here is exact, and every analysis answers for all runs of the net. How a net is made is decided elsewhere; this module
holds values and nothing more.

A token at a step does one of these, and no token ever waits for another:

- it *fires*: the step runs, ends with one of its endings, and puts one token on each arc that fires;
- it is *dropped*, if the gate may deny it and denied tokens are dropped;
- it is *held*, if the gate may deny it and denied tokens wait; a run may end with held tokens (S30).
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

from noetlvm.record import Record

if TYPE_CHECKING:
    from noetlvm.bytecode.program import Pipeline

STEP_DONE = "step.done"
LOOP_DONE = "loop.done"
STEP_FAILED = "step.failed"

Choice: TypeAlias = tuple[tuple[int, ...], ...]
"""What a router decides in one go: one of these sets of arcs fires. Arcs by their place in `Step.arcs`, from 0."""


class Where(Record):
    """A place in a source file; line and column count from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class Gate(StrEnum):
    """Whether a token is let in, as far as the admission rules decide it without data."""

    OPEN = "open"
    SHUT = "shut"
    UNSURE = "unsure"


class StepKind(StrEnum):
    """What a step does when it runs."""

    ROUTING = "routing"
    """Nothing: the server only routes."""
    TOOL = "tool"
    LOOP = "loop"


class Reason(StrEnum):
    """Why an arc never fires, or a step never runs."""

    CONSTANT = "constant"
    """The arc's guard is false whatever happens."""
    EVENT = "event"
    """The arc's guard asks for an ending that the step never has."""
    SHADOWED = "shadowed"
    """An earlier arc of an exclusive router takes all that this one would."""
    SOURCE = "source"
    """The step that the arc leaves never runs."""
    GATE = "gate"
    """Tokens come to the step, and its admission rules never let one in."""
    NO_ARC = "no-arc"
    """No arc leads to the step, and it is not where the run begins."""
    ARCS = "arcs"
    """Every arc that leads to the step is dead."""
    NO_END = "no-end"
    """The final step runs after all others are at rest, and that never happens."""
    FINAL = "final"
    """The run is over after the final step, so nothing leaves it."""


class Arc(Record):
    """A way out of a step."""

    source: int
    index: int
    """Its place among the step's arcs, from 0."""
    target: int
    label: str
    """Its guard as text; empty if it has none."""
    handles_failure: bool
    """The guard reads `event`: a failure that takes this arc is a handled one (S31)."""
    where: Where | None = None
    reason: Reason | None = None
    """Why it never fires, as far as its own router decides that; None if it may."""
    shadowed_by: int | None = None
    """The arc that takes all it would, for an arc that is shadowed."""

    @property
    def number(self) -> int:
        """What people and addresses call it: the first arc is 1."""
        return self.index + 1


class Ending(Record):
    """One boundary event of a step, and what its router may do then."""

    event: str
    choices: tuple[Choice, ...]
    """Each decides for itself; what fires is the union of one alternative of each. None: nothing fires."""


class Step(Record):
    """A place, and the transition that takes tokens out of it."""

    index: int
    name: str
    kind: StepKind
    inclusive: bool
    gate: Gate
    drops_denied: bool
    endings: tuple[Ending, ...]
    arcs: tuple[Arc, ...]
    widths: tuple[int, ...] = ()
    """For each loop, outermost first, how many iterations run at once."""
    where: Where | None = None
    pipeline: Pipeline | None = None
    """The code between gate and router, for whoever wants to look inside."""
    reads: frozenset[str] = frozenset()
    """Keys of `ctx` that the step may read, by whatever template of it."""
    writes: frozenset[str] = frozenset()
    """Keys of `ctx` that the step may write."""

    @property
    def can_run(self) -> bool:
        """Tell whether a token that comes here may be let in."""
        return self.gate is not Gate.SHUT

    @property
    def may_hold(self) -> bool:
        """Tell whether a run may end with a token waiting here."""
        return self.gate is not Gate.OPEN and not self.drops_denied

    @property
    def may_drop(self) -> bool:
        """Tell whether a token may vanish here without a run of the step."""
        return self.gate is not Gate.OPEN and self.drops_denied

    @property
    def can_fail(self) -> bool:
        return any(ending.event == STEP_FAILED for ending in self.endings)


class Net(Record):
    """The net of one playbook. The run begins with one token at the entry."""

    name: str
    path: str
    steps: tuple[Step, ...]
    entry: int
    final: int | None = None
    """Gets one token after everything else has come to rest (S4)."""

    def arc(self, source: int, index: int) -> Arc:
        """Return an arc by its place."""
        return self.steps[source].arcs[index]

    def index_of(self, name: str) -> int | None:
        """Return the place of the step of that name."""
        return next((step.index for step in self.steps if step.name == name), None)
