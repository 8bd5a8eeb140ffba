from noetlc.rules.rule import Findings, Model, Rule, Severity, migration_fix


class RetryOnTask(Rule):
    severity = Severity.ERROR
    summary = "A task has a `retry` of its own."
    why = (
        "A task is repeated by a rule of its policy, which also says on what outcome, and what follows when the "
        "attempts are used up. A second form of the policy would hide both."
    )
    example = """
      - step: fetch
        tool:
          - get:
              kind: http
              url: https://example.org/items
    -         retry: {max_attempts: 3, initial_delay: 2}
    +         spec:
    +           policy:
    +             rules:
    +               - when: "{{ outcome.status == 'error' }}"
    +                 then: {do: retry, attempts: 3, delay: 2}
    +               - else:
    +                   then: {do: continue}
    """
    covers = ("S90", "brief §1.2", "brief §1.4")
    on_damaged = True

    def check(self, model: Model) -> Findings:
        for item in model.respellings:
            if item.is_retry:
                help = "write a rule: `spec: {policy: {rules: [{when: …, then: {do: retry, …}}, …]}}`"
                yield self.finding(item.span, "a task has no `retry`", help, fix=migration_fix(model))
