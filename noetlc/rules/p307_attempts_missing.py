from noetlc.analysis.flow import DEFAULT_ATTEMPTS
from noetlc.analysis.model import thens
from noetlc.rules.rule import Edit, Finding, Findings, Fix, Model, Rule, Severity
from noetlc.syntax import ast
from noetlc.syntax.nodes import Scalar
from noetlc.syntax.span import Span


class AttemptsMissing(Rule):
    severity = Severity.NOTE
    summary = "A `retry` has no `attempts`."
    why = "The default is three runs, including the first. Writing the number makes that visible."
    example = """
      - step: fetch
        tool:
          - get:
              kind: http
              url: https://example.org/items
              spec:
                policy:
                  rules:
                    - when: "{{ outcome.status == 'error' }}"
    -                 then: {do: retry}
    +                 then: {do: retry, attempts: 3}
                    - else:
                        then: {do: continue}
    """
    covers = ("S14",)

    def check(self, model: Model) -> Findings:
        for view in model.tasks:
            for _, then in thens(view.task):
                if then.do is None or then.do.text != "retry" or then.attempts is not None:
                    continue
                if not model.is_reported(then.span, ("then", "attempts")):
                    yield self._missing(model, then, then.do)

    def _missing(self, model: Model, then: ast.Then, do: Scalar) -> Finding:
        return self.finding(
            do.span,
            f"`retry` without `attempts`: the task runs at most {DEFAULT_ATTEMPTS} times, the first included",
            f"write the number: `attempts: {DEFAULT_ATTEMPTS}`",
            fix=self._fix(model, then, do),
        )

    @staticmethod
    def _fix(model: Model, then: ast.Then, do: Scalar) -> Fix | None:
        text, key = model.source.text, then.key_span("do")
        if not then.span.start <= key.start < then.span.end or "\n" in text[key.start : do.span.end]:
            return None  # merged in from elsewhere, or laid out in a way of its own
        added = f"attempts: {DEFAULT_ATTEMPTS}"
        if text[then.span.start] == "{":
            edit = Edit(Span(do.span.end, do.span.end), f", {added}")
        else:
            line_break = "\r\n" if "\r\n" in text else "\n"
            indent = " " * (model.source.position(key.start).column - 1)
            edit = Edit(Span(key.start, key.start), f"{added}{line_break}{indent}")
        return Fix(f"add `{added}`", (edit,), safe=True)
