from noetlc.analysis.inputs import typed_tasks
from noetlc.rules.rule import Findings, Model, Rule, Severity
from noetlc.syntax.nodes import Scalar
from noetlc.syntax.scalar_offsets import span_in_file
from noetlc.syntax.span import Span


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
        for view, kind in typed_tasks(model):
            for entry in view.task.extra:
                declared, value = kind.input(entry.key.text), entry.value
                is_source = declared is not None and declared.language == "python" and isinstance(value, Scalar)
                if is_source and isinstance(value, Scalar) and isinstance(value.value, str) and not value.is_template:
                    yield from self._check_source(model, value)

    def _check_source(self, model: Model, source: Scalar) -> Findings:
        problem = _syntax_error(source.text)
        if problem is None:
            return
        line, column, message = problem
        lines = source.text.splitlines(keepends=True)
        start = sum(map(len, lines[: line - 1])) + min(column - 1, len(lines[line - 1]) if line <= len(lines) else 0)
        place = span_in_file(model.source.text, source, Span(start, start + 1))
        yield self.finding(place, f"line {line} of the source is not Python: {message}", "correct the source")


def _syntax_error(text: str) -> tuple[int, int, str] | None:
    """Return line, column and message of the first syntax error; `return` outside a function is none here."""
    import ast
    import warnings

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except SyntaxError as error:
        return max(error.lineno or 1, 1), max(error.offset or 1, 1), error.msg
    except (ValueError, RecursionError, MemoryError) as error:
        return 1, 1, str(error) or "the source nests too deep"
    return None
