from noetlc.analysis.guards import covered, decide
from noetlc.rules.rule import Findings, Model, Related, Rule, Severity
from noetlc.syntax import ast
from noetlc.syntax.span import Span

_CONSTANT = {
    ("while", False): ("this `while` never runs: its condition never holds", "remove it, or correct its condition"),
    ("until", True): ("this `until` runs once: its condition always holds", "write its tasks without `until`"),
    ("until", False): (
        "this `until` never ends by itself: its condition never holds",
        "test a value that a task inside changes",
    ),
}
"""By the block's word and what its condition always gives: message and help."""


class DeadSugar(Rule):
    severity = Severity.WARNING
    summary = "A `choose`, `while` or `until` has a part that can never run, or decides nothing."
    why = "Its tasks never run, or run every time where a condition was intended."
    example = """
      - step: report
        tool:
          - choose:
    -         - when: true
    -           then:
    -             - mail: {kind: http, method: POST, url: "https://example.org/mail"}
              - when: "{{ args.quiet }}"
                then:
                  - note: {kind: noop}
    +         - else:
    +             then:
    +               - mail: {kind: http, method: POST, url: "https://example.org/mail"}
    """
    covers = ("S39", "step spec §14")

    def check(self, model: Model) -> Findings:
        for flow in model.flows.values():
            for point in flow.points:
                if isinstance(point.entry, ast.Choose):
                    yield from self._check_choose(model, point.entry)
                elif isinstance(point.entry, ast.Repeat):
                    yield from self._check_repeat(point.entry)

    def _check_choose(self, model: Model, choose: ast.Choose) -> Findings:
        if not choose.choose and not model.is_reported(choose.span, ("branches", "")):
            message = "this `choose` has no branches"
            yield self.finding(choose.key_span("choose"), message, "add `- when: …` with `then`, or remove it")
        guarded = [branch for branch in choose.choose if branch.when is not None or branch.else_ is not None]
        for branch, earlier in covered((branch, branch.when) for branch in guarded):
            if earlier.else_ is None:
                yield self.finding(
                    _place(branch),
                    "this branch never runs, because an earlier one always matches first",
                    "put the special case before the general one, or remove it",
                    related=[Related(_place(earlier), "this one comes first")],
                )

    def _check_repeat(self, repeat: ast.Repeat) -> Findings:
        always = decide(repeat.when) if repeat.when else None
        reported = _CONSTANT.get((repeat.word, always)) if always is not None else None
        if reported and repeat.when:
            yield self.finding(repeat.when.span, *reported)


def _place(branch: ast.Branch) -> Span:
    return branch.when.span if branch.when else branch.key_span("else")
