"""A rule that reports what parsing a template already found. Its file gives the page; the problem gives the words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from noetlc.analysis.model import Model
from noetlc.finding import Finding
from noetlc.rules.rule import Rule
from noetlc.syntax.template_ast import ProblemName
from noetlvm.language.scopes import TemplatePosition


class TemplateProblemRule(Rule):
    """Base of the rules that own kinds of template problems."""

    kinds: ClassVar[frozenset[ProblemName]]
    on_damaged = True

    def check(self, model: Model) -> Iterator[Finding]:
        for site, template in model.template_sites:
            if site.position is TemplatePosition.STATIC:
                continue
            for problem in template.problems:
                if problem.kind in self.kinds:
                    yield self.finding(model.place(site, problem.span), problem.message, problem.help)
