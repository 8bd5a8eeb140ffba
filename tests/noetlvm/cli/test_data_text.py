"""Data as the commands print it: JSON that any program reads, and lines for people."""

from __future__ import annotations

import json
import math
import sys

import pytest

from noetlvm.cli.data_text import Table, print_table
from noetlvm.cli.view import FirstFailure, summary
from noetlvm.data.references import as_json
from noetlvm.rounds.active import Ending
from noetlvm.store.interface import Execution


def refuse(word: str) -> None:
    raise AssertionError(f"{word} is not JSON")


def test_numbers_that_json_has_no_word_for_are_null() -> None:
    value = {"a": [math.nan, {"b": math.inf}], "c": (-math.inf, 1.5), "d": "NaN"}
    printed = as_json(value)
    assert json.loads(printed, parse_constant=refuse) == {"a": [None, {"b": None}], "c": [None, 1.5], "d": "NaN"}


def test_an_identifier_is_shown_whole_on_a_narrow_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    id = "01a1e355-2594-7512-a8ae-7e0389baba71"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "60")
    print_table(Table("Executions", ("execution", "playbook", "status"), [(id, "a rather long name " * 3, "success")]))
    assert id in capsys.readouterr().out


def test_a_table_shows_control_characters_and_obeys_none(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(Table("Executions", ("playbook",), [("\x1b[2Jevil",)]))
    assert capsys.readouterr().out == "playbook\n\\u001b[2Jevil\n\n"


def test_a_failure_is_reported_without_control_characters_and_with_its_lines_in_line() -> None:
    row = Execution("e", "bundle", "sync", "sync", "failed", 0.0, 1.0)
    ending = Ending("e", "failed", {}, None, [], 1, 9)
    failed = FirstFailure("load", "", {"kind": "postgres", "message": "line one\nline \x1b[31mtwo\n"})
    reported = "\n".join(summary(row, ending, failed, None))
    assert "    error: postgres: line one\n           line \\u001b[31mtwo" in reported
