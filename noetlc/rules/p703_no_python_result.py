import ast

from noetlc.analysis.python_code import Function, PythonCode, own_nodes, python_codes
from noetlc.rules.rule import Findings, Model, Rule, Severity


class NoPythonResult(Rule):
    severity = Severity.WARNING
    summary = "Python code gives no result: it neither defines `main`, nor returns, nor assigns `result`."
    why = "The code runs and has its effects, and the result of the task is null. A misspelt `main` is never called."
    example = """
      - step: start
        tool:
          kind: python
          args: { n: 2 }
          code: |
    -       def mian(n):
    +       def main(n):
                return n * 2
    """
    covers = ("S88",)

    def check(self, model: Model) -> Findings:
        for code in python_codes(model):
            if code.tree is None or code.is_dynamic or _gives_result(code, code.tree):
                continue
            functions = {node.name: node for node in code.tree.body if isinstance(node, Function)}
            meant = model.suggestions.nearest("main", sorted(functions))
            if meant:
                function = functions[meant]
                place = code.span(function.lineno, function.col_offset + _name_column(function), len(meant))
                yield self.finding(place, f"nothing calls `{meant}`, and the result is null", "did you mean `main`?")
            else:
                help = "define `main`, `return` a value, or assign `result`; write `result = None` if none is wanted"
                yield self.finding(code.span(1, 0), "the code gives no result", help)


def _gives_result(code: PythonCode, tree: ast.Module) -> bool:
    if code.main is not None or code.returns_at_top_level:
        return True
    for node in own_nodes(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                names = {node.name}
            case ast.Name(ctx=ast.Store()):
                names = {node.id}
            case ast.Import() | ast.ImportFrom():
                names = {alias.asname or alias.name for alias in node.names}
            case _:
                continue
        if names & {"main", "result"}:
            return True
    return any(isinstance(node, ast.Global) and {"main", "result"} & {*node.names} for node in code.nodes)


def _name_column(function: Function) -> int:
    return len("async def " if isinstance(function, ast.AsyncFunctionDef) else "def ")
