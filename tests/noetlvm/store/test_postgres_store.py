"""What only the PostgreSQL store has: several servers over one database, partitions, its clock, lost connections."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

import psycopg
import pytest

from noetlvm.store.interface import DamagedError, QueuedCommand, Snapshot, StoreError
from noetlvm.store.postgres import PostgresStore
from noetlvm.store.postgres_schema import MIGRATIONS, end_of_period, migrate, period_of
from tests.noetlvm.store.records import add, append, events, execution

NUMBERS = count()


@pytest.fixture
def schema() -> str:
    return f"p{next(NUMBERS)}"


@pytest.fixture
def servers(postgres: str, schema: str) -> Iterator[list[PostgresStore]]:
    with ExitStack() as stack:
        yield [stack.enter_context(closing(PostgresStore(postgres, schema))) for _ in range(3)]


def run_at_once(*works: Callable[[], None]) -> None:
    errors: list[BaseException] = []

    def run(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(work,), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive()
    assert not errors, errors


def sql(servers: list[PostgresStore], statement: str) -> None:
    with servers[0].database.connection() as connection:
        connection.execute(statement.encode())


def test_a_write_is_prepared_again_after_its_connection_has_dropped_its_statements(
    servers: list[PostgresStore],
) -> None:
    """After a rollback psycopg drops all of a connection, ours too."""
    store = servers[0]
    store.write([append(execution("a"), 0, events([1]))])
    sql(servers, "DEALLOCATE ALL")
    assert store.write([append(execution("a"), 1, events([2]))]) == set()
    assert [recorded.seq for recorded in store.events("a")] == [1, 2]


@pytest.mark.parametrize("size", [1, 3])
def test_the_plan_of_a_write_finds_rows_by_their_keys_though_its_tables_are_empty(
    servers: list[PostgresStore], monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    """It is made once: a plan that reads small tables whole would do so when they are large."""
    store, statements = servers[0], list[bytes]()
    run = store.database.run_binary
    monkeypatch.setattr(store, "_run_binary", lambda text, values: statements.append(text) or run(text, values))
    rows = [execution(f"e{number}") for number in range(size)]
    commands = [QueuedCommand(row.execution_id, 1, "", 1) for row in rows]
    born = [append(row, 0, events([1]), start_key=row.execution_id) for row in rows]
    store.write([one._replace(opened=[command]) for one, command in zip(born, commands, strict=True)])
    moved = [append(row, 1, events([2])) for row in rows]
    store.write([one._replace(closed=[command]) for one, command in zip(moved, commands, strict=True)])
    for statement in statements:
        with store.database.connection() as connection:
            result = connection.pgconn.exec_(b"EXPLAIN (GENERIC_PLAN) " + statement)
        plan = [(result.get_value(row, 0) or b"").decode() for row in range(result.ntuples)]
        assert len(plan) > 10
        assert not [line for line in plan if "Seq Scan" in line]
        by_command = [line for line in plan if "Index Cond" in line and "run" in line]
        assert all("execution" in line for line in by_command)
    assert len(statements) == 2


# ---- several servers


def test_servers_that_write_the_same_executions_in_other_orders_take_turns_and_lose_nothing(
    servers: list[PostgresStore],
) -> None:
    names = [f"e{number}" for number in range(6)]
    servers[0].write([append(execution(name), 0, events([1])) for name in names])
    goal = 15

    def server(store: PostgresStore, order: list[str]) -> Callable[[], None]:
        def work() -> None:
            written: Counter[str] = Counter()
            while min(written[name] for name in names) < goal:
                batch = []
                for name in order:
                    row = store.execution(name)
                    assert row is not None
                    batch.append(append(row, row.seq, events([row.seq + 1])))
                written.update(set(names) - store.write(batch))

        return work

    orders = [names, names[::-1], names[3:] + names[:3]]
    run_at_once(*(server(store, order) for store, order in zip(servers, orders, strict=True)))
    for name in names:
        seqs = [recorded.seq for recorded in servers[0].events(name)]
        assert seqs == list(range(1, len(seqs) + 1))
        assert len(seqs) >= 3 * goal + 1


def test_commands_are_claimed_by_one_of_several_servers(servers: list[PostgresStore]) -> None:
    commands = [QueuedCommand("x", run, "", 1) for run in range(200)]
    add(servers[0], execution(), 0, opened=commands)
    claimed: list[int] = []

    def claim(store: PostgresStore, worker: str) -> Callable[[], None]:
        def work() -> None:
            while found := store.claim(worker, ["default"], 10.0, 7, 1.0):
                claimed.extend(command.run for command in found)

        return work

    run_at_once(*(claim(store, f"w{number}") for number, store in enumerate(servers)))
    assert sorted(claimed) == list(range(200))


def test_of_equal_starts_at_several_servers_one_wins(servers: list[PostgresStore]) -> None:
    lost: list[set[str]] = []

    def start(number: int) -> Callable[[], None]:
        return lambda: lost.append(add(servers[number % 3], execution(f"e{number}"), 0, start_key="k"))

    run_at_once(*(start(number) for number in range(30)))
    (row,) = servers[0].executions()
    assert sum(map(len, lost)) == 29
    assert servers[1].started("k") == row.execution_id


def test_a_version_is_given_once_however_many_servers_register_at_once(servers: list[PostgresStore]) -> None:
    def register(number: int) -> Callable[[], None]:
        def work() -> None:
            servers[number % 3].register("p", f"sha256:{number}", b"", 1.0)

        return work

    run_at_once(*(register(number) for number in range(12)))
    assert [entry.version for entry in servers[0].versions("p")] == list(range(12, 0, -1))


def test_a_checksum_chain_goes_on_over_writes_of_several_servers(servers: list[PostgresStore]) -> None:
    for seq in range(9):
        assert add(servers[seq % 3], execution(), seq) == set()
    assert len(list(servers[0].events("x"))) == 9
    sql(servers, "UPDATE chunks SET sum = sum + 1 WHERE seq = 5")
    with pytest.raises(DamagedError, match=r"event 5 of x is damaged: its checksum differs"):
        list(servers[0].events("x"))
    sql(servers, "DELETE FROM chunks WHERE seq = 4")
    with pytest.raises(DamagedError, match="event 4 of 9 of x is missing"):
        list(servers[0].events("x"))


def test_a_request_that_is_committed_after_one_with_a_higher_number_is_not_missed(servers: list[PostgresStore]) -> None:
    store, other = servers[:2]
    add(store, execution(), 0)
    insert = "INSERT INTO requests (execution_id, action, data) VALUES ('x', 'pause', '\\xc0'::bytea) RETURNING number"
    with other.database.connection() as connection:
        with connection.transaction():
            row = connection.execute(insert.encode()).fetchone()
            assert row is not None
            store.request("x", "cancel")
            (cancel,) = store.requests()
            assert cancel.number > row[0]
        assert [request.action for request in store.requests(after=cancel.number)] == ["pause"]
    assert store.requests(after=cancel.number) == []
    assert [request.action for request in store.requests()] == ["pause", "cancel"]


def test_returned_requests_are_forgotten_once_acknowledged(
    servers: list[PostgresStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("noetlvm.store.postgres._RETURNED_MAX", 5)
    store = servers[0]
    add(store, execution(), 0)
    for seq in range(1, 20):
        store.request("x", "pause")
        (request,) = store.requests()
        add(store, execution(), seq, acknowledged=[request.number])
    assert len(store._returned) <= 6


def test_a_snapshot_does_not_hide_a_gap_before_it(servers: list[PostgresStore]) -> None:
    for seq in range(6):
        add(servers[0], execution(), seq, snapshot=Snapshot("sha256:b", seq, {}) if seq else None)
    assert servers[1].snapshot("x", "sha256:b") is not None
    sql(servers, "DELETE FROM chunks WHERE seq = 3")
    with pytest.raises(DamagedError, match="event 3 of 5 of x is missing"):
        servers[0].snapshot("x", "sha256:b")


# ---- schema


def test_several_servers_may_migrate_at_once(postgres: str, schema: str) -> None:
    opened: list[PostgresStore] = []
    run_at_once(*(lambda: opened.append(PostgresStore(postgres, schema)) for _ in range(6)))
    for store in opened:
        add(store, execution(f"e{opened.index(store)}"), 0)
    assert len(opened[0].executions()) == 6
    for store in opened:
        store.close()


def test_later_steps_are_taken_once_and_a_failing_step_changes_nothing(
    servers: list[PostgresStore], schema: str
) -> None:
    later = (*MIGRATIONS, ("ALTER TABLE executions ADD COLUMN owner text NOT NULL DEFAULT 'nobody'",))
    with servers[0].database.connection() as connection:
        with pytest.raises(psycopg.errors.DuplicateTable):
            migrate(connection, schema, (*MIGRATIONS, ("CREATE TABLE half (a int)", "CREATE TABLE bundles (a int)")))
        assert connection.execute("SELECT to_regclass('half')").fetchone() == (None,)
        migrate(connection, schema, later)
        migrate(connection, schema, later)
        assert connection.execute("SELECT owner FROM executions").fetchall() == []


def test_events_that_had_a_row_each_are_moved_into_chunks(postgres: str, schema: str) -> None:
    with closing(sqlite3.connect(":memory:")) as old, psycopg.connect(postgres, autocommit=True) as connection:
        old.executescript(Path(__file__).with_name("schema_4.sql").read_text(encoding="utf-8"))
        rows = old.execute("SELECT 202311, place >> 32, place & 255, * FROM events").fetchall()
        connection.execute(f"SET search_path TO {schema}".encode())
        migrate(connection, schema, MIGRATIONS[:3])
        connection.execute("CREATE TABLE events_202311 PARTITION OF events FOR VALUES IN (202311)")
        for id, seq in (("x", 6), ("y", 3), ("z", 1)):
            columns = "execution_id, bundle, name, path, status, started, parent, counts, seq, period"
            values = (id, "b", "n", "p", "running", 1_700_000_000.25, "", "{}", seq, 202311)
            marks = ", ".join(["%s"] * len(values))
            connection.execute(f"INSERT INTO executions ({columns}) VALUES ({marks})".encode(), values)
        for period, execution_key, seq, _, *values_of_event in rows:
            row = (period, execution_key, seq, *values_of_event)
            connection.execute(f"INSERT INTO events VALUES ({', '.join(['%s'] * len(row))})".encode(), row)
        connection.execute("UPDATE events SET label = 'other' WHERE execution = 2 AND seq = 3")
    with closing(PostgresStore(postgres, schema)) as store:
        assert [one.event_id for one in store.events("x")] == [f"event-{seq}" for seq in range(1, 7)]
        add(store, execution("x", started=1_700_000_000.25), 6)
        assert [one.seq for one in store.events("x")] == [1, 2, 3, 4, 5, 6, 7]
        assert [one.what for one in store.damage() if "event" in one.what] == [
            "event 3 of y is damaged: its checksum differs",
            "event 1 of z is missing",
        ]


def test_a_database_of_a_later_noetlvm_is_refused(servers: list[PostgresStore], postgres: str, schema: str) -> None:
    sql(servers, "INSERT INTO migrations (version) VALUES (99)")
    with pytest.raises(StoreError, match=r"a later noetlvm wrote .*; update noetlvm"):
        PostgresStore(postgres, schema)


def test_old_months_are_removed_by_dropping_their_tables(servers: list[PostgresStore]) -> None:
    store = servers[0]
    months = {"a": (2025, 11), "b": (2025, 12), "c": (2025, 12), "d": (2026, 1)}
    for name, (year, month) in months.items():
        started = datetime(year, month, 20, tzinfo=UTC).timestamp()
        ended = None if name == "a" else started + 5.0
        command = QueuedCommand(name, 1, "", 1)
        add(store, execution(name, started=started, ended=ended), 0, opened=[command], start_key=name)
    assert store.delete_before(datetime(2026, 1, 1, tzinfo=UTC).timestamp()) == 2
    assert [row.execution_id for row in store.executions()] == ["d", "a"]
    assert [row.execution_id for row in store.claim("w", ["default"], 9.0, 9, 1.0)] == ["a", "d"]
    with store.database.connection() as connection:
        select = "SELECT relname FROM pg_class WHERE relname LIKE 'chunks_20%%' AND relnamespace = %s::regnamespace"
        tables = connection.execute(select, [store.database.schema]).fetchall()
    assert sorted(name for (name,) in tables if "pkey" not in name) == ["chunks_202511", "chunks_202601"]
    assert len(list(store.events("d"))) == 1


@pytest.mark.parametrize(("period", "end"), [(202611, (2026, 12)), (202612, (2027, 1))])
def test_a_period_is_a_month(period: int, end: tuple[int, int]) -> None:
    over = datetime(*end, 1, tzinfo=UTC).timestamp()
    assert end_of_period(period) == over
    assert (period_of(over - 1), period_of(over)) == (period, end[0] * 100 + end[1])


# ---- time and connections


def test_time_is_that_of_the_database(servers: list[PostgresStore], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: 12.0)
    with servers[0].database.connection() as connection:
        row = connection.execute("SELECT extract(epoch FROM clock_timestamp())::float8").fetchone()
    assert row is not None
    assert abs(servers[0].now() - row[0]) < 60


def test_a_lost_connection_is_an_error_once_and_the_next_call_connects_again(servers: list[PostgresStore]) -> None:
    store, other = servers[:2]
    add(store, execution(), 0)
    with other.database.connection() as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    with pytest.raises(StoreError, match=r"postgresql://.*is PostgreSQL running"):
        add(store, execution(), 1)
    assert add(store, execution(), 1) == set()


def test_an_address_where_nothing_listens_is_explained_without_its_password() -> None:
    with pytest.raises(StoreError, match="is PostgreSQL running") as raised:
        PostgresStore("postgresql://somebody:hunter2@127.0.0.1:1/runs")
    assert "hunter2" not in str(raised.value)


def test_a_host_that_does_not_answer_is_noticed_unless_the_address_says_otherwise(postgres: str, schema: str) -> None:
    with closing(PostgresStore(f"{postgres}&keepalives_idle=60", schema)) as store, store.database.connection() as one:
        known = one.info.get_parameters()
    assert (known["keepalives_idle"], known["keepalives_interval"], known["tcp_user_timeout"]) == ("60", "5", "20000")
