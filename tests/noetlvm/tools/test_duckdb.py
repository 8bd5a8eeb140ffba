"""`kind: duckdb`, in memory and in a file."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

from noetlvm.limits import TOOL_OUTPUT_BYTES_MAX
from noetlvm.tools import duckdb as duckdb_tool
from noetlvm.tools.call import Outcome, ToolCall
from noetlvm.tools.runner import ToolRunner

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


def test_several_statements_give_the_last_ones_result_and_all_of_them(run: Run) -> None:
    command = "CREATE TABLE t (x int); INSERT INTO t VALUES (1), (2)"
    none = {"rows": [], "columns": [], "row_count": 0}
    last = none | {"row_count": 2}
    assert run("duckdb", {"command": command})["result"] == last | {"statements": [none, last]}
    as_list = run("duckdb", {"commands": ["SELECT 1 AS a;", "  ", "SELECT ? AS b -- end"], "params": [5]})["result"]
    assert [statement["rows"] for statement in as_list["statements"]] == [[{"a": 1}], [{"b": 5}]]
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


@pytest.mark.parametrize("command", ["SELEC 1", "SELECT ?", "SELECT 1/0 +'x'"])
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


def test_columns_of_one_name_get_different_names(run: Run) -> None:
    outcome = run("duckdb", {"command": "SELECT 1 AS id, 2 AS id"})
    assert outcome["result"] == {"rows": [{"id": 1, "id_2": 2}], "columns": ["id", "id_2"], "row_count": 1}


def test_a_cancelled_command_is_interrupted(cancel: Callable[..., None]) -> None:
    began = time.monotonic()
    cancel("duckdb", {"command": ENDLESS}, lambda: time.monotonic() > began + 0.3)


def test_rows_past_the_limit_are_an_error(run: Run) -> None:
    size = TOOL_OUTPUT_BYTES_MAX
    assert run("duckdb", {"command": f"SELECT repeat('x', {size - 1}) AS v"})["status"] == "ok"
    assert run("duckdb", {"command": f"SELECT repeat('x', {size}) AS v"})["error"]["kind"] == "output"


@pytest.mark.parametrize("command", ["", "  ;\n; ", [], ["", ";"], "-- nothing", [1]])
def test_a_command_without_a_statement_is_an_input_error(run: Run, command: Any) -> None:
    assert run("duckdb", {"command": command})["error"]["kind"] == "input"


def test_a_list_of_parameters_goes_to_the_statements_in_order(run: Run) -> None:
    result = run("duckdb", {"query": "SELECT ? AS a, ? AS b; SELECT ? AS c", "params": [1, "x", 2.5]})["result"]
    assert [statement["rows"] for statement in result["statements"]] == [[{"a": 1, "b": "x"}], [{"c": 2.5}]]


def test_numbers_and_lists_are_parameters(run: Run) -> None:
    inputs = {
        "sql": "SELECT x FROM range(5) t(x) WHERE list_contains($xs, x) AND x < $most",
        "with": {"xs": [1, 3, 4], "most": 4},
    }
    assert run("duckdb", inputs)["result"]["rows"] == [{"x": 1}, {"x": 3}]


@pytest.mark.parametrize(
    ("values", "rows"),
    [("(?, ?)", [[1, "a"], [2, "b"]]), ("($id, $name)", [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}])],
)
def test_rows_are_inserted_in_bulk(run: Run, tmp_path: Path, values: str, rows: Any) -> None:
    database = str(tmp_path / "d.duckdb")
    run("duckdb", {"command": "CREATE TABLE t (id int, name text)", "database": database})
    result = run("duckdb", {"command": f"INSERT INTO t VALUES {values}", "rows": rows, "database": database})["result"]
    assert result["row_count"] == 2
    read = run("duckdb", {"command": "FROM t ORDER BY id", "database": database})["result"]["rows"]
    assert read == [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]


def test_rows_of_different_forms_are_refused(run: Run) -> None:
    error = run("duckdb", {"command": "SELECT ?", "rows": [[1], {"a": 1}]})["error"]
    assert "`rows[1]` must be a list" in error["message"]


def test_a_script_is_read_from_a_file(run: Run, tmp_path: Path) -> None:
    (tmp_path / "q.sql").write_text("SELECT 7 AS x")
    for script in ({"uri": str(tmp_path / "q.sql"), "source": {"type": "file"}}, {"uri": f"file://{tmp_path}/q.sql"}):
        assert run("duckdb", {"script": script})["result"]["rows"] == [{"x": 7}]
    for script, named in (({"uri": "gs://b/q.sql"}, "`gs`"), ({"uri": str(tmp_path / "none")}, "cannot be read")):
        assert named in run("duckdb", {"script": script})["error"]["message"]


def test_a_database_is_attached_by_its_keychain_entry(run: Run, tmp_path: Path) -> None:
    other = str(tmp_path / "other.duckdb")
    run("duckdb", {"command": "CREATE TABLE t AS SELECT 3 AS x", "database": other})
    for attach in ({"o": "entry"}, {"o": {"auth": "entry", "type": "duckdb"}}, {"o": {"key": "entry", "type": "file"}}):
        outcome = run_with({"entry": other}, {"command": "SELECT x FROM o.t", "attach": attach})
        assert outcome["result"]["rows"] == [{"x": 3}]
    missing = run_with({}, {"command": "SELECT 1", "auth": {"o": "nobody"}})
    assert missing["error"]["message"] == "`attach.o`: the keychain has no entry `nobody`"


@pytest.mark.parametrize(
    ("entry", "use", "statements"),
    [
        (
            "postgresql://me:it's@db:5433/shop",
            "pg",
            [
                "INSTALL postgres_scanner",
                "LOAD postgres_scanner",
                "CREATE OR REPLACE TEMPORARY SECRET \"shop_secret\" (TYPE 'postgres', HOST 'db', PORT '5433', "
                "DATABASE 'shop', USER 'me', PASSWORD 'it''s')",
                'ATTACH \'\' AS "shop" (TYPE postgres, SECRET "shop_secret")',
            ],
        ),
        (
            {"key_id": "K", "secret": "S", "region": "eu"},
            {"auth": "pg", "type": "gcs", "scope": "gs://bucket"},
            [
                "INSTALL httpfs",
                "LOAD httpfs",
                "CREATE OR REPLACE TEMPORARY SECRET \"shop\" (TYPE 'gcs', KEY_ID 'K', SECRET 'S', REGION 'eu', "
                "SCOPE 'gs://bucket')",
            ],
        ),
    ],
)
def test_servers_and_object_stores_are_attached_through_secrets(
    entry: Any, use: Any, statements: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    call = ToolCall("duckdb", {"attach": {"shop": use}}, {}, "key", keychain={"pg": entry})
    assert duckdb_tool._attachments(call) == statements


def test_an_extension_that_is_installed_as_a_package_is_not_downloaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "duckdb_extension_httpfs" / "extensions" / f"v{duckdb.__version__}" / "httpfs.duckdb_extension"
    file.parent.mkdir(parents=True)
    file.touch()
    (tmp_path / "duckdb_extension_httpfs" / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    call = ToolCall("duckdb", {"attach": {"s": "s"}}, {}, "key", keychain={"s": {"key_id": "K", "secret": "S"}})
    assert duckdb_tool._attachments(call)[0] == f"LOAD '{file}'"


def run_with(keychain: dict[str, Any], inputs: dict[str, Any]) -> Outcome:
    async def once() -> Outcome:
        runner = ToolRunner()
        return await runner.run(ToolCall("duckdb", inputs, {}, "key", keychain=keychain))

    return asyncio.run(once())
