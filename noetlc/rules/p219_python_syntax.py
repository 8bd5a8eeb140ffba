from noetlc.analysis.python_code import python_codes
from noetlc.rules.rule import Findings, Model, Rule, Severity


class PythonSyntax(Rule):
    severity = Severity.ERROR
    summary = "The source of a `python` task has a syntax error."
    why = (
        "The task would fail on every call, after earlier steps have done their work. A `return` at top level is "
        "allowed: the source is then the body of a function."
    )
    example = """
      - step: count
        tool:
          kind: python
          code: |
            total = 0
    -       for item in range(3)
    +       for item in range(3):
                total += item
            result = total
    """
    covers = ("S19",)
    on_damaged = True

    def check(self, model: Model) -> Findings:
        for code in python_codes(model):
            error = code.parsed
            if isinstance(error, SyntaxError):
                line = max(error.lineno or 1, 1)
                # Columns of syntax errors count from 1, and characters.
                column = len(code.text.split("\n")[line - 1][: max(error.offset or 1, 1) - 1].encode())
                message = f"line {line} of the source is not Python: {error.msg}"
                yield self.finding(code.span(line, column), message, "correct the source")
