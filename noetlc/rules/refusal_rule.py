"""A rule that reports why a step cannot be expanded: sugar and workbook calls take another shape before they run.

The expansion itself finds out, so that what passes here compiles. It runs once for all these rules, and only where it
has something to expand.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from noetlc.analysis.model import Model
from noetlc.finding import Finding
from noetlc.rules.rule import Rule
from noetlc.syntax import ast

if TYPE_CHECKING:
    from noetlc.canon.errors import ExpansionError


class RefusalRule(Rule):
    """Base of the rules that report the refusals with their code."""

    def check(self, model: Model) -> Iterator[Finding]:
        for refusal in _expansion_errors(model):
            if refusal.code == self.code:
                yield self.finding(refusal.span, refusal.message, refusal.help)


@lru_cache(maxsize=1)  # the rules of one model run one after the other
def _expansion_errors(model: Model) -> tuple[ExpansionError, ...]:
    steps = [step for step in model.steps if any(map(_is_expanded, step.tool or ()))]
    if not steps or model.problems:
        return ()
    if any(template.problems for _, template in model.template_sites):
        return ()  # reported by other rules, and nothing can be put into what cannot be read
    from noetlc.canon.canonicalize import expansion_errors

    return expansion_errors(model.playbook, steps)


def _is_expanded(entry: ast.PipelineEntry) -> bool:
    """Return whether an entry takes another shape; of plain tasks there is nothing to refuse."""
    return not isinstance(entry, ast.Task) or (entry.kind is not None and entry.kind.text == "workbook")
