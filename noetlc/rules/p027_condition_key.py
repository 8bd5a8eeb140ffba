from noetlc.analysis.guards import OTHER_NAMES
from noetlc.analysis.inputs import rename_to_when
from noetlc.rules.p026_step_when import ADMIT_SHAPE
from noetlc.rules.rule import ClaimRule, Finding, Model, Severity
from noetlc.syntax.playbook_parser import TITLES
from noetlc.syntax.span import Problem

_OBJECTS = ("step", "arc", "rule", "admit_rule", "branch", "rounds")
_KEYS = frozenset(OTHER_NAMES) - {"expr"}
"""`expr` is the older dialect's word and has a rule of its own."""


class ConditionKey(ClaimRule):
    severity = Severity.ERROR
    summary = "A condition is written as `if`, `condition`, `unless` or the like."
    why = "The keyword for conditions is `when`. A condition under another key is never evaluated."
    example = """
      - step: start
        tool: {kind: noop}
        next:
          arcs:
            - step: finish
    -         if: "{{ event.name == 'step.done' }}"
    +         when: "{{ event.name == 'step.done' }}"
      - step: finish
        tool: {kind: noop}
    """
    covers = ("brief §1.1", "step spec §4")
    claims = frozenset((name, key) for name in _OBJECTS for key in _KEYS)

    def word(self, model: Model, problem: Problem) -> Finding:
        message = f"{TITLES[problem.object]} has no key `{problem.key}`: the word for a condition is `when`"
        if problem.object == "step":
            help = f"write {ADMIT_SHAPE}, or put a `when` on the arcs that lead here"
            return self.finding(problem.span, message, help)
        if problem.key == "unless":
            return self.finding(problem.span, message, 'write `when: "{{ not (…) }}"`')
        return self.finding(problem.span, message, "write `when`", fix=rename_to_when(model, problem.span))
