"""Which tests are near a change: from lines to functions, from functions to tests, and within a time."""

from __future__ import annotations

from pathlib import Path

import pytest

from noetlvm import nearest
from tests.whole.near.__main__ import chosen, reaching, select
from tests.whole.near.changes import Change, functions_at, imports_of
from tests.whole.near.plugin import name_of
from tests.whole.near.record import MODULE, Record, Row

SOURCE = """\
LIMIT = 3

class Queue:
    size = 1

    @property
    def head(self):
        def inner():
            return 1
        return inner()

def empty(queue):
    return not queue
"""
RUN, READ, WRITE = "noetlc/a.py:run", "noetlc/a.py:read", "noetlc/b.py:write"
NOTHING = Change(frozenset(), (), ())


def record(**rows: tuple[float, int]) -> Record:
    made = {f"tests/test_{name}": Row(seconds, False, reached) for name, (seconds, reached) in rows.items()}
    return Record([RUN, READ, WRITE], {name.replace("__", ".py::"): row for name, row in made.items()})


@pytest.mark.parametrize(
    ("lines", "functions"),
    [
        (range(13, 14), {"empty"}),
        (range(6, 7), {"Queue.head"}),
        (range(9, 10), {"Queue.head"}),
        (range(4, 5), {MODULE}),
        (range(1, 3), {MODULE}),
        (range(10, 13), {"Queue.head", "empty"}),
        (range(2, 3), set()),
        (range(99, 99), set()),
    ],
)
def test_changed_lines_belong_to_functions_or_to_their_module(lines: range, functions: set[str]) -> None:
    assert functions_at(SOURCE, lines) == functions


def test_tests_that_reach_a_changed_function_are_near() -> None:
    known = record(a__one=(1, 0b001), a__two=(1, 0b010), b__one=(1, 0b101))
    assert reaching(NOTHING._replace(functions=frozenset({RUN})), known) == {
        "tests/test_a.py::one",
        "tests/test_b.py::one",
    }


@pytest.mark.parametrize("function", [MODULE, "a_new_one"])
def test_a_change_outside_of_known_functions_reaches_all_tests_of_its_file(function: str) -> None:
    known = record(a__one=(1, 0b001), a__two=(1, 0b010), b__one=(1, 0b100))
    change = NOTHING._replace(functions=frozenset({f"noetlc/a.py:{function}"}))
    assert reaching(change, known) == {"tests/test_a.py::one", "tests/test_a.py::two"}


def test_narrow_tests_come_first_and_one_of_every_file_before_the_second_of_any() -> None:
    known = record(a__wide=(1, 0b111), a__narrow=(1, 0b001), b__one=(1, 0b011), b__slow=(9, 0b001))
    near = chosen(set(known.rows), known, seconds=3.5)
    assert near == ["tests/test_a.py::narrow", "tests/test_b.py::one", "tests/test_a.py::wide"]


def test_what_does_not_fit_is_counted(capsys: pytest.CaptureFixture[str]) -> None:
    known = record(a__one=(1, 0b001), b__one=(9, 0b001))
    change = Change(frozenset({RUN}), ("tests/test_c.py",), ("docs/style.md",))
    assert select(change, known, seconds=2) == (["tests/test_a.py::one"], ["tests/test_c.py"])
    printed = capsys.readouterr().out
    assert "left out: 1 of 2 tests that reach the change (1 in tests" in printed
    assert "no record says which tests read these: docs/style.md" in printed


def test_without_a_record_the_tests_that_import_a_changed_module_run(capsys: pytest.CaptureFixture[str]) -> None:
    change = NOTHING._replace(functions=frozenset({"noetlvm/nearest.py:nearest"}))
    tests, files = select(change, None, seconds=2)
    assert (tests, "tests/whole/near/test_near.py" in files) == ([], True)
    assert "there is no record" in capsys.readouterr().out


def test_records_of_two_runs_are_put_together() -> None:
    first = Record([RUN, READ], {"one": Row(1, False, 0b10), "two": Row(1, False, 0b01)})
    first.add(Record([WRITE, RUN], {"two": Row(2, True, 0b11)}))
    assert first.functions == [RUN, READ, WRITE]
    assert first.rows == {"one": Row(1, False, 0b10), "two": Row(2, True, 0b101)}
    assert first.tests_of([WRITE]) == ["two"]


def test_a_record_says_which_modules_changed_since(tmp_path: Path) -> None:
    known = record(a__one=(1, 0b001))
    known.write(tmp_path / "record")
    again = Record.read(tmp_path / "record")
    assert again is not None
    assert (again.rows, "noetlvm/nearest.py" in again.changed_files()) == (known.rows, True)


def test_a_code_has_the_name_of_the_function_around_it() -> None:
    functions = [one for one in vars(nearest).values() if getattr(one, "__module__", "") == nearest.__name__]
    names = {name_of(one.__code__) for one in functions if hasattr(one, "__code__")}
    assert names
    assert all(name.startswith("noetlvm/nearest.py:") for name in names)
    assert name_of(test_a_code_has_the_name_of_the_function_around_it.__code__) == ""


@pytest.mark.parametrize(
    "statement",
    ["import noetlc.net.net", "from noetlc.net.net import build_net", "from noetlc.net import net, source",
     "from noetlc.net import (\n    source,\n    net,\n)"],
)  # fmt: skip
def test_statements_that_import_a_module(statement: str) -> None:
    assert imports_of("noetlc/net/net.py").search(statement)
    assert not imports_of("noetlc/net/node.py").search(statement)
