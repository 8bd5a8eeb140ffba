"""The edits of a migration: they give its result, and a long file costs no more for each line than a short one."""

from __future__ import annotations

import difflib
from typing import Any

import pytest

from noetlc.finding import Edit, Fix
from noetlc.lint.fixing import apply_edits
from noetlc.migrate.lines import line_edits, lines_before, migration_of
from noetlc.syntax.span import Span
from noetlvm.record import changed

HEAD = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: a, path: a}\nworkflow:\n"


def old_playbook(steps: int) -> str:
    """Return a playbook in which each step needs migration and repeats most lines of the others."""
    text = "  - step: s{0}\n    tool:\n      pipe:\n        - a: {{kind: noop}}\n    next: {{arcs: [{{step: s{1}}}]}}\n"
    body = "".join(text.format(number, number + 1) for number in range(steps))
    return f"{HEAD}{body}  - step: s{steps}\n    tool: {{kind: noop}}\n"


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Collect, for each comparison, how many pairs of lines it has."""
    found: list[int] = []

    class Matcher(difflib.SequenceMatcher[Any]):
        def __init__(self, isjunk: Any, a: Any, b: Any, **more: Any) -> None:
            found.append(len(a) * len(b))
            super().__init__(isjunk, a, b, **more)

    monkeypatch.setattr(difflib, "SequenceMatcher", Matcher)
    return found


@pytest.mark.parametrize("steps", [3, 600])
def test_the_edits_give_the_migrated_text(steps: int) -> None:
    migration = migration_of(old_playbook(steps))
    assert migration.changed
    assert apply_edits(migration.before, line_edits(migration)) == migration.after
    lines = lines_before(migration)
    assert len(lines) == migration.after.count("\n")
    assert lines == sorted(lines)


def test_a_long_file_is_compared_piece_by_piece(compared: list[int]) -> None:
    migration = migration_of(old_playbook(600))
    line_edits(migration)
    assert sum(compared) < 50 * migration.before.count("\n")


def test_moved_lines_are_no_anchors() -> None:
    migration = migration_of(old_playbook(600))
    lines = migration.before.splitlines(keepends=True)
    moved = changed(migration, after="".join([*lines[2000:], *lines[:2000]]))
    assert apply_edits(moved.before, line_edits(moved)) == moved.after


def test_a_fix_of_thousands_of_edits_costs_little_to_hash() -> None:
    hashed: list[str] = []

    class Counted(str):
        __slots__ = ()

        def __hash__(self) -> int:
            hashed.append(self)
            return super().__hash__()

    fix = Fix("all", tuple(Edit(Span(at, at), Counted(at)) for at in range(1000)), safe=True)
    assert hash(fix) == hash(fix)
    assert len(hashed) == 2
