"""A rule about the net of steps: places what `noetlc.net.findings` finds in the source."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar

from noetlc.finding import Finding, Related
from noetlc.rules.rule import Rule

if TYPE_CHECKING:
    from noetlc.analysis.model import Model
    from noetlc.net.findings import NetFinding, NetFindings
    from noetlc.net.net import NetArc
    from noetlc.net.source import SourceNet
    from noetlc.syntax.span import Span


class NetRule(Rule):
    """Base of the rules that report the net findings with their code."""

    kind: ClassVar[str]
    """The kind of net finding, as `noetlc graph` calls it."""

    def check(self, model: Model) -> Iterator[Finding]:
        from noetlc.net.findings import NetFindingKind
        from noetlc.net.source import source_net

        source = source_net(model)
        if source is not None:
            for found in _findings(source).of_kind(NetFindingKind(self.kind)):
                if found.code == self.code and not found.is_consequence:
                    yield self._placed(model, source, found)

    def _placed(self, model: Model, source: SourceNet, found: NetFinding) -> Finding:
        span = _written_span(model, found) or _span(source, found.step if found.arc is None else found.arc)
        related = [Related(_span(source, at), remark) for at, remark in found.related]
        return self.finding(span, found.message, found.help, related=related)


@lru_cache(maxsize=1)  # the rules of one model run one after the other
def _findings(source: SourceNet) -> NetFindings:
    from noetlc.net.findings import NetFindings

    return NetFindings(source.reach)


def _span(source: SourceNet, at: NetArc | int) -> Span:
    if isinstance(at, int):
        step = source.steps[at]
        return step.step.span if step.step else step.span
    arc = source.arc(at)
    return arc.step.span if arc.step else arc.span


def _written_span(model: Model, found: NetFinding) -> Span | None:
    """Return where a step writes the key that a race is about."""
    if not found.key:
        return None
    from noetlc.analysis.state_use import ctx_written

    name = model.steps[found.step].step
    place = ctx_written(model)[name.text].get(found.key) if name else None
    return place.span if place else None
