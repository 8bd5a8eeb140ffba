from noetlc.analysis.inputs import old_evals
from noetlc.rules.rule import Findings, Model, Rule, Severity, migration_fix


class Eval(Rule):
    severity = Severity.ERROR
    summary = "A task handles its outcome with `eval`, as the older dialect did."
    why = "`eval` is ignored: no retry would happen, and no error would be caught."
    example = """
      - step: fetch
        tool:
          - page:
              kind: http
              url: https://api.example.com/items
    -         eval:
    -           - else: {do: continue, set_ctx: {fetched: true}}
    +         spec:
    +           policy:
    +             rules:
    +               - when: "{{ outcome.status == 'error' }}"
    +                 then: {do: fail}
    +               - else:
    +                   then: {do: continue, set_ctx: {fetched: true}}
    """
    covers = ("brief §1.1", "step spec §4", "step spec §13")
    on_damaged = True

    def check(self, model: Model) -> Findings:
        for entry in old_evals(model):
            yield self.finding(
                entry.key.span,
                "`eval` belongs to the older dialect: a task's outcome is handled by `spec.policy.rules`",
                "write each entry as a rule, `{when: …, then: {do: …}}`, and the last as `{else: {then: {do: …}}}`",
                fix=migration_fix(model),
            )
