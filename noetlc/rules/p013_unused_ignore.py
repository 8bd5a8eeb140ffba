"""P013: a comment that ignores what is not there."""

from __future__ import annotations

from collections.abc import Iterator

from noetlc.rules.rule import Finding, Model, Rule, Severity


class UnusedIgnore(Rule):
    severity = Severity.NOTE
    summary = "An ignore comment suppresses nothing."
    why = (
        "What it once excused is gone, and the next mistake on that line will pass unseen. "
        "Found after all other rules have run, when the comments are applied."
    )
    example = """
      - step: start
    -   tool: {kind: noop}  # noetlc: ignore[P106]
    +   tool: {kind: noop}
    """

    def check(self, model: Model) -> Iterator[Finding]:
        """Find nothing: whether a comment was of use is known only once the other rules' findings meet it."""
        return iter(())
