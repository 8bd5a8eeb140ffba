from noetlc.rules.rule import NetRule, Severity


class EndlessRun(NetRule):
    severity = Severity.WARNING
    kind = "trap"
    summary = "An execution that reaches these steps can never end."
    why = "Every path leads back, for all values of the guards. The execution stays open until it is cancelled."
    example = """
      - step: start
        tool: {kind: http, url: https://example.org/jobs}
        next:
          arcs:
            - step: pause
    +         when: "{{ event.result.data.pending }}"
      - step: pause
        tool: {kind: noop}
        next:
          arcs:
            - step: start
    """
    covers = ("S31", "S34")
