from noetlc.rules.rule import ProblemRule, Severity
from noetlc.syntax.span import ProblemKind


class NotUtf8(ProblemRule):
    severity = Severity.ERROR
    summary = "The file contains bytes that are not UTF-8."
    why = (
        "A playbook is UTF-8 text. A file in another encoding is read differently on each machine, and its names no "
        "longer match those that the author sees."
    )
    example = """
      apiVersion: noetl.io/v2
      kind: Playbook
      metadata:
    -   name: caf\udce9
    +   name: café
        path: menu/cafe
      workflow:
        - step: start
          tool: {kind: noop}
    """
    covers = ("formal §2.1", "S7")
    kind = ProblemKind.NOT_UTF8
