from noetlc.analysis.inputs import rename
from noetlc.rules.rule import ClaimRule, Finding, Model, Severity
from noetlc.syntax.span import Problem


class RootVars(ClaimRule):
    severity = Severity.ERROR
    stops_compiler = False
    summary = "A playbook has `vars` at its root."
    why = (
        "If any step could change variables at any time, a run could not be replayed. Inputs belong in `workload`, "
        "which never changes; state belongs in `ctx`, which changes only by recorded patches."
    )
    example = """
      apiVersion: noetl.io/v2
      kind: Playbook
      metadata: {name: report, path: demo/report}
    - vars:
    + workload:
        city: Oslo
      workflow:
        - step: start
          tool: {kind: noop}
    """
    covers = ("formal §2.1", "formal §13", "brief §2", "brief §12", "step spec §2", "S2")
    claims = frozenset({("playbook", "vars")})

    def word(self, model: Model, problem: Problem) -> Finding:
        return self.finding(
            problem.span,
            "a playbook has no `vars`",
            "write inputs and their defaults under `workload`; store state with `set_ctx` (`set_iter` in a loop)",
            fix=rename(model, problem.span, "workload", safe=False),
        )
