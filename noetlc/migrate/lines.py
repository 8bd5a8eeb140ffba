"""Compares a text with what migration made of it, line by line."""

from __future__ import annotations

import difflib
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from typing import TypeAlias

from noetlc.finding import Edit, Fix
from noetlc.migrate.migration import Migration, migrate_text
from noetlc.syntax.span import Source, Span, lines_of

_SPELLINGS = frozenset({"R301", "R302", "R303", "R705", "R706"})
"""Constructs that mean the same in canonical v10: nothing of them is lost."""


_LONG = 2000
"""Lines of a file that is compared as a whole."""

_Opcode: TypeAlias = tuple[str, int, int, int, int]


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
    old, new = lines_of(migration.before), lines_of(migration.after)
    starts = [0]
    for line in old:
        starts.append(starts[-1] + len(line))
    return [
        Edit(Span(starts[i1], starts[i2]), "".join(new[j1:j2]))
        for tag, i1, i2, j1, j2 in _opcodes(old, new)
        if tag != "equal"
    ]


def lines_before(migration: Migration) -> list[int]:
    """Return, for each line of the result, the 1-based line of the original that it comes from."""
    old = [line.strip() for line in lines_of(migration.before)]
    new = [line.strip() for line in lines_of(migration.after)]
    found: list[int] = []
    for _, i1, i2, j1, j2 in _opcodes(old, new):
        found += [min(i1 + offset, max(i1, i2 - 1)) + 1 for offset in range(j2 - j1)]
    return found


def unified_diff(path: str, migration: Migration) -> str:
    lines = difflib.unified_diff(lines_of(migration.before), lines_of(migration.after), path, f"{path} (migrated)")
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


def _opcodes(old: list[str], new: list[str]) -> Iterator[_Opcode]:
    """Compare lines. That takes quadratic time, so a long file is compared between lines that each text has once."""
    if len(new) <= _LONG:
        yield from difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
        return
    i, j = 0, 0
    for at, to in [*_anchors(old, new), (len(old), len(new))]:
        for tag, i1, i2, j1, j2 in difflib.SequenceMatcher(None, old[i:at], new[j:to]).get_opcodes():
            yield tag, i + i1, i + i2, j + j1, j + j2
        if at < len(old):
            yield "equal", at, at + 1, to, to + 1
        i, j = at + 1, to + 1


def _anchors(old: list[str], new: list[str]) -> list[tuple[int, int]]:
    """Return where lines stand that each text has once, as many as are in the same order in both."""
    counts = Counter(old), Counter(new)
    places = {line: number for number, line in enumerate(old)}
    pairs = [(places[line], to) for to, line in enumerate(new) if counts[0][line] == counts[1][line] == 1]
    ends: list[int] = []  # for each length, the first place in `old` at which a chain of that length ends,
    last: list[int] = []  # and the number of the pair that ends it
    before: list[int] = []  # for each pair, the one before it in its chain
    for number, (at, _) in enumerate(pairs):
        length = bisect_left(ends, at)
        ends[length : length + 1] = [at]
        before.append(last[length - 1] if length else -1)
        last[length : length + 1] = [number]
    chain: list[tuple[int, int]] = []
    number = last[-1] if last else -1
    while number >= 0:
        chain.append(pairs[number])
        number = before[number]
    return chain[::-1]
