"""P006: a second YAML document in the file."""

from noetlc.finding import Severity
from noetlc.rules.problem_rule import ProblemRule
from noetlc.syntax.span import ProblemKind


class MultipleDocuments(ProblemRule):
    code = "P006"
    name = "multiple-documents"
    severity = Severity.ERROR
    summary = "The file holds more than one YAML document."
    why = "Only the first document of a file would ever run. The others would be lost in silence."
    bad = """
    apiVersion: noetl.io/v2
    kind: Playbook
    metadata: {name: first, path: demo/first}
    workflow:
      - step: start
        tool: {kind: noop}
    ---
    apiVersion: noetl.io/v2
    kind: Playbook
    """
    good = """
    apiVersion: noetl.io/v2
    kind: Playbook
    metadata: {name: first, path: demo/first}
    workflow:
      - step: start
        tool: {kind: noop}
    """
    covers = ("S7",)
    kind = ProblemKind.MANY_DOCUMENTS
