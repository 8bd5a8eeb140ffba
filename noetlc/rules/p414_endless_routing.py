from noetlc.rules.rule import NetRule, Severity


class EndlessRouting(NetRule):
    severity = Severity.ERROR
    stops_compiler = False
    kind = "trap"
    summary = "An execution that reaches these steps routes forever: they have no exit and call no tool."
    why = (
        "Without a tool nothing slows the cycle down. The engine runs it until the execution has used up its step "
        "runs and fails with `error.kind: fuel`."
    )
    example = """
      - step: start
    +   tool: {kind: http, url: https://example.org/jobs}
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
