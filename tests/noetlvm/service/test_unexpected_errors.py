"""Errors that nobody foresaw: the answer names one by an identifier, and the log says what it was without its data."""

from __future__ import annotations

import asyncio
import io
import json
import logging
from collections.abc import Iterator, Mapping, Sequence

import pytest

from noetlvm.bridge import compile_texts
from noetlvm.machine.loaded import Bundle
from noetlvm.results.interface import MemoryResults
from noetlvm.rounds.credentials import no_credentials
from noetlvm.service.driver import Driver
from noetlvm.service.process import LogLines
from noetlvm.store.interface import Append, StoreError
from noetlvm.store.memory import MemoryStore
from tests.noetlvm.service.conftest import HELLO, Service
from tests.waiting import turns

SECRET = "canary-1f7be09c66d24a13"


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    """The log of the server, as a process writes it."""
    text = io.StringIO()
    handler = logging.StreamHandler(text)
    handler.setFormatter(LogLines())
    logger = logging.getLogger("noetlvm.server")
    logger.addHandler(handler)
    yield text
    logger.removeHandler(handler)


def test_an_unexpected_error_is_a_problem_whose_identifier_the_log_has(
    service: Service, written: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError(SECRET)

    monkeypatch.setattr(service.driver.store, "executions", fail)
    answer = service.http.get("/api/v1/executions", headers=service.as_("read"))
    assert (answer.status_code, answer.headers["content-type"]) == (500, "application/problem+json")
    problem = answer.json()
    assert (problem["status"], problem["title"]) == (500, "Internal Server Error")
    assert problem["instance"].startswith("urn:uuid:")
    text = written.getvalue()
    (line,) = [row for row in map(json.loads, text.splitlines()) if problem["instance"] in row["message"]]
    assert line["message"].startswith("GET /api/v1/executions failed")
    assert line["exception"] == "ZeroDivisionError"
    assert line["calls"][-1].endswith(" fail")
    assert SECRET not in text + answer.text


class BrokenStore(MemoryStore):
    """Fails in a way that no driver expects."""

    def write(self, batch: Sequence[Append], bundles: Mapping[str, bytes] = {}) -> set[str]:
        raise ZeroDivisionError


def test_a_start_is_answered_when_the_driver_fails_or_stops() -> None:
    bundle = Bundle.of(compile_texts([HELLO.decode()]))

    async def run() -> None:
        driver = Driver(BrokenStore(), MemoryResults(), no_credentials)
        driving = asyncio.create_task(driver.run())
        with pytest.raises(StoreError, match="the server is stopping"):
            await driver.start(bundle, {}, {})
        with pytest.raises(ZeroDivisionError):
            await driving
        with pytest.raises(StoreError, match="the server is stopping"):
            await driver.start(bundle, {}, {})

    asyncio.run(asyncio.wait_for(run(), 120))


def test_a_request_that_the_end_of_the_server_cancels_is_to_be_sent_again() -> None:
    from noetlvm.service.problems import UnexpectedErrors

    sent: list[dict[str, object]] = []

    async def waits(*_: object) -> None:
        await asyncio.Event().wait()

    async def send(message: dict[str, object]) -> None:
        sent.append(message)

    async def run() -> None:
        task = asyncio.create_task(UnexpectedErrors(waits)({"type": "http"}, waits, send))  # type: ignore[arg-type]
        await turns()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
    assert sent[0]["status"] == 503
