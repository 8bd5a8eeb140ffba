"""What the analyses found, as one value: every format draws from it, and it draws nothing itself."""

from __future__ import annotations

from noetlc.finding import Severity
from noetlc.net.findings import NetFindingKind
from noetlc.net.net import Net, Reason, Where
from noetlvm.record import Record


class Firing(Record):
    """One move of a firing sequence: a token leaves a step."""

    step: str
    event: str
    """The boundary event; `token.dropped` if the gate turned the token away, `token.rejected` if it held it."""
    arcs: tuple[int, ...]
    """Numbers of the arcs that fire, from 1, as in the address `step/arc.1`."""
    targets: tuple[str, ...]
    """Where each of these arcs leads."""
    where: Where | None
    """The step's place in the source."""
    arcs_where: tuple[Where | None, ...]
    """The arcs' places in the source."""


Witness = tuple[Firing, ...]
"""A firing sequence from the first token on. Tokens that it does not move stay where they are."""


class GraphFinding(Record):
    """One thing that is wrong with the net, and the run that shows it."""

    kind: NetFindingKind
    severity: Severity
    """That of the lint rule which reports it."""
    step: str
    message: str
    witness: Witness
    where: Where | None
    arc: int | None = None
    """Number of the arc that is meant, from 1."""
    steps: tuple[str, ...] = ()
    """Further steps that belong to it: the cycle, the other side of a race."""
    code: str = ""
    """The lint rule that reports it; empty where lint reports the cause instead, and for facts."""
    help: str = ""


class Unreachable(Record):
    """A step that never runs."""

    step: str
    reason: Reason


class DeadArc(Record):
    """An arc that never fires."""

    step: str
    arc: int
    """Its number, from 1."""
    target: str
    reason: Reason
    shadowed_by: int | None = None
    """Number of the arc that takes all it would."""


class GraphReport(Record):
    """Everything that is known about one net. Steps go by their names, in the order written."""

    net: Net
    source: str
    """The file that it was read from, as the user named it."""
    reachable: tuple[str, ...]
    unreachable: tuple[Unreachable, ...]
    dead_arcs: tuple[DeadArc, ...]
    can_complete: bool
    """From whatever marking can be reached, the run can still end."""
    bounded: bool
    max_tokens: int | None
    """The greatest number of tokens at once; None if there is none. Saturates at `MANY`."""
    max_tokens_witness: Witness
    """How to get that many; empty where it would take too long to write down."""
    step_tokens: dict[str, int | None]
    """The same for each step that tokens come to; None where the number has no bound. A step may be missing where a
    very large net is too intricate to compute in time."""
    cycles: tuple[tuple[str, ...], ...]
    """Strongly connected components with a cycle."""
    always_before: dict[str, str | None]
    """For each reachable step the nearest one that every way to it passes (its immediate dominator)."""
    always_after: dict[str, str | None]
    """For each reachable step the nearest one that all that becomes of a token there passes."""
    concurrent: tuple[tuple[str, str], ...]
    """Pairs of steps that may have tokens at once; a step may stand beside itself."""
    concurrent_complete: bool
    """Whether the pairs are all there are; a large net has too many to list."""
    shortest_path: tuple[str, ...]
    """The fewest steps from the entry to where a branch may end; empty if none ever ends."""
    longest_path: tuple[str, ...] | None
    """The most steps in a row; None if a cycle lets it grow without end."""
    unhandled_failures: tuple[str, ...]
    """Steps whose failure leads nowhere, though their success does."""
    findings: tuple[GraphFinding, ...]
    left_out: dict[NetFindingKind, int]
    """How many findings of each kind a very large net has besides these."""
