from noetlc.analysis.names import unknown_applications
from noetlc.rules.rule import Edit, Findings, Fix, Model, Rule, Severity
from noetlvm.language.filters import REJECTED_FILTERS, TESTS
from noetlvm.language.methods import METHODS


class UnknownFilter(Rule):
    severity = Severity.ERROR
    summary = "A template uses a filter that does not exist or is not supported."
    why = (
        "The task fails with a template error. Filters that use random numbers or Python's internals are not "
        "supported, because a replay must give the same result."
    )
    example = """
      - step: start
        tool:
          - report:
              kind: http
              method: POST
              url: "https://example.com/report"
    -         json: { lines: "{{ workload.items | len }}" }
    +         json: { lines: "{{ workload.items | length }}" }
    """
    covers = ("S12",)
    on_damaged = True

    def check(self, model: Model) -> Findings:
        for name, place, meant in unknown_applications(model, "filter", REJECTED_FILTERS):
            fix = Fix(f"use `{meant}`", (Edit(place, meant),), safe=False) if meant else None
            yield self.finding(place, f"there is no filter `{name}`", _help(name, meant), fix=fix)


def _help(name: str, meant: str) -> str:
    if name in REJECTED_FILTERS:
        return REJECTED_FILTERS[name]
    if meant:
        return f"did you mean `{meant}`?"
    if name in METHODS:
        return f"it is a method: write `x.{name}(…)`"
    if name in TESTS:
        return f"it is a test: write `x is {name}`"
    return "use one of Jinja2's own filters that work on data alone, or compute the value in a `python` task"
