from noetlc.analysis.model import loop_mode, patches, thens
from noetlc.rules.rule import Finding, Findings, Model, Related, Rule, Severity
from noetlc.syntax import ast
from noetlc.syntax.nodes import Scalar


class ParallelCtxWrite(Rule):
    severity = Severity.WARNING
    summary = "Iterations of a parallel loop write a `ctx` key that has no reducer."
    why = (
        "Parallel iterations do not see each other's writes. If two of them write different values to one key, the "
        "step fails."
    )
    example = """
      - step: add_up
        loop:
          in: [1, 2, 3]
          iterator: number
    -     spec: {mode: parallel}
    +     spec:
    +       mode: parallel
    +       policy:
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
    covers = ("formal §7.2", "brief §7.2", "brief §12", "step spec §6.2", "S26")

    def check(self, model: Model) -> Findings:
        for owner, views in model.tasks_by_owner.items():
            if not owner.is_parallel:
                continue
            parallel = [(loop, _reduced(loop)) for loop in owner.loops if loop_mode(loop) == "parallel"]
            for view in views:
                for _, then in thens(view.task):
                    for patch, entry in patches(then):
                        lacking = [loop for loop, reduced in parallel if entry.key.text not in reduced]
                        if patch == "set_ctx" and lacking:
                            yield self._unreduced(view.label, entry.key, lacking[-1], of_several=len(parallel) > 1)

    def _unreduced(self, label: str, key: Scalar, loop: ast.Loop, *, of_several: bool) -> Finding:
        which = f"the loop over `{loop.iterator.text}`" if of_several and loop.iterator else "the loop"
        where = f"the parallel loop over `{loop.iterator.text}`" if of_several and loop.iterator else "a parallel loop"
        return self.finding(
            key.span,
            f"`{label}` writes `ctx.{key.text}` in {where}, and the key has no reducer"
            + (" there" if of_several else ""),
            f"add `reducers: {{ {key.text}: sum }}` (or another) under `spec.policy` of {which}, or write `set_iter`",
            related=[Related(loop.key_span("iterator"), "the parallel loop")],
        )


def _reduced(loop: ast.Loop) -> frozenset[str]:
    """Return the keys that a loop has a reducer for, of whatever kind."""
    reducers = loop.policy.reducers if loop.policy else None
    return frozenset(entry.key.text for entry in reducers.extra) if reducers else frozenset()
