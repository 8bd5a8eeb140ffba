from noetlc.rules.rule import Findings, Model, Related, Rule, Severity


class DuplicateStep(Rule):
    severity = Severity.ERROR
    summary = "Two steps have the same name."
    why = (
        "An arc names its target. If two steps have the same name, one of them gets every token and the other never "
        "runs."
    )
    example = """
      - step: load
        tool: {kind: noop}
        next: {arcs: [{step: check, when: "{{ event.name == 'step.done' }}"}]}
      - step: check
        tool: {kind: noop}
    - - step: check
    -   tool: {kind: noop}
    """
    covers = ("formal §13",)
    on_damaged = True

    def check(self, model: Model) -> Findings:
        for step in model.steps:
            if step.step is None or model.steps_by_name[step.step.text] is step:
                continue
            first = model.steps_by_name[step.step.text].step
            yield self.finding(
                step.step.span,
                f"there is already a step named `{step.step.text}`",
                "rename one of the two, and the arcs that lead to it",
                related=[Related(first.span, "the first one is here")] if first else (),
            )
