"""A rule that reports what reading or parsing already found. Its file gives the page; the problem gives the words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from noetlc.analysis.model import Model
from noetlc.finding import Finding, Fix, Related
from noetlc.rules.catalogue import claimed_keys
from noetlc.rules.rule import Rule
from noetlc.syntax.span import Problem, ProblemKind


class ProblemRule(Rule):
    """Base of the rules that own one kind of problem."""

    kind: ClassVar[ProblemKind]
    other_message: ClassVar[str] = "here"
    on_damaged = True

    def check(self, model: Model) -> Iterator[Finding]:
        claimed = claimed_keys()
        for problem in model.problems:
            if problem.kind is self.kind and (problem.object, problem.key) not in claimed:
                yield self.word(model, problem)

    def word(self, model: Model, problem: Problem) -> Finding:
        related = (Related(problem.other, self.other_message),) if problem.other else ()
        return self.finding(
            problem.span, problem.message, problem.help, related=related, fix=self.fix_for(model, problem)
        )

    def fix_for(self, model: Model, problem: Problem) -> Fix | None:
        """Return the edit that removes the problem, where there is a mechanical one."""
        return None
