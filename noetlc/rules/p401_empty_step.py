from noetlc.rules.rule import Findings, Model, Rule, Severity
from noetlc.syntax.span import ProblemKind, holds_any


class EmptyStep(Rule):
    severity = Severity.WARNING
    summary = "A step has neither `tool` nor `next`."
    why = "A token that reaches it ends there. Often the tasks were forgotten."
    example = """
      - step: start
        tool: {kind: noop}
        next:
          arcs:
            - step: finish
      - step: finish
        desc: All done
    +   tool: {kind: noop}
    """
    covers = ("formal §2.2", "brief §12", "S3")

    def check(self, model: Model) -> Findings:
        faults = sorted(
            problem.span.start
            for problem in model.problems
            if problem.object == "step" and (problem.kind is ProblemKind.UNKNOWN_KEY or problem.key in ("tool", "next"))
        )
        for step in model.steps:
            if step.tool or step.next or holds_any(step.span, faults):
                continue
            yield self.finding(
                step.step.span if step.step else step.key_span(""),
                f"step `{step.name}` has neither `tool` nor `next`: it does nothing",
                "give it tasks under `tool:`, arcs under `next:`, or `tool: { kind: noop }` if it only marks the end",
            )
