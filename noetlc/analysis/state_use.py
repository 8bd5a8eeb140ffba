"""Which keys of `ctx` each step writes, workbook tasks included, and which keys of a namespace it needs.

What a step may write counts as written.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from noetlc.analysis.model import Model, Owner, patches, thens
from noetlc.analysis.names import Access, Reading
from noetlc.syntax.nodes import Scalar
from noetlvm.language.scopes import TemplatePosition
from noetlvm.record import IdentityRecord

if TYPE_CHECKING:
    pass

GUARDS = (TemplatePosition.ADMIT, TemplatePosition.ARC_WHEN, TemplatePosition.TASK_POLICY, TemplatePosition.SUGAR_WHEN)
"""Positions where an undefined value is false (S10)."""


class KeyRead(IdentityRecord):
    """A template that needs a key: it has no default, and no guard tests whether it is defined."""

    key: str
    field: Access
    reading: Reading


def ctx_written(model: Model) -> dict[str, dict[str, Scalar]]:
    """Return, for each step, the ctx keys that it may write, each with the position of one such write."""
    return {owner.name: dict(_written(model, owner, set())) for owner in model.owners if not owner.in_workbook}


def needed(model: Model, namespace: str) -> Iterator[KeyRead]:
    """Yield what steps need from a namespace."""
    optional = {
        use.fields[0].name
        for reading in model.readings
        for use in reading.names.uses
        if use.name == namespace and use.fields and use.is_optional
    }
    for reading in model.readings:
        owner = reading.site.owner
        if owner is None or owner.in_workbook or reading.site.position in GUARDS:
            continue
        for use in reading.names.uses:
            if use.name == namespace and use.fields and not use.is_optional and use.fields[0].name not in optional:
                yield KeyRead(use.fields[0].name, use.fields[0], reading)


def _written(model: Model, owner: Owner, seen: set[str]) -> Iterator[tuple[str, Scalar]]:
    for one in _with_workbook(model, owner, seen):
        for view in model.tasks_by_owner[one]:
            for _, then in thens(view.task):
                for patch, entry in patches(then):
                    if patch == "set_ctx":
                        yield entry.key.text, entry.key


def _with_workbook(model: Model, owner: Owner, seen: set[str]) -> Iterator[Owner]:
    """Yield a pipeline and those of the workbook that it calls, directly or not."""
    yield owner
    shared = model.workbook
    for view in model.tasks_by_owner[owner]:
        named = view.task.get_extra("task") if view.kind == "workbook" else None
        name = named.text if isinstance(named, Scalar) else ""
        if name in shared and name not in seen:
            seen.add(name)
            yield from _with_workbook(model, shared[name], seen)
