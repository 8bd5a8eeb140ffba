from noetlc.rules.p324_misplaced_patch import may_write_ctx
from noetlc.rules.rule import Findings, Model, Rule, Severity


class CtxNeverWritten(Rule):
    severity = Severity.WARNING
    summary = "A template reads `ctx.<name>`, and no `set_ctx` writes it."
    why = (
        "`ctx` starts empty. A key that no task writes is undefined: an error in an input, false in a `when`, so "
        "that the branch is never taken."
    )
    example = """
      - step: count
        tool:
          - add:
              kind: noop
              spec:
                policy:
                  rules:
                    - else:
                        then: {do: continue, set_ctx: {total: 1}}
        next:
          arcs:
            - step: report
    -         when: "{{ ctx.totl > 0 }}"
    +         when: "{{ ctx.total > 0 }}"
      - step: report
        tool: {kind: noop}
    """
    covers = ("S10", "formal §4.1", "step spec §6.2")

    def check(self, model: Model) -> Findings:
        if may_write_ctx(model):
            return
        written = model.definitions.ctx
        reported: set[str] = set()
        for reading in model.readings:
            for use in reading.names.uses:
                if use.name != "ctx" or not use.fields or use.is_optional:
                    continue
                field = use.fields[0]
                if field.name not in written and field.name not in reported:
                    reported.add(field.name)
                    meant = model.suggestions.nearest(field.name, written)
                    help = (
                        f"did you mean `ctx.{meant}`?" if meant else f"write it first: `set_ctx: {{ {field.name}: … }}`"
                    )
                    place = model.place(reading.site, field.span)
                    yield self.finding(place, f"no task writes `ctx.{field.name}`", help)
