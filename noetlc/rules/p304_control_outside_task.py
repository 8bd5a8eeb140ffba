from collections.abc import Iterator

from noetlc.analysis.spec_keys import keys_of
from noetlc.rules.rule import Findings, Model, Rule, Severity
from noetlc.syntax import ast
from noetlc.syntax.nodes import Mapping, Node, Scalar, Sequence
from noetlc.syntax.playbook_parser import TITLES

_DIRECTIVES = ("retry", "jump", "break", "continue", "fail", "skip")
_CONTROL = ("rules", *keys_of(ast.Then), *_DIRECTIVES)
_HELP = {
    "step_policy": "move it to `spec.policy.rules` of a task; to admit by a condition write `admit: { rules: … }`",
    "verdict": "an admission rule only has `allow: true` or `allow: false`; directives belong to a task's policy",
}
_ELSEWHERE = "move it to `spec.policy.rules` of the task whose outcome decides"


class ControlOutsideTask(Rule):
    severity = Severity.ERROR
    summary = "Control directives are outside the `rules` of a task's policy."
    why = (
        "Only a task has an outcome, so only its policy can react to one. A `retry` in the policy of a step, loop, "
        "router or executor has no effect."
    )
    example = """
      - step: fetch
    -   spec:
    -     policy:
    -       retry: {attempts: 5}
        tool:
    -     - get: {kind: http, url: "https://example.org/items"}
    +     - get:
    +         kind: http
    +         url: https://example.org/items
    +         spec:
    +           policy:
    +             rules:
    +               - when: "{{ outcome.status == 'error' }}"
    +                 then: {do: retry, attempts: 5}
    +               - else:
    +                   then: {do: continue}
    """
    covers = (
        *("brief §1.3", "brief §4.2", "step spec §3.2", "step spec §5.2", "step spec §5.3"),
        *("step spec §5.4", "step spec §5.5"),
    )
    claims = frozenset(
        (scope, key)
        for scope in ("step_policy", "loop_policy", "router_policy", "executor_policy", "verdict")
        for key in _CONTROL
    )

    def check(self, model: Model) -> Findings:
        for problem in self.claimed(model):
            yield self.finding(
                problem.span,
                f"`{problem.key}` has no effect in {TITLES[problem.object]}: only task policies have directives",
                _HELP.get(problem.object, _ELSEWHERE),
            )
        for step in model.steps:
            for arc in step.arcs:
                policy_key = arc.spec.key("policy") if arc.spec else None
                if policy_key is not None:
                    message = "`policy` has no effect in the `spec` of an arc: only task policies have directives"
                    yield self.finding(policy_key.span, message, _ELSEWHERE)
        for view in model.tasks:
            policy = view.task.policy
            for key in _hook_directives(policy) if policy else ():
                message = f"a hook of `{view.label}` has a directive, but hooks have no control flow"
                yield self.finding(key.span, message, "move it to the policy's `rules`")


def _hook_directives(policy: ast.TaskPolicy) -> Iterator[Scalar]:
    """Yield every `do: <directive>` in the policy's hooks, however deep."""
    waiting: list[Node | None] = [policy.before, policy.after, policy.finally_]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Sequence):
            waiting.extend(node.items)
        elif isinstance(node, Mapping):
            for entry in node.entries:
                waiting.append(entry.value)
                if entry.key.text == "do" and isinstance(entry.value, Scalar) and entry.value.text in _DIRECTIVES:
                    yield entry.key
