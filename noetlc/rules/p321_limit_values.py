from noetlc.rules.rule import Findings, Model, Related, Rule, Severity
from noetlc.syntax import ast
from noetlc.syntax.nodes import Scalar
from noetlvm.limits import INLINE_BYTES, INLINE_BYTES_MIN

_UNITS = {
    "max_payload_bytes": "bytes",
    "max_transitions": "task runs",
    "max_step_runs": "step runs",
    "max_children": "child executions",
}


class LimitValues(Rule):
    severity = Severity.ERROR
    summary = "A limit of a step or of the executor is zero, negative, infinite, out of range or never reached."
    why = (
        "A limit must be a positive number. Any other value limits nothing, so a step that should be stopped hangs. "
        "A `timeout_s` that is longer than `deadline_s` is never reached, because no run starts before the workflow."
    )
    example = """
      - step: fetch
    -   spec: {policy: {lifecycle: {timeout_s: -30}}}
    +   spec: {policy: {lifecycle: {timeout_s: 30}}}
        tool:
          - get: {kind: http, url: "https://example.org/items"}
    """
    covers = ("S20", "S46", "step spec §5.1", "step spec §5.2.2")

    def check(self, model: Model) -> Findings:
        for step in model.steps:
            if step.lifecycle:
                yield from self._check_lifecycle(step.lifecycle)
        spec = model.playbook.executor_spec
        for limits in (spec.limits, spec.policy.limits if spec.policy else None) if spec else ():
            if limits:
                yield from self._check_range("max_payload_bytes", limits.max_payload_bytes)
                for key, unit in _UNITS.items():
                    yield from self._check_value(key, getattr(limits, key), unit)

    def _check_lifecycle(self, lifecycle: ast.Lifecycle) -> Findings:
        timeout, deadline = lifecycle.timeout_s, lifecycle.deadline_s
        wrong = [
            *self._check_value("timeout_s", timeout, "seconds"),
            *self._check_value("deadline_s", deadline, "seconds"),
        ]
        yield from wrong
        if timeout and deadline and not wrong and _number(timeout) > _number(deadline):
            yield self.finding(
                timeout.span,
                f"`timeout_s: {timeout.text}` is never reached: `deadline_s: {deadline.text}` ends earlier",
                "write a `timeout_s` that is shorter than `deadline_s`, or only one of them",
                related=[Related(deadline.span, "the deadline")],
                severity=Severity.WARNING,
            )

    def _check_value(self, key: str, value: Scalar | None, unit: str) -> Findings:
        if value is not None and not 0 < _number(value) < float("inf"):
            yield self.finding(value.span, f"`{key}: {value.text}` is not a limit", f"write {unit}, more than 0")

    def _check_range(self, key: str, value: Scalar | None) -> Findings:
        if value is not None and _number(value) > 0 and not INLINE_BYTES_MIN <= _number(value) <= INLINE_BYTES:
            message = f"`{key}: {value.text}` is out of range"
            yield self.finding(value.span, message, f"write a number from {INLINE_BYTES_MIN:,} to {INLINE_BYTES:,}")


def _number(value: Scalar) -> float:
    assert isinstance(value.value, int | float)  # the grammar takes nothing else here
    return value.value
