from noetlc.analysis.names import Application, applications
from noetlc.rules.rule import Findings, Model, Rule, Severity


class WrongArguments(Rule):
    severity = Severity.ERROR
    summary = "A filter, test, function or method gets too many, too few or wrongly named arguments."
    why = "The task fails with a template error when the template is evaluated."
    example = """
      - step: start
        tool:
          - find:
              kind: http
              url: "https://example.com/search"
    -         params: { q: "{{ workload.title | replace(' ') }}" }
    +         params: { q: "{{ workload.title | replace(' ', '+') }}" }
    """
    covers = ("S12",)
    on_damaged = True

    def check(self, model: Model) -> Findings:
        for reading in model.readings:
            for use in applications(reading.names):
                signature = use.signature
                if signature is None:
                    continue
                reason = signature.problem_with_spread if use.is_open else signature.problem
                problem = reason(use.positional, use.keywords)
                if problem:
                    help = f"write it as {_shown(use, signature.parameters, signature.required)}: {signature.doc}"
                    yield self.finding(model.place(reading.site, use.span), problem, help)


def _shown(use: Application, parameters: tuple[str, ...], required: int) -> str:
    """Show how it is called, optional arguments in square brackets."""
    words = [name if number < required else f"[{name}]" for number, name in enumerate(parameters)]
    arguments = f"({', '.join(words)})" if words else ""
    if use.sort == "method":
        return f"`x.{use.name}{arguments or '()'}`"
    if use.sort == "function":
        return f"`{use.name}{arguments or '()'}`"
    return f"`x {'|' if use.sort == 'filter' else 'is'} {use.name}{arguments}`"
