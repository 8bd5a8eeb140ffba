"""What a lint rule is, and the bases of rules. One rule, one file beside this one, with its page and its examples."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from heapq import nsmallest
from textwrap import dedent
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from noetlc.analysis.model import Model
from noetlc.canon.canonicalize import expansion_errors
from noetlc.finding import Edit, Finding, Fix, Related, Severity
from noetlc.net.findings import NetFindingKind, NetFindings
from noetlc.net.source import source_net
from noetlc.syntax import ast
from noetlc.syntax.span import Problem, ProblemKind, Span
from noetlc.syntax.template_ast import ProblemName
from noetlvm.language.scopes import TemplatePosition

if TYPE_CHECKING:
    from noetlc.canon.errors import ExpansionError
    from noetlc.net.findings import NetFinding, NetFindings
    from noetlc.net.net import NetArc
    from noetlc.net.source import SourceNet

__all__ = [
    "ClaimRule",
    "Edit",
    "Finding",
    "Findings",
    "Fix",
    "Model",
    "NetRule",
    "ProblemRule",
    "RefusalRule",
    "Related",
    "Rule",
    "Severity",
    "TemplateProblemRule",
]
"""What a file of a rule imports from here."""

Findings: TypeAlias = Iterator[Finding]


NAMES_LISTED = 20
"""Names that a help text lists: with all of them, many mistakes in a long pipeline would fill a report."""


class _ExampleSide:
    """The text of one side of a rule's example, made when it is read: linting does not need it."""

    def __init__(self, mark: str) -> None:
        self._marks = (mark, " ", "")

    def __get__(self, _: object, rule: type[Rule]) -> str:
        lines = dedent(rule.example).strip("\n").split("\n")
        return "".join(f"{line[2:]}\n" for line in lines if line[:1] in self._marks)


class Rule:
    """Base of all rules. A subclass fills in the page and yields findings from `check`."""

    code: ClassVar[str]
    """Topic and number (`P103`, see `codes`); the file's name begins with it. Never reused, see `catalogue.RETIRED`."""
    name: ClassVar[str]
    """Kebab-case name, the rest of the file's name."""
    severity: ClassVar[Severity]
    summary: ClassVar[str]
    """One sentence: what the rule finds."""
    why: ClassVar[str]
    """A paragraph: what goes wrong if it is not corrected."""
    example: ClassVar[str]
    """A playbook, or a list of steps, as a diff: `-` marks lines in which the rule fires, `+` what to write instead."""
    bad = _ExampleSide("-")
    good = _ExampleSide("+")
    covers: ClassVar[tuple[str, ...]] = ()
    """Sentences of the language definition that the rule enforces, such as `formal §13` or `S18`."""
    claims: ClassVar[frozenset[tuple[str, str]]] = frozenset()
    """Unknown keys, as (object, key), that this rule explains better than the general rule does."""

    on_damaged: ClassVar[bool] = False
    """Whether the rule also runs on a file that could be read in part only: not if it looks for what is absent."""

    stops_compiler: ClassVar[bool] = True
    """Whether code generation relies on the rule: comments and settings do not lift its errors."""

    def __init_subclass__(cls) -> None:
        code, _, name = cls.__module__.rpartition(".")[2].partition("_")
        cls.code, cls.name = code.upper(), name.replace("_", "-")

    def check(self, model: Model) -> Findings:
        raise NotImplementedError

    def claimed(self, model: Model) -> Iterator[Problem]:
        """Yield the problems with the keys that this rule claims."""
        for problem in model.problems:
            is_about_a_key = problem.kind in (ProblemKind.UNKNOWN_KEY, ProblemKind.WRONG_TYPE)
            if is_about_a_key and (problem.object, problem.key) in self.claims:
                yield problem

    def finding(
        self,
        span: Span,
        message: str,
        help: str,
        *,
        related: Iterable[Related] = (),
        fix: Fix | None = None,
        severity: Severity | None = None,
    ) -> Finding:
        return Finding(self.code, severity or self.severity, span, message, help, tuple(related), fix)


class ProblemRule(Rule):
    """Base of the rules that report a kind of problem which reading or parsing found: the problem has the message."""

    kind: ClassVar[ProblemKind]
    other_message: ClassVar[str] = "here"
    on_damaged = True

    def check(self, model: Model) -> Findings:
        from noetlc.rules.catalogue import claimed_keys

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


class ClaimRule(Rule):
    """Base of the rules that word the problems with their claimed keys."""

    on_damaged = True

    def check(self, model: Model) -> Findings:
        for problem in self.claimed(model):
            yield self.word(model, problem)

    def word(self, model: Model, problem: Problem) -> Finding:
        return self.finding(problem.span, problem.message, problem.help)


class NetRule(Rule):
    """Base of the rules that report the net findings with their code."""

    kind: ClassVar[str]
    """The kind of net finding, as `noetlc graph` calls it."""

    def check(self, model: Model) -> Findings:
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
    name = model.steps[found.step].step
    place = model.ctx_written[name.text].get(found.key) if name else None
    return place.span if place else None


class RefusalRule(Rule):
    """Base of the rules that report the refusals with their code."""

    def check(self, model: Model) -> Findings:
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
    return expansion_errors(model.playbook, steps)


def _is_expanded(entry: ast.PipelineEntry) -> bool:
    """Return whether an entry takes another shape; of plain tasks there is nothing to refuse."""
    return not isinstance(entry, ast.Task) or (entry.kind is not None and entry.kind.text == "workbook")


class TemplateProblemRule(Rule):
    """Base of the rules that own kinds of template problems."""

    kinds: ClassVar[frozenset[ProblemName]]
    on_damaged = True

    def check(self, model: Model) -> Findings:
        for site, template in model.template_sites:
            if site.position is TemplatePosition.STATIC:
                continue
            for problem in template.problems:
                if problem.kind in self.kinds:
                    yield self.finding(model.place(site, problem.span), problem.message, problem.help)


def first_of(names: Collection[str]) -> str:
    """Return names for a help text, in order and quoted; of many, the first and how many more there are."""
    first = ", ".join(f"`{name}`" for name in nsmallest(NAMES_LISTED, names))
    return first + (f" and {len(names) - NAMES_LISTED:,} more" if len(names) > NAMES_LISTED else "")


def path_text(names: Sequence[str]) -> str:
    """Return names as a path for a message; of a long one, its two ends."""
    is_long = len(names) > NAMES_LISTED
    half = NAMES_LISTED // 2
    return " → ".join([*names[:half], "…", *names[-half:]] if is_long else names)


def migration_fix(model: Model) -> Fix | None:
    """Return the fix that migrates the whole file; None where that would change nothing.

    Findings of one file share it, so that it is applied once. Only files that need it pay for the import.
    """
    from noetlc.migrate.lines import fix_by_migration

    return None if model.document.problems else fix_by_migration(model.source.text)
