from noetlc.canon.errors import ExpansionError
from noetlc.canon.flow import flow_of
from noetlc.rules.rule import Findings, Model, Rule, Severity
from noetlc.syntax import ast


class FlowTask(Rule):
    severity = Severity.ERROR
    summary = "A task has `spec.flow` and does not have the form that `noetlc canon` gives to a block."
    why = (
        "`spec.flow` marks the tasks to which blocks expand in canonical form. They call no tool, so inputs, another "
        "kind or further rules would be ignored."
    )
    example = """
      - step: start
        tool:
    -     - turn: {kind: noop, spec: {flow: {again: true}}}
    +     - turn: {kind: noop, spec: {flow: {}}}
    """
    covers = ("S39", "S40")

    def check(self, model: Model) -> Findings:
        for view in model.tasks:
            if view.task.is_flow:
                yield from self._check(view.task)

    def _check(self, task: ast.Task) -> Findings:
        try:
            flow_of(task)
        except ExpansionError as refusal:
            yield self.finding(refusal.span, refusal.message, refusal.help)
