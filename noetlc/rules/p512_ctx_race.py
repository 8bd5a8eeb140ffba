from noetlc.rules.rule import NetRule, Severity


class CtxRace(NetRule):
    severity = Severity.WARNING
    kind = "race"
    summary = "Two step runs that can run at the same time access one `ctx` key, and at least one of them writes it."
    why = "Their order is not defined, so the result can differ from run to run."
    example = """
      - step: start
        next:
          spec: {mode: inclusive}
          arcs:
            - step: hotels
            - step: rooms
      - step: hotels
        tool:
          - count:
              kind: noop
              spec:
                policy:
                  rules:
                    - else:
    -                   then: {do: continue, set_ctx: {total: 1}}
    +                   then: {do: continue, set_ctx: {hotels_total: 1}}
      - step: rooms
        tool:
          - count:
              kind: noop
              spec:
                policy:
                  rules:
                    - else:
    -                   then: {do: continue, set_ctx: {total: 2}}
    +                   then: {do: continue, set_ctx: {rooms_total: 2}}
    """
    covers = ("S31", "formal §4.1")
