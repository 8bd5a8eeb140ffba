from noetlc.analysis.model import Site
from noetlc.rules.rule import Findings, Model, Severity, TemplateProblemRule
from noetlc.syntax import template_ast as t
from noetlc.syntax.span import Span
from noetlvm.language.scopes import TemplatePosition

_HELP = {
    "when": "write one expression: `{{ a and b }}`, or `{{ a if condition else b }}`",
    "delay": "write one expression: `{{ 10 if condition else 1 }}`",
    "in": "write one expression that gives a list, such as `{{ workload.items | selectattr('active') | list }}`",
}


class StatementNotAllowed(TemplateProblemRule):
    severity = Severity.ERROR
    summary = "A template uses an unsupported statement, or a statement where one value is needed."
    why = (
        "`{% if %}`, `{% for %}` and `{% set %}` produce text. A guard, a delay or the collection of a loop must not "
        "be text. Macros and includes would make a playbook depend on other files."
    )
    example = """
      - step: start
        next:
          arcs:
            - step: notify
    -         when: "{% if ctx.failed > 3 %}yes{% else %}{% endif %}"
    +         when: "{{ ctx.failed > 3 }}"
      - step: notify
        tool: { kind: http, url: "https://example.com/notify" }
    """
    covers = ("S8", "S9", "S12")
    kinds = frozenset({"statement"})

    def check(self, model: Model) -> Findings:
        yield from super().check(model)
        for reading in model.readings:
            help = _HELP.get(reading.site.role, "") if _needs_one_value(reading.site) else ""
            statement = next((part for part in reading.template.parts if isinstance(part, _STATEMENTS)), None)
            if help and statement:
                yield self.finding(
                    model.place(reading.site, _opening(reading.template.text, statement)),
                    f"`{reading.site.role}` needs one value, and `{{% … %}}` makes text",
                    help,
                )
            for part in t.walk(reading.template):
                if isinstance(part, t.For) and part.recursive:
                    yield self.finding(
                        model.place(reading.site, _opening(reading.template.text, part)),
                        "templates have no recursive `for`",
                        "walk the data in a `python` task, or write one `for` inside another",
                    )


_STATEMENTS = (t.If, t.For, t.Set, t.SetBlock)
_NUMBERS = (TemplatePosition.TASK_DELAY, TemplatePosition.LOOP_SPEC, TemplatePosition.SUGAR_MAX)


def _needs_one_value(site: Site) -> bool:
    if site.position is TemplatePosition.LOOP_IN:
        return any(loop.in_ is site.scalar for loop in site.owner.loops) if site.owner else False
    return site.is_guard or site.position in _NUMBERS


def _opening(text: str, statement: t.Part) -> Span:
    end = text.find("%}", statement.span.start)
    return Span(statement.span.start, end + 2 if end >= 0 else statement.span.end)
