"""P907: `set_vars`, `set_shared` and `set_prev`, the older dialect's patches."""

from __future__ import annotations

from collections.abc import Iterator

from noetlc.analysis.misnamed import rename
from noetlc.analysis.model import Model, Owner, thens
from noetlc.finding import Finding, Fix, Severity
from noetlc.rules.claim_rule import ClaimRule
from noetlc.syntax.problem import Problem
from noetlc.syntax.span import Span

_INSTEAD = {
    "set_vars": "write `set_iter` in a loop, and `set_ctx` elsewhere",
    "set_shared": "write `set_ctx`, and in a parallel loop a reducer for the key: "
    "`loop: {spec: {policy: {reducers: {total: sum}}}}`",
    "set_prev": "write `set_iter` or `set_ctx`; `_prev` is always the result of the task before",
}


class OldPatches(ClaimRule):
    code = "P907"
    name = "old-patches"
    severity = Severity.ERROR
    summary = "A policy rule writes with `set_vars`, `set_shared` or `set_prev`, as the older dialect did."
    why = (
        "There is no state by these names any more: what is written there is gone, and whoever reads it finds nothing."
    )
    bad = """
    - step: count
      tool:
        - one:
            kind: noop
            spec:
              policy:
                rules:
                  - else:
                      then: {do: continue, set_vars: {page: 1}}
    """
    good = """
    - step: count
      tool:
        - one:
            kind: noop
            spec:
              policy:
                rules:
                  - else:
                      then: {do: continue, set_ctx: {page: 1}}
    """
    covers = ("step spec §5.4", "step spec §6.2", "S6")
    claims = frozenset(("then", name) for name in _INSTEAD)

    def check(self, model: Model) -> Iterator[Finding]:
        problems = list(self.claimed(model))
        owners = _owners(model) if problems else {}
        for problem in problems:
            mapping = model.mappings_by_key.get(problem.span)
            owner = owners.get(mapping.span) if mapping else None
            yield self.finding(
                problem.span,
                f"`{problem.key}` is of the older dialect: a rule writes with `set_iter` and `set_ctx`",
                _INSTEAD[problem.key],
                fix=_fix(model, problem, owner),
            )


def _owners(model: Model) -> dict[Span, Owner]:
    """Return the pipeline that each `then` belongs to, by its place."""
    return {then.span: view.owner for view in model.tasks for _, then in thens(view.task)}


def _fix(model: Model, problem: Problem, owner: Owner | None) -> Fix | None:
    """A task of the workbook may run inside a loop or outside, so there is nothing to choose by."""
    if problem.key != "set_vars" or owner is None or owner.in_workbook:
        return None
    return rename(model, problem.span, "set_iter" if owner.loops else "set_ctx", safe=False)
