"""Compares a text with what migration made of it, line by line."""

from __future__ import annotations

import difflib
from functools import lru_cache

from noetlc.finding import Edit, Fix
from noetlc.migrate.migration import Migration, migrate_text
from noetlc.syntax.span import Source, Span

_SPELLINGS = frozenset({"R301", "R302", "R705", "R706"})
"""Constructs that mean the same in canonical v10: the compiler reads both spellings."""


_LONG = 2000


@lru_cache(maxsize=8)
def migration_of(text: str) -> Migration:
    """Return the migration of a text; several rules use the same one."""
    return migrate_text(text)


@lru_cache(maxsize=8)
def fix_by_migration(text: str) -> Fix | None:
    """Return the fix that migrates a whole file; None where nothing would change."""
    migration = migration_of(text)
    if not migration.changed:
        return None
    if all(change.code in _SPELLINGS for change in migration.changes):
        return Fix("write the canonical spelling", tuple(line_edits(migration)), safe=True)
    return Fix("migrate the file to canonical v10", tuple(line_edits(migration)), safe=False)


def line_edits(migration: Migration) -> list[Edit]:
    """Return the edits of a migration, each of some whole lines."""
    old, new = _lines(migration.before), _lines(migration.after)
    starts = [0]
    for line in old:
        starts.append(starts[-1] + len(line))
    return [
        Edit(Span(starts[i1], starts[i2]), "".join(new[j1:j2]))
        for tag, i1, i2, j1, j2 in _matcher(old, new).get_opcodes()
        if tag != "equal"
    ]


def lines_before(migration: Migration) -> list[int]:
    """Return, for each line of the result, the 1-based line of the original that it comes from."""
    old = [line.strip() for line in _lines(migration.before)]
    new = [line.strip() for line in _lines(migration.after)]
    found: list[int] = []
    for _, i1, i2, j1, j2 in _matcher(old, new).get_opcodes():
        found += [min(i1 + offset, max(i1, i2 - 1)) + 1 for offset in range(j2 - j1)]
    return found


def unified_diff(path: str, migration: Migration) -> str:
    lines = difflib.unified_diff(_lines(migration.before), _lines(migration.after), path, f"{path} (migrated)")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def span_before(migration: Migration, span: Span, before: Source, after: Source, lines: list[int]) -> Span:
    """Return where something of the result stands in the original: its column too, where the line is the same."""
    line, column = after.position(span.start)
    old = lines[line - 1] if line <= len(lines) else before.line_count
    start = before.line_start(min(old, before.line_count))
    old_text, new_text = before.line_text(min(old, before.line_count)), after.line_text(line)
    if old_text.strip() == new_text.strip():
        moved = len(old_text) - len(old_text.lstrip()) - (len(new_text) - len(new_text.lstrip()))
        return Span(start + column - 1 + moved, start + column - 1 + moved + (span.end - span.start))
    first = start + len(old_text) - len(old_text.lstrip())
    return Span(first, start + len(old_text))


def _matcher(old: list[str], new: list[str]) -> difflib.SequenceMatcher[str]:
    """Compare lines; in a long file, those that it repeats often are not compared, for that takes quadratic time."""
    return difflib.SequenceMatcher(None, old, new, autojunk=len(new) > _LONG)


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)
