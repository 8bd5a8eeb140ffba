from noetlc.analysis.flow import tool_can_fail
from noetlc.analysis.formulas import ERROR_OUTCOME
from noetlc.analysis.guards import decide, names_read
from noetlc.analysis.model import TaskView, patches
from noetlc.rules.rule import Finding, Findings, Model, Rule, Severity
from noetlc.syntax import ast
from noetlc.syntax.nodes import Scalar, scalars

_GOES_ON = frozenset({"continue", "jump", "break"})
_HELP = "put `- when: \"{{ outcome.status == 'error' }}\"` with `do: fail` before it, or `retry`"


class SwallowedError(Rule):
    severity = Severity.WARNING
    summary = "The pipeline can continue after an error of the task, and no rule tests for it."
    why = (
        "Without a policy an error fails the pipeline. With a policy, an error that no rule matches continues: the "
        "next task runs without a result, and the step is reported as done."
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
    +               - when: "{{ outcome.status == 'error' }}"
    +                 then: {do: fail}
                    - else:
                        then: {do: continue, set_ctx: {items: "{{ outcome.result.data }}"}}
    """
    covers = ("formal §6.3", "step spec §5.4", "S13")

    def check(self, model: Model) -> Findings:
        for view in model.tasks:
            if lets_errors_through(view):
                yield self._falls_through(view)
            elif _has_policy(view):
                yield from self._check_policy(view)

    def _check_policy(self, view: TaskView) -> Findings:
        is_seen = False
        for rule in view.task.rules:
            holds = _takes_errors(rule)
            if holds:
                yield from self._check_taker(view, rule, is_seen)
                return
            is_seen = is_seen or (holds is None and "outcome" in names_read(rule.when))

    def _check_taker(self, view: TaskView, rule: ast.PolicyRule, is_seen: bool) -> Findings:
        """Check the rule that matches every error which no rule before it matched."""
        then = rule.action
        is_seen = is_seen or "outcome" in names_read(rule.when) or _looks_at_error(then)
        if then and then.do and then.do.text in _GOES_ON and not is_seen:
            message = f"an error of `{view.label}` leads to `{then.do.text}`, and no rule tests for it"
            yield self.finding(then.do.span, message, _HELP)

    def _falls_through(self, view: TaskView) -> Finding:
        place = view.task.policy.key_span("rules") if view.task.policy else view.name_span
        message = f"an error of `{view.label}` that no rule matches continues as if it had succeeded"
        return self.finding(place, message, "end the rules with `- else: { then: { do: fail } }`, or match every error")


def lets_errors_through(view: TaskView) -> bool:
    """Return whether an error of the task can be one that no rule matches."""
    return _has_policy(view) and not any(map(_takes_errors, view.task.rules))


def _has_policy(view: TaskView) -> bool:
    return bool(view.task.rules) and view.kind != "workbook" and tool_can_fail(view.kind)


def _takes_errors(rule: ast.PolicyRule) -> bool | None:
    """Return whether a rule matches every error; None if that depends on the error."""
    return True if rule.else_ else decide(rule.when, ERROR_OUTCOME) if rule.when else None


def _looks_at_error(then: ast.Then | None) -> bool:
    """Return whether the rule stores the outcome, so that a later task can test it."""
    written = (scalar for _, entry in patches(then) for scalar in scalars(entry.value)) if then else ()
    return any(map(_reads_status, written))


def _reads_status(scalar: Scalar) -> bool:
    return "outcome" in names_read(scalar) and any(word in scalar.text for word in ("status", "error", "code"))
