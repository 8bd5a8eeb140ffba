from noetlc.rules.rule import Findings, Model, Rule, Severity, first_of, migration_fix
from noetlc.syntax.nodes import Scalar


class UnknownWorkbookTask(Rule):
    severity = Severity.ERROR
    summary = "A call names a workbook task that `workbook.tasks` does not define."
    why = "The compiler replaces the call with the tasks of that name, and there are none."
    example = """
      apiVersion: noetl.io/v2
      kind: Playbook
      metadata: {name: load, path: demo/load}
      workflow:
        - step: start
          tool:
    -       - save: {kind: workbook, task: sav}
    +       - save: {kind: workbook, task: save}
      workbook:
        tasks:
          save: {kind: noop}
    """
    covers = ("S42",)

    claims = frozenset({("playbook", "workbook")})

    def check(self, model: Model) -> Findings:
        yield from self._shape(model)
        if model.playbook.workbook is None and model.is_reported(model.playbook.span, ("playbook", "workbook")):
            return
        names = {task.name.text for task in model.playbook.shared_tasks}
        known = first_of(names) or "no tasks"
        for view in model.tasks:
            task = view.task.get_extra("task") if view.kind == "workbook" else None
            if isinstance(task, Scalar) and task.text not in names:
                if task.is_template:
                    message = "the name of the workbook task must be a literal, because it is resolved at compile time"
                    yield self.finding(task.span, message, f"write its name: the workbook has {known}")
                    continue
                yield self.finding(
                    task.span,
                    f"the workbook has no task `{task.text}`",
                    model.suggestions.did_you_mean(task.text, names) or f"the workbook has {known}",
                )

    def _shape(self, model: Model) -> Findings:
        for problem in self.claimed(model):
            help = "write the tasks by name: `workbook: {tasks: {save: {kind: …}}}`"
            yield self.finding(problem.span, problem.message, help, fix=migration_fix(model))
