from noetlc.rules.rule import Edit, Findings, Fix, Model, Severity, TemplateProblemRule
from noetlc.syntax.span import Span
from noetlc.syntax.template_mistakes import go_stretch
from noetlvm.record import changed


class ExpressionSyntax(TemplateProblemRule):
    severity = Severity.ERROR
    summary = "A template has a syntax error."
    why = (
        "The execution would start and fail at the first task that needs the value. Operators of other languages "
        "(`&&`, `===`, `? :`) and unclosed marks are the usual cause."
    )
    example = """
      - step: start
        tool:
          - fetch:
              kind: http
              url: "https://example.com/items"
              spec:
                policy:
                  rules:
    -               - when: "{{ outcome.status == 'error' && outcome.http.status == 503 }}"
    +               - when: "{{ outcome.status == 'error' and outcome.http.status == 503 }}"
                      then: { do: retry, attempts: 5, delay: 2 }
                    - else:
                        then: { do: continue }
    """
    covers = ("formal §3.1", "S12")
    kinds = frozenset({"syntax", "unclosed", "block", "string"})

    def check(self, model: Model) -> Findings:
        of_go = {
            model.place(site, template.problems[0].span): model.place(site, stretch)
            for site, template in model.template_sites
            if template.problems and (stretch := go_stretch(template.text))
        }
        for finding in super().check(model):
            stretch = of_go.get(finding.span)
            yield changed(finding, fix=_as_text(stretch)) if stretch else finding


def _as_text(stretch: Span) -> Fix:
    marks = ((stretch.start, "{% raw %}"), (stretch.end, "{% endraw %}"))
    edits = tuple(Edit(Span(place, place), mark) for place, mark in marks)
    return Fix("mark it as text with `{% raw %}`", edits, safe=False)
