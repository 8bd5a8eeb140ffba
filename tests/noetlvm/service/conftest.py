"""A server in this process over a store in memory, and a client for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pytest
from fastapi.testclient import TestClient

from noetlvm.results.interface import MemoryResults
from noetlvm.rounds.credentials import no_credentials
from noetlvm.service.app import service_app
from noetlvm.service.driver import Driver, ServerPorts
from noetlvm.service.tokens import create_token
from noetlvm.store.memory import MemoryStore

HELLO = b"""\
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: hello, path: tests/hello }
workload: { name: world }
workflow:
  - step: start
    next: { arcs: [{ step: end }] }
  - step: end
"""


class Service(NamedTuple):
    """A running service."""

    http: TestClient
    driver: Driver
    tokens: dict[str, str]
    """A token for each scope."""

    def as_(self, scope: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.tokens[scope]}"}


@pytest.fixture
def service() -> Iterator[Service]:
    store = MemoryStore()
    tokens = {scope: create_token(store, [scope], 1.0).token for scope in ("admin", "run", "read", "worker")}
    driver = Driver(store, MemoryResults(), no_credentials, ServerPorts(poll_seconds=0.05))
    with TestClient(service_app(driver), raise_server_exceptions=False) as http:
        yield Service(http, driver, tokens)
