from noetlc.analysis.guards import compares_only, decide, names_read
from noetlc.analysis.model import TaskView
from noetlc.rules.rule import Findings, Model, Rule, Severity
from noetlc.syntax import ast
from noetlc.syntax.nodes import Scalar

_CHANGES = frozenset({"outcome", "_attempt"})
"""Names whose value can differ after another run of the task."""


class UselessRetry(Rule):
    severity = Severity.WARNING
    summary = "A `retry` never happens, or repeats a run that cannot end differently."
    why = (
        "`attempts` counts the first run, so `attempts: 1` never retries. A retry whose condition does not depend on "
        "the run repeats until the attempts are used up, and then fails a task that had succeeded."
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
    -                 then: {do: retry, attempts: 1}
    +                 then: {do: retry, attempts: 2}
                    - else:
                        then: {do: continue}
    """
    covers = ("S14", "brief §6")

    def check(self, model: Model) -> Findings:
        for view in model.tasks:
            depends_on_run = False
            for rule in view.task.rules:
                depends_on_run = depends_on_run or bool(names_read(rule.when) & _CHANGES)
                then = rule.action
                if then and then.do and then.do.text == "retry":
                    yield from self._check_retry(view, rule, then, then.do, depends_on_run)

    def _check_retry(
        self, view: TaskView, rule: ast.PolicyRule, then: ast.Then, do: Scalar, depends_on_run: bool
    ) -> Findings:
        if then.attempts and then.attempts.value == 1:
            message = "`attempts: 1` never retries: the first run counts"
            yield self.finding(then.attempts.span, message, "write 2 for one retry, or `do: fail`")
        elif view.kind == "noop":
            message = f"`{view.label}` is a `noop`: running it again changes nothing"
            yield self.finding(do.span, message, "retry the task that does the work, or `jump` back to it")
        elif compares_only(rule.when, "outcome.status", "ok"):
            message = f"`{view.label}` is retried when it has succeeded, and fails once its attempts are used up"
            yield self.finding(do.span, message, "write `outcome.status == 'error'`, or test `outcome.result` too")
        elif not depends_on_run and not (then.set_iter or then.set_ctx) and decide(rule.when) is not False:
            message = "this `retry` does not test the outcome: every run is retried until the attempts are used up"
            yield self.finding(do.span, message, "put the retry under `when: \"{{ outcome.status == 'error' }}\"`")
