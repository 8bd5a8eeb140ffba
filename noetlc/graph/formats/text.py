"""A graph report for people: what holds, what does not, and the run that shows it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from noetlc.graph.report import Firing, GraphReport, Witness
from noetlc.net.moves import DROPPED, REJECTED
from noetlc.net.net import Where
from noetlc.net.tokens import MANY

_NAMES_MAX = 12
"""Names that one line lists."""
FIRINGS_MAX = 40
"""Firings of a witness that are printed; the json report has them all."""


def render(report: GraphReport, unfold: bool = False) -> str:
    known = [f"  {fact.title:<16}{fact.value}" for fact in facts(report)]
    return "\n".join([headline(report), *known, *_findings(report)]) + "\n"


def witness_text(witness: Witness) -> str:
    """Return a firing sequence as text, one line a firing."""
    return "\n".join(_witness(witness, "")) + "\n"


def headline(report: GraphReport) -> str:
    net = report.net
    count = len(net.steps)
    return f"{report.source or net.path}: {count} step{'' if count == 1 else 's'}, entry `{net.steps[net.entry].name}`"


class Fact(NamedTuple):
    """Something that is known of the net as a whole."""

    title: str
    value: str
    is_bad: bool = False


def facts(report: GraphReport) -> Iterator[Fact]:
    yield Fact("reachable", f"{len(report.reachable)} of {len(report.net.steps)}", bool(report.unreachable))
    completes = "yes, from every reachable state" if report.can_complete else "NO"
    yield Fact("can complete", completes, not report.can_complete)
    yield Fact("tokens at once", _tokens(report), report.max_tokens is None)
    if report.cycles:
        yield Fact("cycles", "; ".join(_names(cycle) for cycle in report.cycles[:_NAMES_MAX]))
    yield Fact("shortest way", _way(report.shortest_path) or "none: no branch ever ends")
    yield Fact("longest way", _way(report.longest_path) if report.longest_path else "has no end")
    if report.concurrent:
        more = "" if report.concurrent_complete else ", and more"
        one, other = report.concurrent[0]
        pairs = "1 pair of steps" if len(report.concurrent) == 1 else f"{len(report.concurrent):,} pairs of steps"
        pair = f"{one} and {other}" if one != other else f"two runs of {one}"
        yield Fact("at once", f"{pairs}{more}, such as {pair}")
    if report.unhandled_failures:
        yield Fact("unhandled", f"failures of {_names(report.unhandled_failures)}")


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


def _findings(report: GraphReport) -> Iterator[str]:
    for finding in report.findings:
        yield ""
        yield f"{_place(finding.where)}{finding.severity.value}: {finding.kind.value}: {finding.message}"
        yield "  a run that shows it:"
        yield from _witness(finding.witness, "    ")
    for kind, count in report.left_out.items():
        yield f"\n{kind.value}: {count} more"
    if not report.findings:
        yield "  no findings"


def _witness(witness: Witness, indent: str) -> Iterator[str]:
    for number, firing in enumerate(witness[:FIRINGS_MAX], 1):
        yield f"{indent}{number}. {_place(firing.where)}{firing.step}: {outcome(firing)}"
    if len(witness) > FIRINGS_MAX:
        yield f"{indent}… and {len(witness) - FIRINGS_MAX} more"


def outcome(firing: Firing) -> str:
    if firing.event == DROPPED:
        return "the gate drops the token"
    if firing.event == REJECTED:
        return "the gate holds the token"
    if not firing.arcs:
        return f"{firing.event}, no arc fires"
    lines = zip(firing.arcs, firing.targets, firing.arcs_where, strict=True)
    fired = ", ".join(f"arc {number} to {target}{_line_of(where)}" for number, target, where in lines)
    return f"{firing.event}, {fired}"


def _place(where: Where | None) -> str:
    return f"{where}: " if where else ""


def _line_of(where: Where | None) -> str:
    return f" (line {where.line})" if where else ""
