"""P910: `executor.kind`, which is now `executor.profile`."""

from __future__ import annotations

from noetlc.analysis.inputs import rename
from noetlc.analysis.model import Model
from noetlc.finding import Finding, Severity
from noetlc.rules.rule import ClaimRule
from noetlc.syntax.span import Problem


class ExecutorKind(ClaimRule):
    code = "P910"
    name = "executor-kind"
    severity = Severity.ERROR
    summary = "`executor` names its profile as `kind`, as the older dialect did."
    why = "The profile would not be read, and the playbook would run where the default puts it."
    bad = """
    apiVersion: noetl.io/v2
    kind: Playbook
    metadata: {name: load, path: shop/load}
    executor:
      kind: distributed
    workflow:
      - step: start
        tool: {kind: noop}
    """
    good = """
    apiVersion: noetl.io/v2
    kind: Playbook
    metadata: {name: load, path: shop/load}
    executor:
      profile: distributed
    workflow:
      - step: start
        tool: {kind: noop}
    """
    covers = ("brief §2.2", "S6")
    claims = frozenset({("executor", "kind")})

    def word(self, model: Model, problem: Problem) -> Finding:
        return self.finding(
            problem.span,
            "`executor.kind` is of the older dialect: the key is `profile`",
            "write `profile`",
            fix=rename(model, problem.span, "profile", safe=True),
        )
