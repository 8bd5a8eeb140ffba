from noetlc.rules.rule import ClaimRule, Finding, Model, Severity, migration_fix
from noetlc.syntax.span import Problem


class Case(ClaimRule):
    severity = Severity.ERROR
    summary = "A step has `case`, as earlier drafts of the language did."
    why = "`case` is ignored: its conditions would not be evaluated, and the step would continue without them."
    example = """
      - step: start
        tool: {kind: noop}
    -   case:
    -     - when: "{{ event.name == 'step.done' }}"
    -       then: [{next: finish}]
    +   next:
    +     arcs:
    +       - step: finish
    +         when: "{{ event.name == 'step.done' }}"
      - step: finish
        tool: {kind: noop}
    """
    covers = ("step spec §13", "S6")
    claims = frozenset({("step", "case")})

    def word(self, model: Model, problem: Problem) -> Finding:
        return self.finding(
            problem.span,
            "`case` belongs to an older dialect: a step has no cases",
            "write what leads to other steps as `next: {arcs: [{step: …, when: …}]}`, what reacts to "
            "an outcome as `spec.policy.rules` of the task, and what picks tasks as `choose` under `tool`",
            fix=migration_fix(model),
        )
