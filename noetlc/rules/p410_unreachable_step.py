from noetlc.rules.rule import NetRule, Severity


class UnreachableStep(NetRule):
    severity = Severity.WARNING
    kind = "unreachable"
    summary = "A step can never run, for any data."
    why = "The execution succeeds although the step, such as a cleanup or a notification, never ran."
    example = """
      - step: start
        tool: {kind: noop}
        next:
          arcs:
            - step: publish
      - step: publish
        tool: {kind: noop}
    +   next:
    +     arcs:
    +       - step: cleanup
      - step: cleanup
        tool: {kind: noop}
    """
    covers = ("S4", "S30", "S31")
