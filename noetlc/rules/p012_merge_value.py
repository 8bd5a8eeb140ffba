from noetlc.rules.rule import ProblemRule, Severity
from noetlc.syntax.span import ProblemKind


class MergeValue(ProblemRule):
    severity = Severity.ERROR
    summary = "The value of a merge key (`<<`) is not a mapping."
    why = "There is nothing to merge, so the fields that the author expects are absent."
    example = """
      - step: fetch
        tool:
    -     <<: https://example.com
    -     kind: noop
    +     <<: {kind: http, method: GET}
    +     url: https://example.com
    """
    covers = ("S7",)
    kind = ProblemKind.MERGE_VALUE
