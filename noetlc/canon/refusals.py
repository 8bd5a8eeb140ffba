"""What stands in the way of a playbook's canonical form: one refusal for each step that has one, for lint to tell."""

from __future__ import annotations

from collections.abc import Iterable

from noetlc.canon.allowance import TOO_LARGE, Allowance
from noetlc.canon.canonicalize import workbook_of
from noetlc.canon.expansion import expand_pipeline
from noetlc.canon.layering import outer_layers
from noetlc.canon.refusal import Refusal
from noetlc.syntax import ast


def refusals(playbook: ast.Playbook, steps: Iterable[ast.Step]) -> tuple[Refusal, ...]:
    """Return why these steps cannot be expanded. The playbook was read without problems, and so were its templates."""
    workbook = workbook_of(playbook)
    allowance = Allowance()
    found: list[Refusal] = []
    for step in steps:
        try:
            expand_pipeline(step.tool or (), workbook, outer_layers(playbook, step), allowance)
        except Refusal as refusal:
            found.append(refusal)
            if refusal.code == TOO_LARGE:
                break  # what is left of the allowance is for all steps, and now there is nothing
    return tuple(found)


def expanded(playbook: ast.Playbook, step: ast.Step) -> tuple[ast.Task, ...] | None:
    """Return a step's pipeline in canonical form; None if it cannot be expanded."""
    try:
        return expand_pipeline(step.tool or (), workbook_of(playbook), outer_layers(playbook, step), Allowance()).tasks
    except Refusal:
        return None
