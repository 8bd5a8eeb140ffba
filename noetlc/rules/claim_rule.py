"""A rule that reports keys which it explains better than the general rules do: those that it claims."""

from __future__ import annotations

from collections.abc import Iterator

from noetlc.analysis.model import Model
from noetlc.finding import Finding
from noetlc.rules.rule import Rule
from noetlc.syntax.problem import Problem, ProblemKind

_KINDS = (ProblemKind.UNKNOWN_KEY, ProblemKind.WRONG_TYPE)


class ClaimRule(Rule):
    """Base of the rules that word the problems with their claimed keys."""

    on_damaged = True

    def check(self, model: Model) -> Iterator[Finding]:
        for problem in self.claimed(model):
            yield self.word(model, problem)

    def claimed(self, model: Model) -> Iterator[Problem]:
        """Yield the problems that this rule reports."""
        for problem in model.problems:
            if problem.kind in _KINDS and (problem.object, problem.key) in self.claims:
                yield problem

    def word(self, model: Model, problem: Problem) -> Finding:
        """Word a problem as a finding."""
        return self.finding(problem.span, problem.message, problem.help)
