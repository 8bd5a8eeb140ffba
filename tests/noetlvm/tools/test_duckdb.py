"""`kind: duckdb`, in memory and in a file."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from noetlvm.limits import TOOL_OUTPUT_BYTES_MAX
from noetlvm.tools.call import Outcome

Run = Callable[..., Outcome]
ENDLESS = "SELECT count(*) FROM range(10000000) a, range(10000000) b WHERE a.range * b.range % 7 = 3"


def test_rows_are_mappings(run: Run) -> None:
    outcome = run("duckdb", {"command": "SELECT range AS n, n * 2 AS double FROM range(2)"})
    rows = [{"n": 0, "double": 0}, {"n": 1, "double": 2}]
    assert outcome == {"status": "ok", "result": {"rows": rows, "columns": ["n", "double"], "row_count": 2}}


@pytest.mark.parametrize(
    ("command", "params"),
    [
        ("SELECT ? AS a, ? AS b", [1, "x'y"]),
        ("SELECT $a AS a, $b AS b", {"a": 1, "b": "x'y"}),
        ("CREATE TABLE t AS SELECT $a AS a; SELECT a, $b AS b FROM t", {"a": 1, "b": "x'y"}),
    ],
)
def test_parameters_are_bound_by_place_or_by_name(run: Run, command: str, params: Any) -> None:
    assert run("duckdb", {"command": command, "params": params})["result"]["rows"] == [{"a": 1, "b": "x'y"}]


def test_several_statements_give_the_last_ones_result(run: Run) -> None:
    command = "CREATE TABLE t (x int); INSERT INTO t VALUES (1), (2)"
    assert run("duckdb", {"command": command})["result"] == {"rows": [], "columns": [], "row_count": 2}
    assert run("duckdb", {"command": f"{command} RETURNING x"})["result"]["rows"] == [{"x": 1}, {"x": 2}]
    assert run("duckdb", {"command": "CREATE TABLE t (x int)"})["result"]["row_count"] == 0


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("1.50::DECIMAL(4, 2)", 1.5),
        ("DATE '2026-01-02'", "2026-01-02"),
        ("TIMESTAMP '2026-01-02 03:04:05'", "2026-01-02T03:04:05"),
        ("'\\xFF'::BLOB", "/w=="),
        ("[1, 2]", [1, 2]),
        ("{'a': 1}", {"a": 1}),
        ("MAP {1: 'x'}", {"1": "x"}),
        ("INTERVAL 2 MINUTE", 120.0),
        ("170141183460469231731687303715884105727", 170141183460469231731687303715884105727),
    ],
)
def test_a_value_of_any_type_becomes_data(run: Run, expression: str, value: Any) -> None:
    assert run("duckdb", {"command": f"SELECT {expression} AS v"})["result"]["rows"] == [{"v": value}]


def test_a_database_in_memory_is_new_for_each_task(run_all: Callable[..., list[Outcome]]) -> None:
    _, second = run_all(("duckdb", {"command": "CREATE TABLE t (x int)"}), ("duckdb", {"command": "FROM t"}))
    assert second["error"]["details"] == {"exception_type": "CatalogException"}


def test_a_file_keeps_what_is_written_and_can_be_opened_for_reading_alone(run: Run, tmp_path: Path) -> None:
    database = str(tmp_path / "data.duckdb")
    assert run("duckdb", {"command": "CREATE TABLE t AS SELECT 1 AS x", "database": database})["status"] == "ok"
    assert run("duckdb", {"command": "FROM t", "database": database}, {"read_only": True})["result"]["row_count"] == 1
    written = run("duckdb", {"command": "INSERT INTO t VALUES (2)", "database": database}, {"read_only": True})
    assert (written["error"]["kind"], written["error"]["retryable"]) == ("duckdb", False)


def test_a_file_that_cannot_be_opened_is_an_error(run: Run, tmp_path: Path) -> None:
    outcome = run("duckdb", {"command": "SELECT 1", "database": str(tmp_path / "no" / "such" / "folder")})
    assert outcome["error"]["details"] == {"exception_type": "IOException"}


@pytest.mark.parametrize("command", ["SELEC 1", "SELECT ?", "", "SELECT 1/0 +'x'"])
def test_a_command_that_fails_is_an_error_that_does_not_pass(run: Run, command: str) -> None:
    outcome = run("duckdb", {"command": command})
    assert (outcome["error"]["kind"], outcome["error"]["retryable"]) == ("duckdb", False)


def test_a_command_that_takes_too_long_is_interrupted(run: Run) -> None:
    outcome = run("duckdb", {"command": ENDLESS}, {"timeout": 0.3})
    assert (outcome["error"]["kind"], outcome["error"]["retryable"]) == ("timeout", True)


def test_an_interrupted_command_leaves_nothing_for_the_event_loop_to_print(
    run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    run("duckdb", {"command": "SELECT count(*) FROM range(100000000000) a, range(1000) b"}, {"timeout": 0.2})
    gc.collect()
    assert caplog.records == []


def test_columns_of_one_name_are_told_apart(run: Run) -> None:
    outcome = run("duckdb", {"command": "SELECT 1 AS id, 2 AS id"})
    assert outcome["result"] == {"rows": [{"id": 1, "id_2": 2}], "columns": ["id", "id_2"], "row_count": 1}


def test_a_cancelled_command_is_interrupted(cancel: Callable[..., None]) -> None:
    began = time.monotonic()
    cancel("duckdb", {"command": ENDLESS}, lambda: time.monotonic() > began + 0.3)


def test_rows_past_the_limit_are_an_error(run: Run) -> None:
    size = TOOL_OUTPUT_BYTES_MAX
    assert run("duckdb", {"command": f"SELECT repeat('x', {size - 1}) AS v"})["status"] == "ok"
    assert run("duckdb", {"command": f"SELECT repeat('x', {size}) AS v"})["error"]["kind"] == "output"
