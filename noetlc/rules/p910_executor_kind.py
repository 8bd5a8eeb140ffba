from noetlc.analysis.inputs import rename
from noetlc.rules.rule import ClaimRule, Finding, Model, Severity
from noetlc.syntax.nodes import Scalar
from noetlc.syntax.span import Problem
from noetlvm.limits import PROFILES


class ExecutorKind(ClaimRule):
    severity = Severity.ERROR
    summary = "`executor` names its profile as `kind`, as the older dialect did."
    why = "The profile would be ignored, and the playbook would run with the default profile."
    example = """
      apiVersion: noetl.io/v2
      kind: Playbook
      metadata: {name: load, path: shop/load}
      executor:
    -   kind: distributed
    +   profile: distributed
      workflow:
        - step: start
          tool: {kind: noop}
    """
    covers = ("brief §2.2", "S6")
    claims = frozenset({("executor", "kind")})

    def word(self, model: Model, problem: Problem) -> Finding:
        mapping = model.mappings_by_key.get(problem.span)
        value = mapping.get("kind") if mapping else None
        if isinstance(value, Scalar) and value.text not in PROFILES:
            names = " or ".join(f"`profile: {name}`" for name in PROFILES)
            message = f"`executor.kind` has no effect, and `{value.text}` is not a profile"
            help = f"remove it, or write {names}"
            return self.finding(problem.span, message, help, severity=Severity.WARNING)
        return self.finding(
            problem.span,
            "`executor.kind` belongs to the older dialect: the key is `profile`",
            "write `profile`",
            fix=rename(model, problem.span, "profile", safe=True),
        )
