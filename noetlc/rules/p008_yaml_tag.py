from noetlc.rules.rule import ProblemRule, Severity
from noetlc.syntax.span import ProblemKind


class YamlTag(ProblemRule):
    severity = Severity.ERROR
    summary = "A value has a YAML tag that playbooks do not support, or that does not fit the value."
    why = (
        "A YAML library creates objects for tags. A playbook is plain data: strings, numbers, booleans, null, lists "
        "and mappings."
    )
    example = """
      - step: fetch
        tool:
          kind: http
    -     url: !Ref api_url
    +     url: https://example.com/orders
    """
    covers = ("S7",)
    kind = ProblemKind.TAG
