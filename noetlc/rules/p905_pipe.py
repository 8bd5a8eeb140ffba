from noetlc.analysis.inputs import old_inputs
from noetlc.rules.rule import ClaimRule, Finding, Findings, Model, Severity, migration_fix
from noetlc.syntax.span import Problem

_HELP = "write the tasks as the list under `tool`, which is always a pipeline"


class Pipe(ClaimRule):
    severity = Severity.ERROR
    summary = "A step or a task has `pipe`, as earlier drafts of the language did."
    why = "`pipe` is ignored, so its tasks would never run."
    example = """
      - step: load
    -   pipe:
    +   tool:
          - fetch: {kind: http, url: "https://api.example.com/items"}
          - done: {kind: noop}
    """
    covers = ("step spec §7", "step spec §13")
    claims = frozenset({("step", "pipe")})

    def check(self, model: Model) -> Findings:
        yield from super().check(model)
        for entry in old_inputs(model, "pipe"):
            yield self.finding(
                entry.key.span,
                "`pipe` belongs to an older dialect: a task contains no other tasks",
                _HELP,
                fix=migration_fix(model),
            )

    def word(self, model: Model, problem: Problem) -> Finding:
        return self.finding(
            problem.span,
            "`pipe` belongs to an older dialect: a step's tasks are under `tool`",
            _HELP,
            fix=migration_fix(model),
        )
