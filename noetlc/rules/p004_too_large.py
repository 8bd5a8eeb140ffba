from noetlc.rules.rule import ProblemRule, Severity
from noetlc.syntax.span import ProblemKind


class TooLarge(ProblemRule):
    severity = Severity.ERROR
    summary = "The document is too large, too deep, or its aliases repeat too much."
    why = (
        "A few hundred bytes of nested aliases can stand for billions of nodes. To protect the machine that checks a "
        "file, reading stops at a fixed size (8 MiB unless configured), 64 levels, a million nodes, and 100,000 "
        "nodes that aliases and merge keys repeat."
    )
    example = f"""
      apiVersion: noetl.io/v2
      kind: Playbook
      metadata: {{name: deep, path: demo/deep}}
      workload:
    -   grid: {"[" * 65 + "]" * 65}
    +   grid: {{store: postgres.table, key: grids}}
      workflow:
        - step: start
          tool: {{kind: noop}}
    """
    covers = ("S7",)
    kind = ProblemKind.TOO_LARGE
