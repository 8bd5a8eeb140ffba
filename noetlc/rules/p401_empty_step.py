from noetlc.rules.rule import Findings, Model, Rule, Severity
from noetlc.syntax import ast
from noetlc.syntax.span import ProblemKind, holds_any
from noetlc.syntax.tree import structs


class EmptyStep(Rule):
    severity = Severity.WARNING
    summary = "A step has neither `tool` nor `next`, or a list of it is empty."
    why = (
        "A token that reaches a step without both ends there. A loop without tasks ends with no iterations, and an "
        "empty list of tasks, rules or arcs does nothing. Often something was forgotten. Empty `arcs` are a note."
    )
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
    covers = ("formal §2.2", "brief §12", "S3", "S90")

    def check(self, model: Model) -> Findings:
        faults = sorted(
            problem.span.start
            for problem in model.problems
            if problem.object == "step" and (problem.kind is ProblemKind.UNKNOWN_KEY or problem.key in ("tool", "next"))
        )
        yield from self._empty_lists(model)
        for step in model.steps:
            if step.tool == () and step.next and not holds_any(step.span, faults):
                yield self.finding(step.key_span("tool"), "`tool` has no tasks", "write a task, or leave `tool` out")
            elif step.loop and not step.tool and not holds_any(step.span, faults):
                message = f"the loop of `{step.name}` has no tasks: it ends with no iterations"
                yield self.finding(step.key_span("loop"), message, "give it tasks under `tool:`, or leave the loop out")
            if step.tool or step.next or holds_any(step.span, faults):
                continue
            yield self.finding(
                step.step.span if step.step else step.key_span(""),
                f"step `{step.name}` has neither `tool` nor `next`: it does nothing",
                "give it tasks under `tool:`, arcs under `next:`, or `tool: { kind: noop }` if it only marks the end",
            )

    def _empty_lists(self, model: Model) -> Findings:
        for struct in structs(model.playbook):
            if isinstance(struct, ast.Admit) and struct.rules == () and not model.problems:
                message = "`rules` is empty: no token is admitted"
                yield self.finding(struct.key_span("rules"), message, "write a rule, or remove `admit`")
            if isinstance(struct, ast.Router) and struct.arcs == () and not model.problems:
                help = "write an arc, or leave `next` out"
                yield self.finding(struct.key_span("arcs"), "`arcs` is empty", help, severity=Severity.NOTE)
