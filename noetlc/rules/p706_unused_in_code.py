import ast
from collections.abc import Iterator

from noetlc.analysis.python_code import PythonCode, python_codes
from noetlc.rules.rule import Findings, Model, Rule, Severity
from noetlc.syntax.nodes import Mapping


class UnusedInCode(Rule):
    severity = Severity.NOTE
    summary = "An argument of a `python` task is not read by its code, or an import is not used."
    why = "It costs time and misleads the reader; often the code reads another name than the one that is passed."
    example = """
      - step: start
        tool:
          kind: python
    -     args: { total: 3, rate: 2 }
    +     args: { total: 3 }
          code: |
            def main(total):
                return total * 2
    """
    covers = ("S88",)

    def check(self, model: Model) -> Findings:
        for code in python_codes(model):
            if code.tree is None or code.is_dynamic:
                continue
            for name, line, column in _unused_imports(code):
                yield self.finding(code.span(line, column), f"`{name}` is imported and not used", "remove the import")
            args = code.view.task.get_extra("args")
            if not isinstance(args, Mapping) or _takes_all(code):
                continue
            for entry in args.entries:
                name = entry.key.text
                if name not in code.words:
                    yield self.finding(entry.key.span, f"the code does not read the argument `{name}`", "remove it")


def _takes_all(code: PythonCode) -> bool:
    """Return whether the code can read arguments without naming them."""
    named = {node.arg for node in code.nodes if isinstance(node, ast.arg)} | code.words
    return bool(named & {"input_data", "context"}) or bool(code.main and code.main.args.kwarg)


def _unused_imports(code: PythonCode) -> Iterator[tuple[str, int, int]]:
    for message in code.flakes:
        if type(message).__name__ == "UnusedImport":  # importing the class would cost every start
            yield str(message.message_args[0]), message.lineno, message.col
