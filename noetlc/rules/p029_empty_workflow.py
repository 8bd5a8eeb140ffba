from noetlc.rules.rule import Findings, Model, Rule, Severity


class EmptyWorkflow(Rule):
    severity = Severity.ERROR
    summary = "`workflow` has no steps."
    why = "An execution starts with a token in its first step, so a workflow needs at least one step."
    example = """
      apiVersion: noetl.io/v2
      kind: Playbook
      metadata: {name: load, path: demo/load}
    - workflow: []
    + workflow:
    +   - step: start
    +     tool: {kind: noop}
    """
    covers = ("formal §2.1", "S4")

    def check(self, model: Model) -> Findings:
        if model.playbook.workflow == () and not any(problem.object == "workflow" for problem in model.problems):
            yield self.finding(
                model.playbook.key_span("workflow"), "the workflow has no steps", "add a step: `- step: start`"
            )
