import ast
from collections.abc import Iterator

from noetlc.analysis.python_code import GIVEN, Function, PythonCode, python_codes
from noetlc.rules.rule import Findings, Model, Rule, Severity, first_of


class MainArguments(Rule):
    severity = Severity.ERROR
    summary = "`main` requires a parameter that no argument fills."
    why = (
        "`main` is called with the arguments that its signature names. Without one that it requires the task fails on "
        "every call, before any of its code runs."
    )
    example = """
      - step: start
        tool:
          kind: python
          args: { left: 1, right: 2 }
          code: |
    -       def main(left, rigth):
    -           return left + rigth
    +       def main(left, right):
    +           return left + right
    """
    covers = ("S88",)

    def check(self, model: Model) -> Findings:
        for code in python_codes(model):
            if code.main is None or code.args is None or code.returns_at_top_level:
                continue
            for parameter, is_named in _required(code.main):
                name = parameter.arg
                if not is_named:
                    yield self.finding(
                        code.span_of(parameter),
                        f"`main` requires `{name}` by position, and arguments are passed by name",
                        "remove the `/` from the signature",
                    )
                elif name not in code.args | GIVEN:
                    yield self.finding(
                        code.span_of(parameter),
                        f"`main` requires `{name}`, and `args` has no value for it",
                        self._help(model, code, name),
                    )

    def _help(self, model: Model, code: PythonCode, name: str) -> str:
        near = model.suggestions.did_you_mean(name, sorted(code.args or ()))
        listed = f"`args` has {first_of(code.args)}; " if code.args else ""
        return near or f"{listed}add `{name}` to `args`, or give the parameter a default"


def _required(main: Function) -> Iterator[tuple[ast.arg, bool]]:
    """Yield the parameters without a default, each with whether it can be passed by name."""
    declared = main.args
    positional = [*declared.posonlyargs, *declared.args]
    for parameter in positional[: len(positional) - len(declared.defaults)]:
        yield parameter, parameter not in declared.posonlyargs
    for parameter, default in zip(declared.kwonlyargs, declared.kw_defaults, strict=True):
        if default is None:
            yield parameter, True
