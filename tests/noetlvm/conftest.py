"""A NATS server for the tests of results and wake-ups: one for a process of tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.servers import nats_server


@pytest.fixture(scope="session")
def nats(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with nats_server(tmp_path_factory.mktemp("nats")) as address:
        yield address
