from noetlc.rules.rule import ProblemRule, Severity
from noetlc.syntax.span import ProblemKind


class MultipleDocuments(ProblemRule):
    severity = Severity.ERROR
    summary = "The file contains more than one YAML document."
    why = "Only the first document of a file would run. The others would be ignored without a warning."
    example = """
      apiVersion: noetl.io/v2
      kind: Playbook
      metadata: {name: first, path: demo/first}
      workflow:
        - step: start
          tool: {kind: noop}
    - ---
    - apiVersion: noetl.io/v2
    - kind: Playbook
    """
    covers = ("S7",)
    kind = ProblemKind.MANY_DOCUMENTS
