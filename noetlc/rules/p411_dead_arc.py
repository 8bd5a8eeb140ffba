from noetlc.rules.rule import NetRule, Severity


class DeadArc(NetRule):
    severity = Severity.WARNING
    kind = "dead-arc"
    summary = "An arc can never fire, because its step never ends that way or earlier arcs together shadow it."
    why = (
        "The target of the arc never gets a token from here. An error handler on a step that cannot fail has no "
        "effect; the failure for which it is meant happens in another step."
    )
    example = """
      - step: start
    -   tool: {kind: noop}
    +   tool: {kind: http, url: https://example.org}
        next:
          arcs:
            - step: report
              when: "{{ event.name == 'step.done' }}"
            - step: rescue
              when: "{{ event.name == 'step.failed' }}"
      - step: report
        tool: {kind: noop}
      - step: rescue
        tool: {kind: noop}
    """
    covers = ("S21", "S31", "S33")
