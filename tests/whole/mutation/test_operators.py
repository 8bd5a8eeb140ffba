"""The mutator itself: what it changes, what it leaves alone, and that a change reaches functions that are imported."""

from __future__ import annotations

from types import ModuleType

import pytest

from noetlvm.machine import fold, settling
from tests.whole.mutation.__main__ import explained, stale
from tests.whole.mutation.judging import Judge, Verdict, all_mutants
from tests.whole.mutation.operators import mutations
from tests.whole.mutation.planting import plant_source, source_of

SOURCE = '''
LIMIT = 3

def decide(items: list[int], most: int = 2) -> str | None:
    """Not 1 but all."""
    assert most > 0
    found = [one for one in items if one < most and one]
    if not found:
        items.append(1)
        return None
    for one in sorted(found):
        if one == LIMIT:
            continue
    def inner(given: int | None = None) -> int | None:
        return given

    total = max(found) + (first := found[0])
    return f"{total + first}" if total else ""
'''


def changes() -> set[tuple[str, str]]:
    return {(one.old, one.new) for one in mutations(SOURCE)}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("2", "3"),
        ("one < most", "one <= most"),
        ("one < most and one", "((one < most) or (one))"),
        ("one < most and one", "True"),
        ("not found", "bool(found)"),
        ("items.append(1)", "pass"),
        ("sorted(found)", "list(found)"),
        ("one == LIMIT", "one != LIMIT"),
        ("continue", "break"),
        ("max(found)", "min(found)"),
        ("max(found) + (first := found[0])", "(max(found) - (first := found[0]))"),
        ("total", "not (total)"),
        ('""', '"XX"'),
    ],
)
def test_behaviour_is_changed(old: str, new: str) -> None:
    assert (old, new) in changes()


def test_annotations_docstrings_assertions_messages_and_tables_are_left_alone() -> None:
    changed = {SOURCE.encode()[: one.start].count(b"\n") + 1 for one in mutations(SOURCE)}
    assert changed.isdisjoint({2, 5, 6, 14})
    assert not any("total + first" in one.old for one in mutations(SOURCE) if not one.old.startswith("return"))


@pytest.mark.parametrize("module", [fold, settling], ids=lambda module: module.__name__)
def test_every_change_of_a_module_can_be_compiled_and_is_one(module: ModuleType) -> None:
    source = source_of(module)
    found = mutations(source)
    assert len(found) > 150
    for one in found[::10]:
        compile(one.apply(source), "mutant", "exec")
        assert one.apply(source) != source


def test_a_change_is_planted_where_the_function_is_imported() -> None:
    module = ModuleType("planted")
    module.__file__ = __file__
    exec(compile(SOURCE, __file__, "exec"), module.__dict__)
    imported = module.__dict__["decide"]
    assert imported([], 1) is None
    mutation = next(one for one in mutations(SOURCE) if one.old == "not found")
    assert plant_source(module, SOURCE) == 0
    assert plant_source(module, mutation.apply(SOURCE)) == 1
    assert imported([1, 1], 2) is None


def test_a_change_is_planted_in_functions_of_a_table_too() -> None:
    module = ModuleType("planted")
    module.__file__ = __file__
    source = "def made(n):\n    def add(to):\n        return to + n\n    return add\nTABLE = {'one': made(1)}\n"
    exec(compile(source, __file__, "exec"), module.__dict__)
    add = module.__dict__["TABLE"]["one"]
    assert add(1) == 2
    assert plant_source(module, source.replace("to + n", "to - n")) == 2
    assert add(1) == 0


def test_every_explanation_is_of_a_mutant_that_exists() -> None:
    assert explained()
    assert stale(explained(), all_mutants(sorted({module for module, *_ in explained()})), []) == []


def test_an_explanation_is_stale_when_its_mutant_is_killed() -> None:
    mutant = next(one for one in all_mutants(["settling"]) if one.identity in explained())
    assert stale(explained(), [mutant], [Verdict(mutant, True, "a test", 1, 0.1)])[0][0] == "settling"


def test_a_mutant_that_no_test_reaches_is_not_noticed() -> None:
    assert Judge([], lambda _verdict: None, jobs=1, seconds=1, seeds=0)._catcher([]) == ""
