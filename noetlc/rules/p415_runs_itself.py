from noetlc.rules.rule import Findings, Model, Rule, Severity
from noetlc.syntax.nodes import Scalar


class RunsItself(Rule):
    severity = Severity.WARNING
    summary = "A `playbook` task runs the playbook that it belongs to."
    why = (
        "Each execution starts another one. Unless a guard ends the recursion, children start until the limit of one "
        "request is reached, and all of them fail."
    )
    example = """
      apiVersion: noetl.io/v2
      kind: Playbook
      metadata: {name: import, path: demo/import}
      workflow:
        - step: start
    -     tool: {kind: playbook, path: demo/import}
    +     tool: {kind: playbook, path: demo/import_page}
    """
    covers = ("S31",)

    def check(self, model: Model) -> Findings:
        own = model.playbook.metadata.path if model.playbook.metadata else None
        for view in model.tasks if own else ():
            path = view.task.get_extra("path") if view.kind == "playbook" else None
            if own and isinstance(path, Scalar) and path.text == own.text:
                yield self.finding(
                    path.span,
                    f"`{view.label}` runs `{own.text}`, the playbook that it belongs to",
                    "use a cycle of steps, or put the part that repeats into another playbook",
                )
