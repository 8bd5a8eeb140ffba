from noetlc.analysis.inputs import inputs, is_unknown, rename, typed_tasks
from noetlc.analysis.model import TaskView
from noetlc.rules.rule import Finding, Findings, Model, Rule, Severity
from noetlc.syntax.nodes import Node, Scalar, Sequence
from noetlc.syntax.playbook_parser import one_of
from noetlvm.language.tool_kinds import Choice, Input, ToolKind


class MissingInput(Rule):
    severity = Severity.ERROR
    stops_compiler = False
    summary = "A task lacks a required input, or has two inputs that exclude each other."
    why = "The tool would fail on every call, and a retry would not help."
    example = """
      - step: fetch
        tool:
    -     - get: {kind: http, method: GET}
    +     - get: {kind: http, method: GET, url: "https://example.com"}
    """
    covers = ("formal §2.4", "S6")

    def check(self, model: Model) -> Findings:
        for view, kind in typed_tasks(model):
            given = {entry.key.text for entry in view.task.extra}
            is_reported = any(is_unknown(kind, entry.key.text) for entry in inputs(view))  # the unknown one is an error
            for item in kind.inputs:
                if item.required and item.name not in given and not is_reported:
                    yield self._required(model, view, kind, item)
            for entry in view.task.extra:
                declared = kind.input(entry.key.text)
                if declared is not None and declared.language == "sql" and _is_blank(entry.value):
                    message = f"`{entry.key.text}` is empty: there is nothing to run"
                    yield self.finding(entry.key.span, message, "write the statement, or remove the task")
            for choice in kind.choices:
                yield from self._choice(view, kind, choice, given)

    def _required(self, model: Model, view: TaskView, kind: ToolKind, item: Input) -> Finding:
        message, help = f"`{kind.name}` needs `{item.name}`", f"add `{item.name}:` ({item.doc})"
        if kind.name == "workbook" and "name" in view.task.keys:
            help = f"write `task: {view.label}`: `name` is the label of this task"
            return self.finding(
                view.name_span, message, help, fix=rename(model, view.task.key_span("name"), "task", safe=False)
            )
        return self._finding(view, message, help)

    def _choice(self, view: TaskView, kind: ToolKind, choice: Choice, given: set[str]) -> Findings:
        found = [name for name in choice.names if name in given]
        names = one_of(f"`{name}`" for name in choice.names)
        if len(found) > 1 and choice.rule != "at least one":
            both = " and ".join(f"`{name}`" for name in found)
            yield self._finding(view, f"`{kind.name}` takes {choice.rule} of {names}, not {both}", "remove one of them")
        elif not found and choice.rule == "exactly one":
            yield self._finding(view, f"`{kind.name}` needs {names}", "add one of them")
        elif not found and choice.rule == "at least one":
            message = f"`{kind.name}` has neither of {names}; only the environment of the worker can provide them"
            yield self._finding(view, message, "add one of them", Severity.WARNING)

    def _finding(self, view: TaskView, message: str, help: str, severity: Severity | None = None) -> Finding:
        kind = view.task.kind
        return self.finding(kind.span if kind else view.name_span, message, help, severity=severity)


def _is_blank(value: Node) -> bool:
    """True for blank text, and a list of such texts."""
    if isinstance(value, Sequence):
        return all(map(_is_blank, value.items))
    return isinstance(value, Scalar) and isinstance(value.value, str) and not value.text.strip(" \t\r\n;")
