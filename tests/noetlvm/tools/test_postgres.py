"""`kind: postgres` against a server of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

from noetlvm.keychain.auth import postgres_parts
from noetlvm.limits import TOOL_OUTPUT_BYTES_MAX
from noetlvm.tools.call import Outcome, ToolCall
from noetlvm.tools.postgres_client import PoolLimits, _Pool
from noetlvm.tools.runner import ToolRunner
from tests.servers import new_database

Run = Callable[..., Outcome]
KEY = "01J-execution/3#1"


@pytest.fixture(scope="module")
def dsn(postgres_server: str) -> str:
    return new_database(postgres_server)


@pytest.fixture
def sql(run: Run, dsn: str) -> Callable[..., Outcome]:
    """Run one command."""

    def execute(command: str, params: Any = None, spec: dict[str, Any] | None = None) -> Outcome:
        return run("postgres", {"command": command, "params": params}, spec, {"dsn": dsn})

    return execute


@pytest.fixture
def table(sql: Callable[..., Outcome]) -> Iterator[str]:
    assert sql("CREATE TABLE items (id int PRIMARY KEY, name text)")["status"] == "ok"
    yield "items"
    sql("DROP TABLE items")


Sql = Callable[..., Outcome]


def test_rows_are_mappings(sql: Sql) -> None:
    outcome = sql("SELECT * FROM (VALUES (1, 'a'), (2, NULL)) AS t (id, name)")
    rows = [{"id": 1, "name": "a"}, {"id": 2, "name": None}]
    assert outcome["result"] == {"rows": rows, "columns": ["id", "name"], "row_count": 2}
    assert outcome["pg"] == {}


def test_a_command_without_rows_counts_what_it_changed(sql: Sql, table: str) -> None:
    outcome = sql("INSERT INTO items VALUES (1, 'a'), (2, 'b')")
    assert outcome["result"] == {"rows": [], "columns": [], "row_count": 2}


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("12.50::numeric", 12.5),
        ("3::numeric", 3),
        ("0.1234567890123456789::numeric", "0.1234567890123456789"),
        ("'2026-01-02'::date", "2026-01-02"),
        ("'2026-01-02T03:04:05Z'::timestamptz AT TIME ZONE 'UTC'", "2026-01-02T03:04:05"),
        ("interval '90 s'", 90.0),
        ("'00000000-0000-0000-0000-000000000001'::uuid", "00000000-0000-0000-0000-000000000001"),
        ("'\\xff00'::bytea", "/wA="),
        ("'{\"a\": [1]}'::jsonb", {"a": [1]}),
        ("ARRAY[1, 2]", [1, 2]),
        ("'10.0.0.1'::inet", "10.0.0.1"),
        ("int4range(1, 5)", "[1, 5)"),
    ],
)
def test_a_value_of_any_type_becomes_data(sql: Sql, expression: str, value: Any) -> None:
    assert sql(f"SELECT {expression} AS v")["result"]["rows"] == [{"v": value}]


@pytest.mark.parametrize("value", ["'; DROP TABLE items; --", "%s", "ü"])
def test_parameters_are_bound_and_never_spliced(sql: Sql, table: str, value: str) -> None:
    assert sql("INSERT INTO items VALUES (%s, %s)", [1, value])["status"] == "ok"
    found = sql("SELECT name FROM items WHERE name = %(name)s", {"name": value})
    assert found["result"]["rows"] == [{"name": value}]


def test_mappings_are_bound_as_json_and_lists_as_arrays(sql: Sql) -> None:
    outcome = sql("SELECT %(m)s -> 'a' AS m, 2 = ANY(%(l)s) AS l, %(n)s AS n", {"m": {"a": 1}, "l": [1, 2], "n": [{}]})
    assert outcome["result"]["rows"] == [{"m": 1, "l": True, "n": [{}]}]


def test_the_idempotency_key_is_a_parameter(sql: Sql) -> None:
    assert sql("SELECT %(idempotency_key)s::text AS key", {})["result"]["rows"] == [{"key": KEY}]


def test_a_percent_sign_means_itself_where_there_are_no_parameters(sql: Sql) -> None:
    assert sql("SELECT 'ab' LIKE 'a%' AS is_like")["result"]["rows"] == [{"is_like": True}]


@pytest.mark.parametrize(
    ("command", "state", "kind", "retryable"),
    [
        ("SELEC 1", "42601", "postgres", False),
        ("SELECT 1/0", "22012", "postgres", False),
        ("SELECT * FROM nowhere", "42P01", "postgres", False),
        ("DO $$ BEGIN RAISE SQLSTATE '40001'; END $$", "40001", "postgres", True),
        ("DO $$ BEGIN RAISE SQLSTATE '40P01'; END $$", "40P01", "postgres", True),
        ("DO $$ BEGIN RAISE SQLSTATE '53300'; END $$", "53300", "postgres", True),
        ("DO $$ BEGIN RAISE SQLSTATE '55P03'; END $$", "55P03", "postgres", True),
        ("DO $$ BEGIN RAISE SQLSTATE '08006'; END $$", "08006", "connection", True),
        # The time limit of the statement ends it.
        ("SET statement_timeout = 10; SELECT pg_sleep(5)", "57014", "timeout", True),
        ("SELECT pg_terminate_backend(pg_backend_pid())", "57P01", "postgres", True),
    ],
)
def test_a_failure_says_its_code_and_whether_it_passes(
    sql: Sql, command: str, state: str, kind: str, retryable: bool
) -> None:
    outcome = sql(command)
    assert outcome["pg"] == {"code": state, "sqlstate": state}
    assert (outcome["error"]["kind"], outcome["error"]["retryable"]) == (kind, retryable)


def test_a_broken_constraint_is_named(sql: Sql, table: str) -> None:
    sql("INSERT INTO items VALUES (1, 'a')")
    details = sql("INSERT INTO items VALUES (1, 'b')")["error"]["details"]
    assert details == {"sqlstate": "23505", "constraint": "items_pkey", "table": "items"}


def test_parameters_that_do_not_fit_are_an_error(sql: Sql) -> None:
    outcome = sql("SELECT %s, %s", [1])
    assert (outcome["error"]["kind"], outcome["error"]["retryable"]) == ("postgres", False)


def test_several_statements_are_one_transaction(sql: Sql, table: str) -> None:
    assert sql("INSERT INTO items VALUES (1, 'a'); SELECT 1/0")["status"] == "error"
    assert sql("INSERT INTO items VALUES (2, 'b'); SELECT count(*) AS n FROM items")["result"]["rows"] == [{"n": 1}]


def test_a_transaction_left_open_is_an_error_and_rolled_back(sql: Sql, table: str) -> None:
    outcome = sql("BEGIN; INSERT INTO items VALUES (1, 'a')")
    assert "leaves a transaction open" in outcome["error"]["message"]
    assert sql("SELECT * FROM items")["result"]["rows"] == []


def test_a_command_outside_of_transactions_can_be_run(sql: Sql, table: str) -> None:
    assert sql("VACUUM items")["status"] == "ok"


def test_a_connection_is_used_again_and_is_as_new(run_all: Callable[..., list[Outcome]], dsn: str) -> None:
    def call(command: str) -> tuple[Any, ...]:
        return ("postgres", {"command": command}, None, {"dsn": dsn})

    pid = "SELECT pg_backend_pid() AS pid"
    first, _, _, second, left = run_all(
        call(pid),
        call("SET search_path = elsewhere"),
        call("CREATE TEMP TABLE left_over (x int)"),
        call(pid),
        call("SELECT current_setting('search_path') AS path, to_regclass('pg_temp.left_over')::text AS left_over"),
    )
    assert first["result"] == second["result"]
    assert left["result"]["rows"] == [{"path": '"$user", public', "left_over": None}]


def test_a_connection_that_the_server_has_closed_is_not_used_again(
    run_all: Callable[..., list[Outcome]], dsn: str
) -> None:
    auth = {"dsn": dsn}
    # Another database's pool ends all connections to this one.
    name = urlsplit(dsn).path.removeprefix("/")
    end = f"SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = '{name}'"
    one = ("postgres", {"command": "SELECT 1 AS one"}, None, auth)
    first, ended, second = run_all(one, ("postgres", {"command": end, "database": "postgres"}, None, auth), one)
    assert first["status"] == ended["status"] == second["status"] == "ok"


def test_a_command_that_takes_too_long_is_cancelled_on_the_server(sql: Sql) -> None:
    # The time limit of the task ends it.
    outcome = sql("SELECT pg_sleep(30), 'too slow'", spec={"timeout": 0.3})
    assert (outcome["error"]["kind"], outcome["error"]["retryable"]) == ("timeout", True)
    others = "SELECT count(*) AS n FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%too slow%' AND pid <> "
    assert sql(f"{others} pg_backend_pid()")["result"]["rows"] == [{"n": 0}]


def test_rows_past_the_limit_are_an_error(sql: Sql) -> None:
    half = TOOL_OUTPUT_BYTES_MAX // 2
    assert sql(f"SELECT repeat('x', {half - 10}) AS v FROM generate_series(1, 2)")["status"] == "ok"
    assert sql(f"SELECT repeat('x', {half}) AS v FROM generate_series(1, 2)")["error"]["kind"] == "output"


def test_no_more_rows_are_taken_than_a_result_may_hold(sql: Sql) -> None:
    """Ten gigabytes would never arrive within the time limit."""
    outcome = sql("SELECT repeat('x', 100000) AS v FROM generate_series(1, 100000)", spec={"timeout": 60})
    assert outcome["error"]["kind"] == "output"


@pytest.mark.parametrize(
    ("command", "params"),
    [
        ("SELECT 1 AS a, 2 AS a WHERE false", None),
        ("SELECT 1 AS a, 2 AS a WHERE %s -- nothing", [False]),
        ("SELECT 1 AS a, 2 AS a WHERE false; ", None),
        ("SELECT 1 AS a, ';' AS a WHERE false", None),
    ],
)
def test_a_query_without_rows_has_columns(sql: Sql, command: str, params: Any) -> None:
    assert sql(command, params)["result"] == {"rows": [], "columns": ["a", "a_2"], "row_count": 0}


def test_a_query_that_makes_a_table_counts_its_rows(sql: Sql) -> None:
    assert sql("SELECT n INTO made FROM generate_series(1, 3) AS n")["result"]["row_count"] == 3
    assert sql("TABLE made")["result"]["row_count"] == 3
    assert sql("DROP TABLE made")["status"] == "ok"


def test_no_server_is_a_retryable_error_that_says_where(run: Run, tmp_path: Path) -> None:
    inputs = {"command": "SELECT 1", "host": str(tmp_path), "user": "nobody", "database": "x"}
    outcome = run("postgres", inputs)
    assert (outcome["error"]["kind"], outcome["error"]["retryable"]) == ("connection", True)
    assert "No such file" in outcome["error"]["message"]


def test_a_keychain_entry_that_is_no_address_is_refused_without_quoting_it(run: Run) -> None:
    error = run("postgres", {"command": "SELECT 1"}, None, "s3cret")["error"]
    assert error["kind"] == "input"
    assert "s3cret" not in error["message"]


def test_neither_auth_nor_host_is_refused(run: Run) -> None:
    assert "give at least one of `auth`, `host`" in run("postgres", {"command": "SELECT 1"})["error"]["message"]


def test_fields_of_a_keychain_entry_say_where_to_connect(run: Run, dsn: str) -> None:
    from psycopg.conninfo import conninfo_to_dict

    parts = conninfo_to_dict(dsn)
    entry = {"host": parts["host"], "username": parts["user"], "database": "postgres", "password": "any"}
    assert run("postgres", {"command": "SELECT 1 AS one"}, None, entry)["result"]["rows"] == [{"one": 1}]


def test_columns_of_one_name_get_different_names(sql: Sql) -> None:
    result = sql("SELECT 1 AS id, 2 AS id, 3 AS id_2, 4 AS id")["result"]
    assert result["columns"] == ["id", "id_3", "id_2", "id_4"]
    assert list(result["rows"][0].values()) == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("'infinity'::timestamp", "infinity"),
        ("'-infinity'::timestamptz", "-infinity"),
        ("'infinity'::date", "infinity"),
        ("'0044-03-15 BC'::date", "0044-03-15 BC"),
        ("'294276-12-31'::timestamp", "294276-12-31 00:00:00"),
        ("'24:00'::time", "24:00:00"),
        ("ARRAY['infinity'::date, '2020-01-01'::date]", ["infinity", "2020-01-01"]),
        ("'2020-01-01 10:00'::timestamp", "2020-01-01T10:00:00"),
    ],
)
def test_a_time_that_python_does_not_know_is_text(sql: Sql, expression: str, text: Any) -> None:
    assert sql(f"SELECT {expression} AS x")["result"]["rows"] == [{"x": text}]


@pytest.mark.parametrize(("name", "value"), [("user", "stranger"), ("database", "nowhere"), ("sslmode", "perhaps")])
def test_a_connection_that_the_server_refuses_is_not_tried_again(run: Run, dsn: str, name: str, value: str) -> None:
    auth = postgres_parts(dsn) | {name: value}
    error = run("postgres", {"command": "SELECT 1"}, None, auth)["error"]
    assert (error["kind"], error["retryable"]) == ("connection", False)


def test_several_statements_give_all_their_results(sql: Sql, table: str) -> None:
    result = sql(["INSERT INTO items VALUES (1, 'a'), (2, 'b');", "", "SELECT id FROM items ORDER BY id -- end"])[
        "result"
    ]
    assert result["rows"] == [{"id": 1}, {"id": 2}]
    assert [statement["row_count"] for statement in result["statements"]] == [2, 2]


def test_several_statements_share_parameters(sql: Sql, table: str) -> None:
    insert = "INSERT INTO items VALUES (%(id)s, %(name)s); SELECT name FROM items WHERE id = %(id)s"
    assert sql(insert, {"id": 1, "name": "x'; DROP TABLE items; --"})["result"]["rows"] == [
        {"name": "x'; DROP TABLE items; --"}
    ]
    assert sql("SELECT %s AS a; SELECT %s AS b", [1, "y"])["result"]["statements"][1]["rows"] == [{"b": "y"}]


def test_a_list_of_statements_is_one_transaction(sql: Sql, table: str) -> None:
    assert sql(["INSERT INTO items VALUES (1, 'a')", "SELECT 1/0"])["status"] == "error"
    assert sql("SELECT count(*) AS n FROM items")["result"]["rows"] == [{"n": 0}]


@pytest.mark.parametrize("command", ["", " ; ", [], "-- nothing", "/* nothing */;"])
def test_a_command_without_a_statement_is_an_input_error(sql: Sql, command: Any) -> None:
    assert sql(command)["error"]["kind"] == "input"


def test_numbers_and_lists_are_parameters(sql: Sql) -> None:
    rows = sql(
        "SELECT x FROM generate_series(1, 9) x WHERE x = ANY(%(ids)s) LIMIT %(most)s", {"ids": [2, 4, 6], "most": 2}
    )
    assert rows["result"]["rows"] == [{"x": 2}, {"x": 4}]
    texts = sql("SELECT x FROM (VALUES ('a'), ('b')) t(x) WHERE x = ANY(%s)", [["b", "c"]])
    assert texts["result"]["rows"] == [{"x": "b"}]


@pytest.mark.parametrize(
    ("values", "rows"),
    [("(%s, %s)", [[1, "a"], [2, "b"]]), ("(%(id)s, %(name)s)", [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}])],
)
def test_rows_are_inserted_in_bulk(run: Run, sql: Sql, dsn: str, table: str, values: str, rows: Any) -> None:
    inputs = {"command": f"INSERT INTO items VALUES {values}", "rows": rows}
    assert run("postgres", inputs, None, dsn)["result"]["row_count"] == 2
    assert sql("SELECT * FROM items ORDER BY id")["result"]["rows"] == [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]
    assert run("postgres", inputs | {"rows": [*rows, rows[0]]}, None, dsn)["pg"]["sqlstate"] == "23505"
    assert sql("SELECT count(*) AS n FROM items")["result"]["rows"] == [{"n": 2}]
    assert run("postgres", inputs | {"rows": []}, None, dsn)["result"]["row_count"] == 0


@pytest.mark.parametrize("name", ["command", "commands", "query", "sql", "statement"])
def test_the_command_has_other_names(run: Run, dsn: str, name: str) -> None:
    inputs = {name: "SELECT %(a)s::int AS a", "with": {"a": 3}, "credential": "entry"}
    call = ToolCall("postgres", inputs, {}, KEY, keychain={"entry": dsn})
    assert asyncio.run(run_once(call))["result"]["rows"] == [{"a": 3}]


def test_a_script_is_read_from_a_file(run: Run, dsn: str, tmp_path: Path) -> None:
    (tmp_path / "q.sql").write_text("SELECT 7 AS x;\nSELECT 8 AS x;\n")
    inputs = {"script": {"uri": str(tmp_path / "q.sql"), "source": {"type": "file"}}}
    assert run("postgres", inputs, None, dsn)["result"]["rows"] == [{"x": 8}]


def test_a_pool_opens_no_more_connections_than_its_size(run: Run, dsn: str) -> None:
    async def many(pool: dict[str, Any]) -> list[Outcome]:
        runner = ToolRunner()
        # All calls have begun before the first one ends.
        command = "SELECT pg_backend_pid() AS pid, pg_sleep(0.05)"
        call = ToolCall("postgres", {"command": command, "auth": "e", "pool": pool}, {}, KEY, keychain={"e": dsn})
        try:
            return await asyncio.gather(*(runner.run(call) for _ in range(6)))
        finally:
            await runner.close()

    outcomes = asyncio.run(many({"name": "small", "max_size": 2, "timeout": 30}))
    assert len({outcome["result"]["rows"][0]["pid"] for outcome in outcomes}) <= 2
    crowd = asyncio.run(many({"max_size": 1, "max_waiting": 1}))
    assert sum("max_waiting" in outcome.get("error", {}).get("message", "") for outcome in crowd) == 4


def test_a_call_waits_for_a_connection_no_longer_than_its_pool_says(run: Run, dsn: str) -> None:
    async def test() -> Outcome:
        runner = ToolRunner()
        pool = {"max_size": 1, "timeout": 0.06}
        inputs = {"command": "SELECT pg_advisory_xact_lock(7)", "auth": "e", "pool": pool}
        call = ToolCall("postgres", inputs, {}, KEY, keychain={"e": dsn})
        try:
            with psycopg.connect(dsn) as holder:  # so that the first call holds its connection until the second is late
                holder.execute("SELECT pg_advisory_xact_lock(7)")
                calls = [asyncio.ensure_future(runner.run(call)) for _ in range(2)]
                done, _pending = await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.wait(calls)
            return done.pop().result()
        finally:
            await runner.close()

    assert "no connection became free within 0.06 s" in asyncio.run(test())["error"]["message"]


@pytest.mark.parametrize(("pool", "named"), [({"size": 3}, "`spec.pool` has no `size`"), ({"max_size": "x"}, "number")])
def test_a_pool_setting_that_means_nothing_is_refused(run: Run, dsn: str, pool: Any, named: str) -> None:
    assert named in run("postgres", {"command": "SELECT 1", "pool": pool}, None, dsn)["error"]["message"]


async def run_once(call: ToolCall) -> Outcome:
    runner = ToolRunner()
    try:
        return await runner.run(call)
    finally:
        await runner.close()


class HangingConnection:
    """A connection in a transaction whose rollback never ends."""

    closed = False

    def __init__(self) -> None:
        self.pgconn = self
        self.transaction_status = 2
        self.rolls_back = asyncio.Event()
        self.is_finished = False

    async def rollback(self) -> None:
        self.rolls_back.set()
        await asyncio.Event().wait()

    def finish(self) -> None:
        self.is_finished = True


def test_a_task_that_is_cancelled_while_it_rolls_back_frees_its_slot() -> None:
    async def cancelled() -> tuple[bool, bool]:
        pool = _Pool({}, PoolLimits(max_size=1))
        await pool._slots.acquire()
        connection: Any = HangingConnection()
        returning = asyncio.ensure_future(pool.give_back(connection))
        await connection.rolls_back.wait()
        returning.cancel()
        with pytest.raises(asyncio.CancelledError):
            await returning
        return pool._slots.locked(), connection.is_finished

    assert asyncio.run(cancelled()) == (False, True)
