from noetlc.rules.rule import Findings, Model, Rule, Severity


class UnusedIgnore(Rule):
    severity = Severity.NOTE
    summary = "An ignore comment suppresses nothing."
    why = (
        "The finding that it suppressed is gone, and it would hide the next mistake on that line. Found after all "
        "other rules have run, when the comments are applied."
    )
    example = """
      - step: start
    -   tool: {kind: noop}  # noetlc: ignore[P106]
    +   tool: {kind: noop}
    """

    def check(self, model: Model) -> Findings:
        """Find nothing: whether a comment is used is known only after the other rules have run."""
        return iter(())
