from noetlc.rules.rule import NetRule, Severity


class UnboundedTokens(NetRule):
    severity = Severity.WARNING
    kind = "unbounded"
    summary = "A step on a cycle sends one token back into the cycle and another one elsewhere, so tokens accumulate."
    why = (
        "Every round adds a step run. Only the number of rounds limits them: a retry loop that also notifies floods "
        "the receiver, and a loop that forks doubles its tokens each time."
    )
    example = """
      - step: start
        tool: {kind: http, url: https://example.org/jobs}
        next:
    -     spec: {mode: inclusive}
          arcs:
            - step: start
              when: "{{ event.result.data.more }}"
            - step: load
              when: "{{ event.name == 'step.done' }}"
      - step: load
        tool: {kind: noop}
    """
    covers = ("S31", "formal §8.2")
