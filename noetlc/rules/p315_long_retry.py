from noetlc.analysis.flow import duration, waits
from noetlc.analysis.model import thens
from noetlc.rules.rule import Findings, Model, Rule, Severity

_LONG = 600


class LongRetry(Rule):
    severity = Severity.NOTE
    summary = "The waits between retries can add up to more than ten minutes."
    why = "Exponential backoff grows fast. The step is not done until the retries end."
    example = """
      - step: fetch
        tool:
          - get:
              kind: http
              url: https://example.org/items
              spec:
                policy:
                  rules:
                    - when: "{{ outcome.status == 'error' }}"
    -                 then: {do: retry, attempts: 10, backoff: exponential, delay: 5}
    +                 then: {do: retry, attempts: 6, backoff: exponential, delay: 5}
                    - else:
                        then: {do: continue}
    """
    covers = ("S14", "brief §6")

    def check(self, model: Model) -> Findings:
        for view in model.tasks:
            for _, then in thens(view.task):
                expected = waits(then) if then.do and then.do.text == "retry" else None
                if then.do and expected and expected.total > _LONG:
                    yield self.finding(
                        then.do.span,
                        f"the retries of `{view.label}` can wait {duration(expected.total)} in all",
                        "use fewer `attempts`, a shorter `delay` or a slower `backoff`, unless this is intended",
                    )
