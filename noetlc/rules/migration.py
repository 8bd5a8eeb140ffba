"""The fix of the rules on other dialects: `noetlc migrate`, as edits of the file."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from noetlc.analysis.model import Model
    from noetlc.finding import Fix


OTHER_WORDS = frozenset({"set", "set_ctx", "input", "output", "retry", "mode", "max_in_flight"})
"""Keys of other dialects that no rule of their own explains."""
OTHER_NAMES = frozenset({"output", "response", "result", "job", "loop_index", "token"})
"""Names that templates of other dialects read."""


def migration_fix(model: Model) -> Fix | None:
    """Return the fix that migrates the whole file; None where that would change nothing.

    Findings of one file share it, so that it is applied once. Only files that need it pay for the import.
    """
    from noetlc.migrate.lines import fix_by_migration

    return None if model.document.problems else fix_by_migration(model.source.text)
