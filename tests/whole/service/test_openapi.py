"""Schemathesis over the OpenAPI description: no answer is a 500, and every answer is documented."""

from __future__ import annotations

import pytest
import schemathesis
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

STORE = MemoryStore()
TOKEN = create_token(STORE, ["admin", "worker"], 1.0).token
APP = service_app(Driver(STORE, MemoryResults(), no_credentials, ServerPorts(poll_seconds=0.05)))
SCHEMA = schemathesis.openapi.from_asgi("/openapi.json", APP)
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]


@pytest.fixture(autouse=True)
def no_rate_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("noetlvm.service.access.BURST_REQUESTS", 10**9)


@SCHEMA.parametrize()
@settings(max_examples=25, suppress_health_check=list(HealthCheck), deadline=None)
def test_every_answer_is_as_described(case: schemathesis.Case) -> None:
    case.call_and_validate(headers={"Authorization": f"Bearer {TOKEN}"}, checks=CHECKS)
