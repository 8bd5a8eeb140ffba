"""P501: `set_ctx` in a parallel loop, with nothing to join the writes."""

from __future__ import annotations

from collections.abc import Iterator

from noetlc.analysis.model import Model, Owner, loop_mode, patches, thens
from noetlc.finding import Finding, Related, Severity
from noetlc.rules.rule import Rule
from noetlc.syntax.nodes import Scalar


class ParallelCtxWrite(Rule):
    code = "P501"
    name = "parallel-ctx-write"
    severity = Severity.WARNING
    summary = "Iterations of a parallel loop write a `ctx` key that has no reducer."
    why = (
        "Iterations that run at once do not see each other's writes. Two that write different values to one key fail "
        "the step, on the first day that the data differ."
    )
    bad = """
    - step: add_up
      loop:
        in: [1, 2, 3]
        iterator: number
        spec: {mode: parallel}
      tool:
        - add:
            kind: noop
            spec:
              policy:
                rules:
                  - else:
                      then: {do: continue, set_ctx: {total: "{{ iter.number }}"}}
    """
    good = """
    - step: add_up
      loop:
        in: [1, 2, 3]
        iterator: number
        spec:
          mode: parallel
          policy:
            reducers: {total: sum}
      tool:
        - add:
            kind: noop
            spec:
              policy:
                rules:
                  - else:
                      then: {do: continue, set_ctx: {total: "{{ iter.number }}"}}
    """
    covers = ("formal §7.2", "brief §7.2", "brief §12", "step spec §6.2", "S26")

    def check(self, model: Model) -> Iterator[Finding]:
        for owner, views in model.tasks_by_owner.items():
            if not owner.is_parallel:
                continue
            reduced = _reduced(owner)
            for view in views:
                for _, then in thens(view.task):
                    for patch, entry in patches(then):
                        if patch == "set_ctx" and entry.key.text not in reduced:
                            yield self._unreduced(owner, view.label, entry.key)

    def _unreduced(self, owner: Owner, label: str, key: Scalar) -> Finding:
        loop = next(loop for loop in owner.loops if loop_mode(loop) == "parallel")
        return self.finding(
            key.span,
            f"`{label}` writes `ctx.{key.text}` in a parallel loop, and the key has no reducer",
            f"add `reducers: {{ {key.text}: sum }}` (or another) under the loop's `spec.policy`, or write `set_iter`",
            related=[Related(loop.key_span("iterator"), "the parallel loop")],
        )


def _reduced(owner: Owner) -> frozenset[str]:
    """Return the keys that some loop around the pipeline has a reducer for, of whatever kind."""
    policies = [loop.spec.policy for loop in owner.loops if loop.spec and loop.spec.policy]
    reducers = [policy.reducers for policy in policies if policy.reducers]
    return frozenset(entry.key.text for named in reducers for entry in named.extra)
