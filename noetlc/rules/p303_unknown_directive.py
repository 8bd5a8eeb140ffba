from noetlc.rules.rule import Edit, Finding, Findings, Fix, Model, Rule, Severity
from noetlc.syntax.span import Problem

_MEANT = {
    "abort": "fail",
    "again": "retry",
    "end": "break",
    "error": "fail",
    "exit": "break",
    "go": "jump",
    "goto": "jump",
    "ignore": "continue",
    "next": "continue",
    "none": "continue",
    "pass": "continue",
    "proceed": "continue",
    "raise": "fail",
    "repeat": "retry",
    "restart": "retry",
    "return": "break",
    "stop": "break",
}
"""Common synonyms, and the directive."""


class UnknownDirective(Rule):
    severity = Severity.ERROR
    summary = "`do` is not one of the directives."
    why = (
        "There are six directives: `continue`, `retry`, `jump`, `skip`, `break` and `fail`. The runtime refuses any "
        "other word."
    )
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
    -                 then: {do: abort}
    +                 then: {do: fail}
                    - else:
                        then: {do: continue}
    """
    covers = ("formal §6.2", "brief §5.2", "brief §6", "step spec §5.4", "S17")
    claims = frozenset({("then", "do")})

    def check(self, model: Model) -> Findings:
        for problem in self.claimed(model):
            yield self._word(problem, model.source.text[problem.span.start : problem.span.end])

    def _word(self, problem: Problem, written: str) -> Finding:
        word = written.strip("'\"")
        meant = problem.suggestion or _MEANT.get(word.lower(), "")
        if not meant:
            return self.finding(problem.span, problem.message, problem.help)
        fix = Fix(f"write `{meant}`", (Edit(problem.span, meant),), safe=False)
        return self.finding(problem.span, f"there is no directive `{word}`", f"did you mean `{meant}`?", fix=fix)
