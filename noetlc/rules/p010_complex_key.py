import re

from noetlc.rules.rule import Edit, Fix, Model, ProblemRule, Severity
from noetlc.syntax.span import Problem, ProblemKind, Span

_UNQUOTED_TEMPLATE = re.compile(r"\{\{[^\"\n{}]*\}\}(?=[ \t]*(#.*)?$)", re.MULTILINE)


class ComplexKey(ProblemRule):
    severity = Severity.ERROR
    summary = "A list or a mapping is used as a key: usually a template without quotes."
    why = (
        "Without quotes, YAML reads `{{ x }}` as a mapping inside a mapping, not as a template. The tool then gets a "
        "mapping instead of the value."
    )
    example = """
      - step: fetch
        tool:
          kind: http
    -     url: {{ args.url }}
    +     url: "{{ args.url }}"
    """
    covers = ("formal §3.1", "S7")
    kind = ProblemKind.COMPLEX_KEY

    def fix_for(self, model: Model, problem: Problem) -> Fix | None:
        start = problem.span.start - 1
        template = _UNQUOTED_TEMPLATE.match(model.source.text, start) if start >= 0 else None
        if template is None:
            return None
        edits = (Edit(Span(start, start), '"'), Edit(Span(template.end(), template.end()), '"'))
        return Fix("quote the template", edits, safe=True)
