from noetlc.analysis.model import TaskView
from noetlc.rules.rule import Finding, Findings, Model, Related, Rule, Severity


class DuplicateLabel(Rule):
    severity = Severity.ERROR
    summary = "Two tasks of one pipeline have the same label."
    why = (
        "Jumps and events refer to tasks by label. If two tasks have the same label, it is undefined which one is "
        "meant."
    )
    example = """
      - step: sync
        tool:
    -     - save: {kind: noop}
    -     - save: {kind: noop}
    +     - save_orders: {kind: noop}
    +     - save_items: {kind: noop}
    """
    covers = ("brief §12", "S5")
    on_damaged = True

    def check(self, model: Model) -> Findings:
        for views in model.tasks_by_owner.values():
            first: dict[str, TaskView] = {}
            for view in views:
                other = first.setdefault(view.label, view)
                if other is not view:
                    yield self._duplicate(view, other)

    def _duplicate(self, view: TaskView, other: TaskView) -> Finding:
        generated = "" if other.task.label else " (its position gives it that label)"
        return self.finding(
            view.name_span,
            f"the label `{view.label}` is taken",
            "give each task of the pipeline a different label",
            related=[Related(other.name_span, f"the other task is here{generated}")],
        )
