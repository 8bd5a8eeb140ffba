from noetlc.analysis.guards import Choice, covered, first_match_lists
from noetlc.rules.rule import Findings, Model, Related, Rule, Severity
from noetlc.syntax.span import Span


class ShadowedRule(Rule):
    severity = Severity.WARNING
    summary = "A rule can never match, because an earlier rule always matches first."
    why = "The first rule that matches applies. A special case after the general case never applies."
    example = """
      - step: fetch
        tool:
          - get:
              kind: http
              url: https://example.org/items
              spec:
                policy:
                  rules:
    +               - when: "{{ outcome.status == 'error' and outcome.http.status == 429 }}"
    +                 then: {do: retry, attempts: 5}
                    - when: "{{ outcome.status == 'error' }}"
                      then: {do: fail}
    -               - when: "{{ outcome.status == 'error' and outcome.http.status == 429 }}"
    -                 then: {do: retry, attempts: 5}
                    - else:
                        then: {do: continue}
    """
    covers = ("formal §6.3", "brief §5.2", "S30")

    def check(self, model: Model) -> Findings:
        for rules in first_match_lists(model):
            if rules.object == "branch":
                continue  # P406 reports sugar
            guarded = [choice for choice in rules.choices if choice.when is not None or choice.else_ is not None]
            for choice, earlier in covered((choice, choice.when) for choice in guarded):
                if earlier.else_ is None:
                    yield self.finding(
                        _place(choice),
                        f"this {rules.title} never matches, because an earlier one always matches first",
                        "put the special case before the general one, or remove it",
                        related=[Related(_place(earlier), "this one comes first")],
                    )


def _place(choice: Choice) -> Span:
    return choice.when.span if choice.when else choice.key_span("else")
