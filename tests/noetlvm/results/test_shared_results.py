"""What results have that several servers share: damage is noticed, a server that is away is explained."""

from __future__ import annotations

from contextlib import closing

import pytest

from noetlvm.results.interface import ResultDamagedError
from noetlvm.results.nats_object import NatsObjectResults
from noetlvm.results.postgres import PostgresResults
from noetlvm.store.interface import StoreError
from noetlvm.store.postgres_database import PostgresDatabase
from tests.noetlvm.results.test_result_contract import blob


def test_a_damaged_row_is_never_taken_for_the_result(postgres: str) -> None:
    key, data = blob(b"one")
    with closing(PostgresDatabase(postgres, "damaged_results")) as database:
        results = PostgresResults(database)
        results.put([(key, data)])
        database.run("UPDATE results SET data = %s RETURNING key", [b"two"])
        with pytest.raises(ResultDamagedError, match="checksum differs"):
            results.get(key)


def test_a_damaged_object_is_never_taken_for_the_result(nats: str) -> None:
    key, data = blob(b"one")
    with closing(NatsObjectResults(nats, "damaged")) as results:
        results.put([(key, data)])
        results._run(results._objects.put(key, b"two"))
        with pytest.raises(ResultDamagedError, match="checksum differs"):
            results.get(key)


def test_several_processes_share_a_bucket(nats: str) -> None:
    key, data = blob(b"shared" * 100_000)
    with closing(NatsObjectResults(nats, "shared")) as first, closing(NatsObjectResults(nats, "shared")) as second:
        first.put([(key, data)])
        assert second.get(key) == data


def test_a_nats_server_that_is_away_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("noetlvm.results.nats_object._SECONDS", 0.5)
    with pytest.raises(StoreError, match="NATS does not answer"):
        NatsObjectResults("nats://127.0.0.1:1", "away")


def test_a_closed_bucket_accepts_nothing_more(nats: str) -> None:
    results = NatsObjectResults(nats, "closed")
    results.close()
    results.close()
    with pytest.raises(StoreError, match="closed"):
        results.put([blob(b"one")])
