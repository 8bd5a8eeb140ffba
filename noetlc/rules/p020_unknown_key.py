"""P020: a key that its object does not have."""

from noetlc.rules.rule import OTHER_WORDS, Edit, Finding, Fix, Model, ProblemRule, Severity, migration_fix
from noetlc.syntax import ast
from noetlc.syntax.ast import yaml_key
from noetlc.syntax.span import Problem, ProblemKind
from noetlc.syntax.tree import attributes
from noetlvm.record import changed

_BELOW = {
    **{("loop", yaml_key(name)): f"loop.spec.policy.{yaml_key(name)}" for name in attributes(ast.LoopPolicy)},
    **{("loop", yaml_key(name)): f"loop.spec.{yaml_key(name)}" for name in attributes(ast.LoopSpec)},
    **{("step", yaml_key(name)): f"spec.policy.{yaml_key(name)}" for name in attributes(ast.StepPolicy)},
}
"""Keys that belong deeper into the same object, and their place there."""


class UnknownKey(ProblemRule):
    severity = Severity.ERROR
    stops_compiler = False
    summary = "An object has a key that the language does not know there."
    why = (
        "A misspelt key is a setting that never takes effect: the retry that never happens, the timeout that is not "
        "there. So the keys of every structural object are a closed set."
    )
    example = """
      - step: fetch
        tool:
          - get:
              kind: noop
              spec:
                policy:
                  rules:
                    - else:
    -                   then: {do: retry, attempts: 3, backof: linear}
    +                   then: {do: retry, attempts: 3, backoff: linear}
    """
    covers = ("S2", "S6", "brief §1.2", "formal §2.1", "formal §2.2")
    kind = ProblemKind.UNKNOWN_KEY

    def word(self, model: Model, problem: Problem) -> Finding:
        path = _BELOW.get((problem.object, problem.key))
        return super().word(model, changed(problem, help=f"write it as `{path}`") if path else problem)

    def fix_for(self, model: Model, problem: Problem) -> Fix | None:
        if problem.key in OTHER_WORDS:
            return migration_fix(model)
        if not problem.suggestion or model.source.text[problem.span.start : problem.span.end] != problem.key:
            return None
        return Fix(f"rename it to `{problem.suggestion}`", (Edit(problem.span, problem.suggestion),), safe=False)
