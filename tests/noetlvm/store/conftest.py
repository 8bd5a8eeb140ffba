"""A PostgreSQL server for the tests of stores; each test has a schema of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.servers import postgres_server


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    with postgres_server() as address:
        yield address
