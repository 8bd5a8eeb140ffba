from noetlc.analysis.inputs import rewrite
from noetlc.rules.rule import Finding, Findings, Model, Rule, Severity
from noetlc.syntax.nodes import Scalar


class UnknownStep(Rule):
    severity = Severity.ERROR
    summary = "An arc leads to a step that does not exist."
    why = "The token that takes this arc has no target, so the branch ends there."
    example = """
      - step: fetch
        tool: {kind: noop}
    -   next: {arcs: [{step: stroe, when: "{{ event.name == 'step.done' }}"}]}
    +   next: {arcs: [{step: store, when: "{{ event.name == 'step.done' }}"}]}
      - step: store
        tool: {kind: noop}
    """
    covers = ("formal §13",)

    def check(self, model: Model) -> Findings:
        for step in model.steps:
            for arc in step.arcs:
                if arc.step and arc.step.text not in model.steps_by_name:
                    yield self._unknown(model, arc.step)

    def _unknown(self, model: Model, target: Scalar) -> Finding:
        meant = model.suggestions.nearest(target.text, model.steps_by_name)
        help = f"did you mean `{meant}`?" if meant else f"add `- step: {target.text}`, or remove the arc"
        return self.finding(target.span, f"there is no step named `{target.text}`", help, fix=rewrite(target, meant))
