from noetlc.rules.rule import Findings, Model, Rule, Severity


class UnusedIgnore(Rule):
    severity = Severity.NOTE
    summary = "An ignore comment suppresses nothing."
    why = (
        "The finding that the comment suppressed no longer exists, and the comment would hide the next mistake on "
        "that line. This rule runs after all others."
    )
    example = """
      - step: start
    -   tool: {kind: noop}  # noetlc: ignore[P106]
    +   tool: {kind: noop}
    """

    def check(self, model: Model) -> Findings:
        """Find nothing: whether a comment is used is known only after the other rules have run."""
        return iter(())
