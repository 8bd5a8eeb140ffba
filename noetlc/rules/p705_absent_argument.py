import ast

from noetlc.analysis.python_code import PythonCode, python_codes
from noetlc.rules.rule import Finding, Findings, Model, Rule, Severity


class AbsentArgument(Rule):
    severity = Severity.WARNING
    summary = "Python code reads a key of `input_data` that `args` does not have."
    why = "`input_data` is the mapping of the arguments. `input_data['key']` raises `KeyError`, and `.get` gives null."
    example = """
      - step: start
        tool:
          kind: python
          args: { total: 3 }
          code: |
    -       result = input_data["totl"] * 2
    +       result = input_data["total"] * 2
    """
    covers = ("S88",)

    def check(self, model: Model) -> Findings:
        for code in python_codes(model):
            if "input_data" not in code.words or code.args is None or "input_data" in code.args or code.is_dynamic:
                continue
            if any(isinstance(n, ast.Name) and n.id == "input_data" and _is_set(n) for n in code.nodes):
                continue
            for node in code.nodes:
                match node:
                    case ast.Subscript(value=ast.Name(id="input_data"), slice=ast.Constant(value=str(key)) as place):
                        if _is_set(node):
                            return
                    case ast.Call(
                        func=ast.Attribute(value=ast.Name(id="input_data"), attr="get"),
                        args=[ast.Constant(value=str(key)) as place, *_],
                    ):
                        pass
                    case _:
                        continue
                if key not in code.args:
                    yield self._absent(model, code, key, place)

    def _absent(self, model: Model, code: PythonCode, key: str, place: ast.Constant) -> Finding:
        near = model.suggestions.did_you_mean(key, sorted(code.args or ()))
        return self.finding(code.span_of(place), f"`args` has no `{key}`", near or f"add `{key}` to `args`")


def _is_set(node: ast.Name | ast.Subscript) -> bool:
    return not isinstance(node.ctx, ast.Load)
