from noetlc.analysis.routers import NEXT_MODE
from noetlc.rules.rule import Findings, Model, Rule, Severity, migration_fix
from noetlc.syntax.nodes import Scalar


class NextMode(Rule):
    severity = Severity.ERROR
    summary = "A step's `spec` has `next_mode`, as the older dialect did."
    why = "It is ignored there. A step that should fan out would fire only its first arc."
    example = """
      - step: start
    -   spec: {next_mode: inclusive}
        tool: {kind: noop}
        next:
    +     spec: {mode: inclusive}
          arcs: [{step: left}, {step: right}]
      - step: left
        tool: {kind: noop}
      - step: right
        tool: {kind: noop}
    """
    covers = ("brief §3.2", "formal §8.2")
    on_damaged = True

    def check(self, model: Model) -> Findings:
        for step in model.steps:
            for entry in step.spec.extra if step.spec else ():
                if entry.key.text == NEXT_MODE:
                    mode = entry.value.text if isinstance(entry.value, Scalar) and entry.value.text else "…"
                    yield self.finding(
                        entry.key.span,
                        "`next_mode` belongs to the older dialect: the router sets how many arcs fire",
                        f"write `next: {{spec: {{mode: {mode}}}, arcs: […]}}`",
                        fix=migration_fix(model),
                    )
