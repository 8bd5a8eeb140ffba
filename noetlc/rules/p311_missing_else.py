from noetlc.analysis.guards import decide
from noetlc.rules.p314_swallowed_error import lets_errors_through
from noetlc.rules.rule import Findings, Model, Rule, Severity
from noetlc.syntax import ast


class MissingElse(Rule):
    severity = Severity.WARNING
    summary = "A task's policy has no `else`."
    why = (
        "If no rule matches, the pipeline continues, whether the task succeeded or failed. An `else` states the "
        "intended behaviour."
    )
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
                      then: {do: retry, attempts: 5}
    +               - else:
    +                   then: {do: continue}
    """
    covers = ("brief §12", "formal §6.3")

    def check(self, model: Model) -> Findings:
        for view in model.tasks:
            policy = view.task.policy
            if policy is None or policy.rules is None or any(map(_takes_the_rest, policy.rules)):
                continue
            if lets_errors_through(view):
                continue  # P314 says so, and what to write
            if not model.is_reported(policy.span, ("rule", "else"), ("rules", "")):
                yield self.finding(
                    policy.key_span("rules"),
                    f"the policy of `{view.label}` has no `else`: an unmatched outcome continues, even an error",
                    "end the list with `- else: { then: { do: continue } }`, or `do: fail`",
                )


def _takes_the_rest(rule: ast.PolicyRule) -> bool:
    if rule.when is None:
        return True  # an `else`, or a rule that P309 reports
    return rule.else_ is not None or decide(rule.when) is True
