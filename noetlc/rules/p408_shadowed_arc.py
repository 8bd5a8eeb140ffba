from noetlc.rules.rule import NetRule, Severity


class ShadowedArc(NetRule):
    severity = Severity.WARNING
    kind = "dead-arc"
    summary = "In an exclusive router an arc can never fire, because an earlier arc always fires first."
    why = "Only the first arc that holds fires. The target of this arc never gets a token from here."
    example = """
      - step: check
        tool: {kind: noop}
        next:
          arcs:
    -       - step: publish
            - step: review
              when: "{{ ctx.suspicious | default(false) }}"
    +       - step: publish
      - step: publish
        tool: {kind: noop}
      - step: review
        tool: {kind: noop}
    """
    covers = ("S31", "formal §8.2", "brief §5.1")
