from noetlc.analysis.flow import waits
from noetlc.analysis.model import thens
from noetlc.rules.rule import Findings, Model, Rule, Severity
from noetlc.syntax import ast
from noetlc.syntax.nodes import Scalar
from noetlvm.bytecode.limits import LIMIT_MAX


class RetryValues(Rule):
    severity = Severity.ERROR
    summary = "`attempts` or `delay` of a `retry` is out of range, or a wait would exceed an hour."
    why = (
        "`attempts` counts runs, including the first, so a value below one allows no run. No wait exceeds an hour: a "
        "longer one is cut, and the schedule differs from the one that is written."
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
    -                 then: {do: retry, attempts: 0, delay: 2}
    +                 then: {do: retry, attempts: 4, delay: 2}
                    - else:
                        then: {do: continue}
    """
    covers = ("S14", "formal §6.2", "brief §6")
    claims = frozenset({("then", "attempts"), ("then", "delay")})

    def check(self, model: Model) -> Findings:
        for problem in self.claimed(model):
            yield self.finding(problem.span, problem.message, problem.help)
        for view in model.tasks:
            for _, then in thens(view.task):
                yield from self._check_then(then)

    def _check_then(self, then: ast.Then) -> Findings:
        attempts = then.attempts
        if attempts and isinstance(attempts.value, int) and attempts.value < 1:
            message = f"`attempts: {attempts.text}` allows no run: the first run counts"
            yield self.finding(attempts.span, message, "write 2 for one retry, 3 for two")
        if attempts and isinstance(attempts.value, int) and attempts.value > LIMIT_MAX:
            message = f"`attempts: {attempts.text}` is too large"
            yield self.finding(attempts.span, message, f"write a number up to {LIMIT_MAX:,}")
        if then.delay and isinstance(then.delay.value, int | float):
            yield from self._check_delay(then, then.delay, then.delay.value)

    def _check_delay(self, then: ast.Then, delay: Scalar, seconds: float) -> Findings:
        if not seconds >= 0:
            yield self.finding(delay.span, f"`delay: {delay.text}` is not a time to wait", "write seconds, 0 or more")
            return
        expected = waits(then) if then.do and then.do.text == "retry" else None
        if expected and expected.capped_from:
            yield self.finding(
                delay.span,
                f"the wait before retry {expected.capped_from} would exceed an hour, and is cut to one hour",
                "lower `delay` or `attempts`, or use a slower `backoff`",
                severity=Severity.WARNING,
            )
