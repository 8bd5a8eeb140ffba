from noetlc.rules.rule import ClaimRule, Edit, Finding, Fix, Model, Severity
from noetlc.syntax.span import Problem


class BackoffFixed(ClaimRule):
    severity = Severity.ERROR
    summary = "A retry has `backoff: fixed`, as in the older dialect, or another unknown backoff."
    why = "A constant delay is written as `none`. With an unknown word the delay between retries is undefined."
    example = """
      - step: fetch
        tool:
          - page:
              kind: http
              url: https://api.example.com/items
              spec:
                policy:
                  rules:
                    - when: "{{ outcome.status == 'error' }}"
    -                 then: {do: retry, attempts: 3, backoff: fixed, delay: 2}
    +                 then: {do: retry, attempts: 3, backoff: none, delay: 2}
                    - else:
                        then: {do: continue}
    """
    covers = ("formal §6.2", "step spec §5.4", "S14")
    claims = frozenset({("then", "backoff")})

    def word(self, model: Model, problem: Problem) -> Finding:
        written = model.source.text[problem.span.start : problem.span.end]
        if written.strip("'\"") != "fixed":
            return self.finding(problem.span, problem.message, problem.help)
        return self.finding(
            problem.span,
            "`backoff: fixed` belongs to the older dialect: a delay that stays the same is `none`",
            "write `backoff: none`, with the same `delay`",
            fix=Fix("write `none`", (Edit(problem.span, "none"),), safe=True),
        )
