from noetlc.rules.rule import ProblemRule, Severity
from noetlc.syntax.span import ProblemKind


class DuplicateKey(ProblemRule):
    severity = Severity.ERROR
    summary = "A mapping has the same key twice."
    why = "YAML libraries use one of the two and drop the other without a warning, and they do not agree on which."
    example = """
      - step: fetch
        tool:
          kind: http
          url: https://example.com/orders
    -     url: https://example.com/orders?page=2
    """
    covers = ("S7",)
    kind = ProblemKind.DUPLICATE_KEY
    other_message = "the key is first given here"
