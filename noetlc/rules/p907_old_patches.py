from noetlc.rules.rule import ClaimRule, Finding, Model, Severity, migration_fix
from noetlc.syntax.span import Problem

_INSTEAD = {
    "set_vars": "write `set_iter` in a loop, and `set_ctx` elsewhere",
    "set_shared": "write `set_ctx`, and in a parallel loop a reducer for the key: "
    "`loop: {spec: {policy: {reducers: {total: sum}}}}`",
    "set_prev": "write `set_iter` or `set_ctx`; `_prev` is always the result of the task before",
}


class OldPatches(ClaimRule):
    severity = Severity.ERROR
    summary = "A policy rule writes with `set_vars`, `set_shared` or `set_prev`, as the older dialect did."
    why = (
        "This state no longer exists: values that are written there are lost, and templates that read them get "
        "undefined values."
    )
    example = """
      - step: count
        tool:
          - one:
              kind: noop
              spec:
                policy:
                  rules:
                    - else:
    -                   then: {do: continue, set_vars: {page: 1}}
    +                   then: {do: continue, set_ctx: {page: 1}}
    """
    covers = ("step spec §5.4", "step spec §6.2", "S6")
    claims = frozenset(("then", name) for name in _INSTEAD)

    def word(self, model: Model, problem: Problem) -> Finding:
        return self.finding(
            problem.span,
            f"`{problem.key}` belongs to the older dialect: a rule writes with `set_iter` and `set_ctx`",
            _INSTEAD[problem.key],
            fix=migration_fix(model),
        )
