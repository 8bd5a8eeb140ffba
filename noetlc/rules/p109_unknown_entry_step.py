from noetlc.rules.rule import Findings, Model, Rule, Severity
from noetlvm.nearest import did_you_mean


class UnknownEntryStep(Rule):
    severity = Severity.ERROR
    summary = "`executor.spec.entry_step` or `final_step` names a step that does not exist."
    why = "The first or the last token would have no target, and the request would be refused."
    example = """
      apiVersion: noetl.io/v2
      kind: Playbook
      metadata: {name: load, path: demo/load}
      executor:
    -   spec: {entry_step: begin}
    +   spec: {entry_step: start}
      workflow:
        - step: start
          tool: {kind: noop}
    """
    covers = ("S4",)

    def check(self, model: Model) -> Findings:
        spec = model.playbook.executor_spec
        for key, name in (("entry_step", spec.entry_step), ("final_step", spec.final_step)) if spec else ():
            if name and name.text not in model.steps_by_name:
                yield self.finding(
                    name.span,
                    f"`{key}` names `{name.text}`, but there is no such step",
                    did_you_mean(name.text, model.steps_by_name) or "name one of the steps of the workflow",
                )
