from noetlc.rules.rule import ProblemRule, Severity
from noetlc.syntax.span import ProblemKind


class UndefinedAlias(ProblemRule):
    severity = Severity.ERROR
    summary = "An alias names an anchor that is not defined before it, or that contains the alias."
    why = "The value that the alias should repeat does not exist, so the field is empty when the playbook runs."
    example = """
      apiVersion: noetl.io/v2
      kind: Playbook
      metadata: {name: load, path: demo/load}
      workload:
    +   common: &defaults {accept: application/json}
        headers: *defaults
      workflow:
        - step: start
          tool: {kind: noop}
    """
    covers = ("S7",)
    kind = ProblemKind.ALIAS
