from noetlc.rules.rule import Edit, Finding, Fix, Model, ProblemRule, Severity, migration_fix
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

_INSTEAD = {
    **dict.fromkeys(
        [("step", "args"), ("step", "input"), ("step", "with")], "write it as `args` of the task under `tool`"
    ),
    ("step", "set"): "write it in a rule of the task: `then: {do: continue, set_ctx: {…}}`",
    ("step", "output"): "remove it: the machine stores large results itself",
    ("step", "arcs"): "write it as `next.arcs`",
    ("arc", "else"): "write this arc last and without `when`: it fires when no other does",
    ("arc", "set"): "write `args:` if only the target reads it, else `set_ctx` in a rule of a task",
}
"""Keys of other dialects that have no rule of their own, and what to write."""
_OTHER_WORDS = frozenset({*(key for _, key in _INSTEAD), "set_ctx", "retry", "mode", "max_in_flight"})


class UnknownKey(ProblemRule):
    severity = Severity.ERROR
    stops_compiler = False
    summary = "An object has a key that is unknown there."
    why = (
        "A misspelt key is a setting that never takes effect, such as a retry or a timeout. So the keys of every "
        "structural object are a closed set."
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
        key = problem.object, problem.key
        help = f"write it as `{_BELOW[key]}`" if key in _BELOW else _INSTEAD.get(key, problem.help)
        return super().word(model, changed(problem, help=help))

    def fix_for(self, model: Model, problem: Problem) -> Fix | None:
        if problem.key in _OTHER_WORDS:
            return migration_fix(model)
        if not problem.suggestion or model.source.text[problem.span.start : problem.span.end] != problem.key:
            return None
        return Fix(f"rename it to `{problem.suggestion}`", (Edit(problem.span, problem.suggestion),), safe=False)
