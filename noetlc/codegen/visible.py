"""Which namespaces a template sees where it stands (S11)."""

from __future__ import annotations

from functools import cache

from noetlvm.language.scopes import LOOP_ONLY, VISIBLE, Position


@cache
def visible_names(position: Position, in_loop: bool) -> frozenset[str]:
    """Return the namespaces that exist at a position; those of a loop only inside one."""
    return VISIBLE[position] if in_loop else VISIBLE[position] - LOOP_ONLY
