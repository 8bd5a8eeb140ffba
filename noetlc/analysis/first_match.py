"""The lists of which the first entry that holds is taken: admission rules, policy rules, branches of a `choose`.

They have one shape (`when` and `then`, or `else` alone), so what can go wrong with it is looked for in one place.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal, TypeAlias

from noetlc.syntax import ast
from noetlvm.record import IdentityRecord

if TYPE_CHECKING:
    from noetlc.analysis.model import Model

Choice: TypeAlias = ast.AdmitRule | ast.PolicyRule | ast.Branch
"""One entry of such a list."""


class FirstMatch(IdentityRecord):
    """One such list."""

    object: Literal["admit_rule", "rule", "branch"]
    """Grammar rule of its entries."""
    choices: tuple[Choice, ...]

    @property
    def title(self) -> str:
        """What an entry is called in messages."""
        return {"admit_rule": "admission rule", "rule": "policy rule", "branch": "branch"}[self.object]


def first_match_lists(model: Model) -> Iterator[FirstMatch]:
    """Yield every list of that shape in a playbook."""
    for step in model.steps:
        policy = step.spec.policy if step.spec else None
        if policy and policy.admit and policy.admit.rules:
            yield FirstMatch("admit_rule", policy.admit.rules)
    for flow in model.flows.values():
        for point in flow.points:
            if isinstance(point.entry, ast.Choose):
                yield FirstMatch("branch", point.entry.choose)
            elif isinstance(point.entry, ast.Task) and point.entry.rules:
                yield FirstMatch("rule", point.entry.rules)
