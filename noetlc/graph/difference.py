"""What changed between two nets: steps, arcs and findings that appeared or went."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from noetlc.graph.formats.json import finding_data
from noetlc.graph.report import GraphFinding, GraphReport
from noetlvm.record import Record

_Key = tuple[str, ...]


class Change(Record):
    """What one side has and the other has not."""

    steps: tuple[str, ...]
    arcs: tuple[_Key, ...]
    """Step, target and guard."""
    findings: tuple[GraphFinding, ...]

    def to_json(self) -> dict[str, Any]:
        arcs = [dict(zip(("step", "target", "guard"), arc, strict=True)) for arc in self.arcs]
        return {"steps": list(self.steps), "arcs": arcs, "findings": [finding_data(one) for one in self.findings]}


def only_in(report: GraphReport, other: GraphReport) -> Change:
    """Return what one report has and the other has not. Findings are compared by their messages, not by their lines."""
    names = {step.name for step in other.net.steps}
    arcs = Counter(_arcs(report)) - Counter(_arcs(other))
    known = {_said(finding) for finding in other.findings}
    return Change(
        tuple(step.name for step in report.net.steps if step.name not in names),
        tuple(arc for arc in dict.fromkeys(_arcs(report)) if arc in arcs),
        tuple(finding for finding in report.findings if _said(finding) not in known),
    )


def text(went: Change, appeared: Change) -> str:
    """Return the changes as text, as `diff` would mark them."""
    lines = [*_lines("-", went), *_lines("+", appeared)]
    return "\n".join(lines or ["no difference in steps, arcs and findings"]) + "\n"


def _lines(sign: str, change: Change) -> Iterator[str]:
    yield from (f"{sign} step {name}" for name in change.steps)
    yield from (
        f"{sign} arc {step} → {target}{f' when {guard}' if guard else ''}" for step, target, guard in change.arcs
    )
    yield from (f"{sign} {finding.kind.value}: {finding.message}" for finding in change.findings)


def _arcs(report: GraphReport) -> Iterator[_Key]:
    for step in report.net.steps:
        yield from ((step.name, report.net.steps[arc.target].name, arc.label) for arc in step.arcs)


def _said(finding: GraphFinding) -> _Key:
    return finding.kind.value, finding.step, finding.message
