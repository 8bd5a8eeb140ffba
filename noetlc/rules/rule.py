"""What a lint rule is. One rule, one file beside this one; its page and its examples are in the file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, ClassVar

from noetlc.finding import Finding, Fix, Related, Severity
from noetlc.syntax.span import Span

if TYPE_CHECKING:
    from noetlc.analysis.model import Model


class Rule:
    """Base of all rules. A subclass fills in the page and yields findings from `check`."""

    code: ClassVar[str]
    """Topic and number (`P103`, see `codes`); never reused for another rule."""
    name: ClassVar[str]
    """Kebab-case name, the file's name without its code."""
    severity: ClassVar[Severity]
    summary: ClassVar[str]
    """One sentence: what the rule finds."""
    why: ClassVar[str]
    """A paragraph: what goes wrong if it is not corrected."""
    bad: ClassVar[str]
    """A playbook, or a list of steps, in which the rule fires."""
    good: ClassVar[str]
    """The same, corrected."""
    covers: ClassVar[tuple[str, ...]] = ()
    """Sentences of the language definition that the rule enforces, such as `formal §13` or `S18`."""
    claims: ClassVar[frozenset[tuple[str, str]]] = frozenset()
    """Unknown keys, as (object, key), that this rule explains better than the general rule does."""

    on_damaged: ClassVar[bool] = False
    """Whether the rule also runs on a file that could be read in part only: not if it looks for what is absent."""

    stops_compiler: ClassVar[bool] = True
    """Whether code generation relies on the rule: its errors stop the compiler whatever comments or settings say."""

    def check(self, model: Model) -> Iterator[Finding]:
        """Yield what this rule finds in one playbook."""
        raise NotImplementedError

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
        """Make a finding of this rule."""
        return Finding(self.code, severity or self.severity, span, message, help, tuple(related), fix)
