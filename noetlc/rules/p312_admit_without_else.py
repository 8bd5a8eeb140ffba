from noetlc.analysis.guards import decide
from noetlc.rules.rule import Findings, Model, Rule, Severity
from noetlc.syntax import ast


class AdmitWithoutElse(Rule):
    severity = Severity.WARNING
    summary = "Admission rules have no `else`."
    why = (
        "If no rule matches a token, it is not admitted: it waits, and at the end of the execution it is rejected. "
        "An `else` states the intended behaviour."
    )
    example = """
      - step: publish
        spec:
          policy:
            admit:
              rules:
                - when: "{{ workload.enabled | default(false) }}"
                  then: {allow: true}
    +           - else:
    +               then: {allow: false}
        tool: {kind: noop}
    """
    covers = ("S30", "formal §4.2")

    def check(self, model: Model) -> Findings:
        for step in model.steps:
            admit = step.policy.admit if step.policy else None
            if admit is None or not admit.rules or any(map(_takes_the_rest, admit.rules)):
                continue
            if not model.is_reported(admit.span, ("admit_rule", "else"), ("admit_rules", "")):
                yield self.finding(
                    admit.key_span("rules"),
                    f"the admission rules of `{step.name}` have no `else`: unmatched tokens are not admitted",
                    "end the list with `- else: { then: { allow: false } }`, or `allow: true`",
                )


def _takes_the_rest(rule: ast.AdmitRule) -> bool:
    return rule.else_ is not None or (rule.when is not None and decide(rule.when) is True)
