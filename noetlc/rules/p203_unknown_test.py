from noetlc.analysis.names import unknown_applications
from noetlc.rules.rule import Edit, Findings, Fix, Model, Rule, Severity
from noetlvm.language.filters import FILTERS, REJECTED_TESTS
from noetlvm.language.methods import METHODS


class UnknownTest(Rule):
    severity = Severity.ERROR
    summary = "A template uses a test (`is …`) that does not exist."
    why = "A guard with an unknown test cannot be evaluated, so the task or the router fails."
    example = """
      - step: start
        next:
          arcs:
            - step: notify
    -         when: "{{ ctx.failures is not empty }}"
    +         when: "{{ ctx.failures | length > 0 }}"
      - step: notify
        tool: { kind: http, url: "https://example.com/notify" }
    """
    covers = ("S12",)
    on_damaged = True

    def check(self, model: Model) -> Findings:
        for name, place, meant in unknown_applications(model, "test", REJECTED_TESTS):
            fix = Fix(f"use `{meant}`", (Edit(place, meant),), safe=False) if meant else None
            yield self.finding(place, f"there is no test `{name}`", _help(name, meant), fix=fix)


def _help(name: str, meant: str) -> str:
    if name in REJECTED_TESTS:
        return REJECTED_TESTS[name]
    if meant:
        return f"did you mean `is {meant}`?"
    if name in METHODS:
        return f"it is a method: write `x.{name}(…)`"
    if name in FILTERS:
        return f"it is a filter: write `x | {name}`"
    return "use one of Jinja2's own tests, or compare: `x == …`"
