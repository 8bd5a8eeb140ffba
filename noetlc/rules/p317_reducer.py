"""P317: a reducer that has no effect."""

from __future__ import annotations

from collections.abc import Iterator

from noetlc.analysis.model import Owner, loop_mode, patches, thens
from noetlc.rules.rule import Finding, Model, Rule, Severity
from noetlc.syntax import ast
from noetlc.syntax.span import Span
from noetlvm.nearest import did_you_mean


class Reducer(Rule):
    severity = Severity.WARNING
    summary = "A reducer is named for a key that no task writes, or on a loop that runs in order."
    why = (
        "A reducer defines how the writes of parallel iterations become one value. With a misspelt key the real key "
        "has none, and two iterations that differ fail the step."
    )
    example = """
      - step: add_up
        loop:
          in: [1, 2, 3]
          iterator: number
          spec:
            mode: parallel
            policy:
    -         reducers: {totals: sum}
    +         reducers: {total: sum}
        tool:
          - add:
              kind: noop
              spec:
                policy:
                  rules:
                    - else:
                        then: {do: continue, set_ctx: {total: "{{ iter.number }}"}}
    """
    covers = ("S26", "formal §7.2", "step spec §5.3")

    def check(self, model: Model) -> Iterator[Finding]:
        for owner, views in model.tasks_by_owner.items():
            written = {
                entry.key.text
                for view in views
                for _, then in thens(view.task)
                for patch, entry in patches(then)
                if patch == "set_ctx"
            }
            # What a workbook task writes is written by the step that uses it.
            is_open = any(view.kind == "workbook" for view in views) or model.is_reported(
                _span(owner), ("then", "set_ctx")
            )
            for loop in owner.loops:
                yield from self._check_loop(loop, written, is_open)

    def _check_loop(self, loop: ast.Loop, written: set[str], is_open: bool) -> Iterator[Finding]:
        policy = loop.spec.policy if loop.spec else None
        for entry in policy.reducers.extra if policy and policy.reducers else ():
            key = entry.key
            if loop_mode(loop) != "parallel":
                message = f"the reducer of `{key.text}` has nothing to do: the loop is sequential"
                yield self.finding(key.span, message, "write `mode: parallel`, or remove the reducer")
            elif key.text not in written and not is_open:
                help = did_you_mean(key.text, written) or f"write the key in a task's `set_ctx`, or remove `{key.text}`"
                yield self.finding(key.span, f"no task of the step writes `ctx.{key.text}`", help)


def _span(owner: Owner) -> Span:
    return owner.step.span if owner.step else Span(0, 0)
