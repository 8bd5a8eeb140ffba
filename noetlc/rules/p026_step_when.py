from noetlc.rules.rule import ClaimRule, Finding, Model, Severity
from noetlc.syntax.span import Problem

ADMIT_SHAPE = "`spec: {policy: {admit: {rules: [{when: …, then: {allow: true}}, {else: {then: {allow: false}}}]}}}`"
"""How a step declares when it may run."""


class StepWhen(ClaimRule):
    severity = Severity.ERROR
    summary = "A step has a `when`."
    why = (
        "A `when` on a step does not define whether a token that is not admitted waits or is dropped. Admission "
        "rules define this. A `when` on an arc prevents the token from being created."
    )
    example = """
      - step: notify
    -   when: "{{ workload.notify | default(false) }}"
    +   spec:
    +     policy:
    +       admit:
    +         rules:
    +           - when: "{{ workload.notify | default(false) }}"
    +             then: {allow: true}
    +           - else:
    +               then: {allow: false}
        tool: {kind: noop}
    """
    covers = ("formal §2.2", "formal §13", "brief §1.1", "brief §12", "step spec §5.2.1", "step spec §13")
    claims = frozenset({("step", "when")})

    def word(self, model: Model, problem: Problem) -> Finding:
        return self.finding(
            problem.span,
            "a step has no `when`: it is admitted by rules",
            f"write {ADMIT_SHAPE}, or put the `when` on the arcs that lead here",
        )
