from noetlc.analysis.inputs import rewrite
from noetlc.analysis.model import TaskView, thens
from noetlc.rules.rule import Finding, Findings, Model, Rule, Severity, first_of
from noetlc.syntax.nodes import Scalar


class UnknownJumpTarget(Rule):
    severity = Severity.ERROR
    summary = "A `jump` names a task that is not in its pipeline."
    why = "A jump stays inside its step. If the step has no such label, the pipeline cannot continue."
    example = """
      - step: pages
        loop: {in: [1, 2], iterator: page}
        tool:
          - fetch: {kind: noop}
          - again:
              kind: noop
              spec:
                policy:
                  rules:
                    - when: "{{ iter.index == 0 }}"
    -                 then: {do: jump, to: fetch_page}
    +                 then: {do: jump, to: fetch}
                    - else:
                        then: {do: break}
    """
    covers = ("brief §6", "brief §12")

    def check(self, model: Model) -> Findings:
        for owner, views in model.tasks_by_owner.items():
            labels = model.labels_by_owner[owner]
            jumps = ((view, then.to) for view in views for _, then in thens(view.task) if then.to)
            unknown = [(view, target) for view, target in jumps if target.text not in labels]
            listed = first_of(labels) if unknown else ""
            for view, target in unknown:
                yield self._unknown(model, view, target, labels, f"the labels of `{owner.name}` are {listed}")

    def _unknown(self, model: Model, view: TaskView, target: Scalar, labels: frozenset[str], others: str) -> Finding:
        meant = model.suggestions.nearest(target.text, labels)
        help = f"did you mean `{meant}`?" if meant else others
        if target.text in model.steps_by_name:
            help = "a jump cannot leave its step: route to another step with an arc of `next`"
        message = f"`{view.label}` jumps to `{target.text}`, but no task has that label"
        return self.finding(target.span, message, help, fix=rewrite(target, meant))
