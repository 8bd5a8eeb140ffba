"""A graph report for people: what holds, what does not, and the run that shows it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from noetlc.graph.report import Firing, GraphFinding, GraphReport, Witness
from noetlc.net.completion import MANY
from noetlc.net.firing import DROPPED, REJECTED
from noetlc.net.net import Where

_NAMES_MAX = 12
"""Names that one line lists."""
_FIRINGS_MAX = 40
"""Firings of a witness that are printed; the json report has them all."""


def render(report: GraphReport, unfold: bool = False) -> str:
    """Return the report as text."""
    return "\n".join([*_summary(report), *_findings(report)]) + "\n"


def witness_text(witness: Witness) -> str:
    """Return a firing sequence as text, one line a firing."""
    return "\n".join(_witness(witness, "")) + "\n"


def _summary(report: GraphReport) -> Iterator[str]:
    net = report.net
    count = len(net.steps)
    yield f"{report.source or net.path}: {count} step{'' if count == 1 else 's'}, entry `{net.steps[net.entry].name}`"
    yield _line("reachable", f"{len(report.reachable)} of {count}")
    yield _line("can complete", "yes, from wherever it gets to" if report.can_complete else "NO")
    yield _line("tokens at once", _tokens(report))
    if report.cycles:
        yield _line("cycles", "; ".join(_names(cycle) for cycle in report.cycles[:_NAMES_MAX]))
    yield _line("shortest way", _way(report.shortest_path) or "none: no branch ever ends")
    yield _line("longest way", _way(report.longest_path) if report.longest_path else "has no end")
    if report.concurrent:
        more = "" if report.concurrent_complete else ", and more"
        yield _line("at once", f"{len(report.concurrent)} pairs of steps{more}, such as {_pair(report.concurrent[0])}")
    if report.critical:
        yield _line("critical", _names(report.critical))


def _line(title: str, value: str) -> str:
    return f"  {title:<16}{value}"


def _tokens(report: GraphReport) -> str:
    if report.max_tokens is None:
        return "NO BOUND"
    return f"at most {report.max_tokens}" if report.max_tokens < MANY else f"{MANY} or more"


def _names(names: Iterable[str]) -> str:
    listed = list(names)
    more = f" and {len(listed) - _NAMES_MAX} more" if len(listed) > _NAMES_MAX else ""
    return ", ".join(listed[:_NAMES_MAX]) + more


def _way(names: tuple[str, ...]) -> str:
    if len(names) <= _NAMES_MAX:
        return " → ".join(names)
    return f"{' → '.join(names[: _NAMES_MAX - 2])} → … → {names[-1]} ({len(names)} steps)"


def _pair(pair: tuple[str, str]) -> str:
    return " and ".join(pair) if pair[0] != pair[1] else f"two runs of {pair[0]}"


def _findings(report: GraphReport) -> Iterator[str]:
    for finding in report.findings:
        yield ""
        yield f"{_place(finding.where)}{finding.kind.value}: {finding.message}"
        yield from _shown(finding)
    for kind, count in report.left_out.items():
        yield f"\n{kind.value}: {count} more"
    if not report.findings:
        yield "  no findings"


def _shown(finding: GraphFinding) -> Iterator[str]:
    yield "  a run that shows it:"
    yield from _witness(finding.witness, "    ")


def _witness(witness: Witness, indent: str) -> Iterator[str]:
    for number, firing in enumerate(witness[:_FIRINGS_MAX], 1):
        yield f"{indent}{number}. {_firing(firing)}"
    if len(witness) > _FIRINGS_MAX:
        yield f"{indent}… and {len(witness) - _FIRINGS_MAX} more"


def _firing(firing: Firing) -> str:
    begin = f"{_place(firing.where)}{firing.step}"
    if firing.event == DROPPED:
        return f"{begin}: the gate drops the token"
    if firing.event == REJECTED:
        return f"{begin}: the gate holds the token"
    if not firing.arcs:
        return f"{begin}: {firing.event}, no arc fires"
    lines = zip(firing.arcs, firing.targets, firing.arcs_where, strict=True)
    fired = ", ".join(f"arc {number} to {target}{_line_of(where)}" for number, target, where in lines)
    return f"{begin}: {firing.event}, {fired}"


def _place(where: Where | None) -> str:
    return f"{where}: " if where else ""


def _line_of(where: Where | None) -> str:
    return f" (line {where.line})" if where else ""
