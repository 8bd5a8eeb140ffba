from collections.abc import Iterator
from itertools import islice

from noetlc.rules.rule import Findings, Model, Rule, Severity, path_text
from noetlc.syntax import ast
from noetlc.syntax.nodes import Scalar


class WorkbookCycle(Rule):
    severity = Severity.ERROR
    summary = "A workbook task contains itself, directly or through others."
    why = "Calls of workbook tasks are replaced by the tasks before anything runs. A cycle would never end."
    example = """
      apiVersion: noetl.io/v2
      kind: Playbook
      metadata: {name: load, path: demo/load}
      workflow:
        - step: start
          tool:
            - go: {kind: workbook, task: save}
      workbook:
        tasks:
          save:
            - notify: {kind: workbook, task: notify}
    -     notify:
    -       - log: {kind: workbook, task: save}
    +     notify: {kind: noop}
    """
    covers = ("S42",)

    def check(self, model: Model) -> Findings:
        calls = {task.name.text: list(_calls(task.entries)) for task in model.playbook.shared_tasks}
        done: set[str] = set()
        for name in calls:
            yield from self._follow(name, calls, done)

    def _follow(self, start: str, calls: dict[str, list[Scalar]], done: set[str]) -> Findings:
        """Walk the calls depth first; a call to a name on the current path closes a cycle."""
        path: dict[str, int] = {}
        stack: list[tuple[str, Iterator[Scalar]]] = []

        def enter(name: str) -> None:
            done.add(name)
            path[name] = len(path)
            stack.append((name, iter(calls[name])))

        if start not in done:
            enter(start)
        while stack:
            call = next(stack[-1][1], None)
            if call is None:
                del path[stack.pop()[0]]
            elif call.text in path:
                cycle = path_text([*islice(path, path[call.text], None), call.text])
                yield self.finding(
                    call.span, f"the workbook task contains itself: {cycle}", "remove one of the calls in the cycle"
                )
            elif call.text in calls and call.text not in done:
                enter(call.text)


def _calls(entries: tuple[ast.PipelineEntry, ...]) -> Iterator[Scalar]:
    for task in ast.nested_tasks(entries):
        called = task.get_extra("task") if task.tool_kind == "workbook" else None
        if isinstance(called, Scalar):
            yield called
