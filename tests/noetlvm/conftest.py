"""Servers for the tests of stores, results and wake-ups: one of each for a process of tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.servers import nats_server, postgres_server


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    with postgres_server() as address:
        yield address


@pytest.fixture(scope="session")
def nats(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with nats_server(tmp_path_factory.mktemp("nats")) as address:
        yield address
