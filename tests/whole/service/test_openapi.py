"""Schemathesis over the OpenAPI description: no answer is a 500, and every answer is documented."""

from __future__ import annotations

from typing import NamedTuple

import pytest
import schemathesis
from fastapi import FastAPI
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from noetlvm.results.interface import MemoryResults
from noetlvm.rounds.credentials import no_credentials
from noetlvm.service.app import service_app
from noetlvm.service.driver import Driver, ServerPorts
from noetlvm.service.tokens import create_token
from noetlvm.store.memory import MemoryStore


class Served(NamedTuple):
    app: FastAPI
    token: str


def service() -> Served:
    store = MemoryStore()
    token = create_token(store, ["admin", "worker"], 1.0).token
    driver = Driver(store, MemoryResults(), no_credentials, ServerPorts(poll_seconds=0.05))
    return Served(service_app(driver), token)


SCHEMA = schemathesis.openapi.from_asgi("/openapi.json", service().app)
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]


@pytest.fixture(autouse=True)
def no_rate_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("noetlvm.service.access.BURST_REQUESTS", 10**9)


@pytest.fixture
def served() -> Served:
    """Return a server of the test's own: Schemathesis stops the application after each, and it starts only once."""
    return service()


@SCHEMA.parametrize()
@settings(max_examples=25, suppress_health_check=list(HealthCheck), deadline=None)
def test_every_answer_is_as_described(case: schemathesis.Case, served: Served) -> None:
    case.call_and_validate(app=served.app, headers={"Authorization": f"Bearer {served.token}"}, checks=CHECKS)
