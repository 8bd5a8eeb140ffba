"""What every result store promises; each test runs against each store."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from hashlib import sha256
from itertools import count
from pathlib import Path

import pytest

from noetlvm.language.placement import StoreName
from noetlvm.results.files import FileResults
from noetlvm.results.interface import Collected, MemoryResults, ResultMissingError, ResultStore
from noetlvm.results.nats_object import NatsObjectResults
from noetlvm.results.offered import OfferedResults
from noetlvm.results.postgres import PostgresResults
from noetlvm.store.postgres_database import PostgresDatabase

NUMBERS = count()


@contextmanager
def postgres_results(request: pytest.FixtureRequest) -> Iterator[ResultStore]:
    with closing(PostgresDatabase(request.getfixturevalue("postgres"), f"r{next(NUMBERS)}")) as database:
        yield PostgresResults(database)


def nats_results(request: pytest.FixtureRequest) -> AbstractContextManager[ResultStore]:
    return closing(NatsObjectResults(request.getfixturevalue("nats"), f"bucket-{next(NUMBERS)}"))


Open = Callable[[Path, pytest.FixtureRequest], AbstractContextManager[ResultStore]]
STORES: dict[str, Open] = {
    "memory": lambda folder, _: nullcontext(MemoryResults()),
    "files": lambda folder, _: nullcontext(FileResults(folder / "results")),
    "files relaxed": lambda folder, _: nullcontext(FileResults(folder / "results", "relaxed")),
    "offered": lambda folder, _: nullcontext(
        OfferedResults({StoreName("files"): MemoryResults(), StoreName("nats_object"): MemoryResults()})
    ),
    "postgres": lambda _, request: postgres_results(request),
    "nats": lambda _, request: nats_results(request),
}


@pytest.fixture(params=STORES)
def results(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ResultStore]:
    with STORES[request.param](tmp_path, request) as made:
        yield made


def blob(data: bytes) -> tuple[str, bytes]:
    return sha256(data).hexdigest(), data


def test_results_come_back_under_their_keys(results: ResultStore) -> None:
    blobs = [blob(b""), blob(b"one"), blob(bytes(range(256)) * 40_000)]
    results.put(blobs)
    assert [results.get(key) for key, _ in blobs] == [data for _, data in blobs]
    assert sorted(results.keys()) == sorted(key for key, _ in blobs)


def test_putting_a_result_again_is_no_mistake(results: ResultStore) -> None:
    key, data = blob(b"one")
    results.put([(key, data), (key, data)])
    results.put([(key, data)])
    assert list(results.keys()) == [key]
    assert results.get(key) == data


def test_a_result_that_was_never_put_is_missing(results: ResultStore) -> None:
    results.put([])
    for key in (blob(b"other")[0], "", "../../etc/passwd"):
        with pytest.raises(ResultMissingError):
            results.get(key)


def test_garbage_collection_removes_what_nothing_refers_to(results: ResultStore) -> None:
    assert results.collect_garbage(set()) == Collected(0, 0)
    left, first, second = blob(b"kept"), blob(b"four"), blob(b"fives")
    results.put([left, first, second])
    assert results.collect_garbage({left[0], blob(b"missing")[0]}) == Collected(2, 9)
    assert list(results.keys()) == [left[0]]
    assert results.get(left[0]) == b"kept"


def test_garbage_collection_leaves_results_that_were_put_lately(results: ResultStore) -> None:
    old, again, late = blob(b"old"), blob(b"again"), blob(b"late")
    results.put([old, again])
    time.sleep(0.05)  # the times of files have a grain of some milliseconds
    between = time.time()
    time.sleep(0.05)  # the same
    results.put([again, late])
    assert results.collect_garbage(set(), between) == Collected(1, 3)
    assert sorted(results.keys()) == sorted([again[0], late[0]])
