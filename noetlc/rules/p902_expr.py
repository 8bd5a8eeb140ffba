from noetlc.analysis.inputs import old_evals, rename_to_when
from noetlc.rules.p026_step_when import ADMIT_SHAPE
from noetlc.rules.rule import ClaimRule, Finding, Findings, Fix, Model, Severity
from noetlc.syntax.nodes import Mapping, Sequence
from noetlc.syntax.span import Problem, Span


class Expr(ClaimRule):
    severity = Severity.ERROR
    summary = "A condition is written as `expr`, as the older dialect did."
    why = "The keyword for a condition is `when`. A rule without a condition would always match, or never."
    example = """
      - step: start
        tool: {kind: noop}
        next:
          arcs:
            - step: finish
    -         expr: "{{ event.name == 'step.done' }}"
    +         when: "{{ event.name == 'step.done' }}"
      - step: finish
        tool: {kind: noop}
    """
    covers = ("brief §1.1", "brief §12", "step spec §4", "step spec §13")
    claims = frozenset((name, "expr") for name in ("step", "arc", "rule", "admit_rule", "branch", "rounds"))

    def check(self, model: Model) -> Findings:
        yield from super().check(model)
        for entry in old_evals(model):
            for item in entry.value.items if isinstance(entry.value, Sequence) else ():
                key = item.key("expr") if isinstance(item, Mapping) else None
                if key:
                    yield self._expr(key.span)

    def word(self, model: Model, problem: Problem) -> Finding:
        if problem.object == "step":
            return self._expr(problem.span, help=f"write {ADMIT_SHAPE}")
        return self._expr(problem.span, fix=rename_to_when(model, problem.span))

    def _expr(self, span: Span, help: str = "write `when`", fix: Fix | None = None) -> Finding:
        return self.finding(
            span, "`expr` belongs to the older dialect: the word for a condition is `when`", help, fix=fix
        )
