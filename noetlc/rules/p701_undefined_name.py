import ast
import builtins
import sys
from collections.abc import Iterator

from noetlc.analysis.python_code import PythonCode, is_hole, python_codes
from noetlc.rules.rule import Edit, Findings, Fix, Model, Rule, Severity
from noetlc.syntax.span import Span


class UndefinedName(Rule):
    severity = Severity.ERROR
    summary = "Python code reads a name that nothing defines, or that is set only later."
    why = (
        "The code ends with a `NameError` there, perhaps after it has had effects. The names that are there are the "
        "arguments, the modules of `libs`, `input_data`, `context`, `idempotency_key` and Python's builtins."
    )
    example = """
      - step: start
        tool:
          kind: python
          args: { total: 3 }
          code: |
            def main(total):
    -           return totl * 2
    +           return total * 2
    """
    covers = ("S88",)

    def check(self, model: Model) -> Findings:
        for code in python_codes(model):
            if code.tree is None or code.names is None or code.is_dynamic:
                continue
            for name, line, column, is_local in _unbound(code):
                place = code.span(line, column, len(name))
                if is_local:
                    yield self.finding(place, f"`{name}` is read before it is set", "set it before this line")
                elif name in sys.stdlib_module_names:
                    yield self.finding(
                        place,
                        f"`{name}` is not imported",
                        f"write `import {name}` before it is used",
                        fix=_import(model, code, name),
                    )
                else:
                    near = model.suggestions.did_you_mean(name, sorted(_defined(code)))
                    help = near or "pass it in `args`, or define it in the code"
                    yield self.finding(place, f"no name `{name}` is defined here", help)


def _unbound(code: PythonCode) -> Iterator[tuple[str, int, int, bool]]:
    """Yield names that are read and not defined, with line, column, and whether the name is set later."""
    from pyflakes import messages

    for message in code.flakes:
        if isinstance(message, messages.UndefinedName | messages.UndefinedLocal):
            name = str(message.message_args[0])
            if not is_hole(name):
                yield name, message.lineno, message.col, isinstance(message, messages.UndefinedLocal)


def _defined(code: PythonCode) -> set[str]:
    """Return the names that a misspelt one may mean."""
    found = {*(code.names or ()), *dir(builtins)}
    for node in code.nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, ast.alias):
            found.add((node.asname or node.name).partition(".")[0])
    return found


def _import(model: Model, code: PythonCode, module: str) -> Fix | None:
    """Return the fix that imports a module before the first line, where the code stands on lines of its own."""
    if code.scalar.style != "|" or "from __future__" in code.text:
        return None
    start = code.span(1, 0).start
    text = model.source.text
    indentation = text[text.rfind("\n", 0, start) + 1 : start]
    if indentation.strip():
        return None
    edit = Edit(Span(start, start), f"import {module}\n{indentation}")
    return Fix(f"write `import {module}`", (edit,), safe=False)
