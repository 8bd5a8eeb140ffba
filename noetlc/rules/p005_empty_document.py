from noetlc.rules.rule import ProblemRule, Severity
from noetlc.syntax.span import ProblemKind


class EmptyDocument(ProblemRule):
    severity = Severity.ERROR
    summary = "The file is empty or contains only comments."
    why = "An empty file is usually a failed checkout or a template that rendered to nothing. It runs nothing."
    example = """
    - # the nightly load, to be written
    + apiVersion: noetl.io/v2
    + kind: Playbook
    + metadata: {name: nightly_load, path: loads/nightly}
    + workflow:
    +   - step: start
    +     tool: {kind: noop}
    """
    covers = ("formal §2.1",)
    kind = ProblemKind.EMPTY
