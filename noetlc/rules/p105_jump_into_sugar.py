from noetlc.analysis.model import thens
from noetlc.rules.rule import Findings, Model, Related, Rule, Severity


class JumpIntoSugar(Rule):
    severity = Severity.ERROR
    summary = "A `jump` enters a `choose`, `while` or `until` from outside."
    why = "The jump would bypass the condition and the round counter of the block."
    example = """
      - step: poll
        tool:
    -     - check:
    -         kind: noop
    -         spec:
    -           policy:
    -             rules:
    -               - else:
    -                   then: {do: jump, to: poll}
    +     - check: {kind: noop}
          - while:
              when: "{{ _prev is none }}"
              do:
                - poll: {kind: noop}
    """
    covers = ("S41",)

    def check(self, model: Model) -> Findings:
        for views in model.tasks_by_owner.values():
            by_label = {view.label: view for view in reversed(views)}
            for view in views:
                for _, then in thens(view.task):
                    target = by_label.get(then.to.text) if then.to else None
                    if then.to and target and target.blocks != view.blocks[: len(target.blocks)]:
                        yield self.finding(
                            then.to.span,
                            f"`{then.to.text}` is inside a block that `{view.label}` is not in",
                            "jump to a task before the block, and let its condition decide",
                            related=[Related(target.name_span, "the target is here")],
                        )
