"""Live events: what is written for an execution, as server-sent events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence

from fastapi.concurrency import run_in_threadpool

from noetlvm.data.event import Recorded, envelope
from noetlvm.data.references import plain
from noetlvm.service.driver import Driver
from noetlvm.store.interface import Execution, StoreError

POLL_SECONDS = 1.0
"""Seconds between polls for events that another server wrote."""
PAGE = 500


async def live_events(driver: Driver, execution_id: str, after: int) -> AsyncIterator[str]:
    """Yield the events of an execution after a number, as they come, until it has ended."""
    news = asyncio.Event()
    latest: Execution | None = None
    """Its row, if this server has written it since the last poll."""

    def listen(written: Execution, _recorded: Sequence[Recorded]) -> None:
        nonlocal latest
        if written.execution_id == execution_id and (written.seq > after or written.ended is not None):
            latest = written
            news.set()

    driver.listeners.add(listen)
    try:
        while True:
            news.clear()
            row, latest = latest, None
            try:
                # The row first: if the execution has ended in it, all its events are there.
                row = row or await run_in_threadpool(driver.store.execution, execution_id)
                if row is None:
                    return
                while after < row.seq:
                    last = min(after + PAGE, row.seq)
                    page = await run_in_threadpool(
                        lambda after, last: list(driver.store.events(execution_id, after, last)), after, last
                    )
                    if not page:
                        break
                    after = page[-1].seq
                    yield "".join(_text(row, recorded) for recorded in page)
                if row.ended is not None:
                    return
            except StoreError:
                pass  # it is read again: to a client, the end of the stream is that of the execution
            try:
                await asyncio.wait_for(news.wait(), POLL_SECONDS)
            except TimeoutError:
                yield ": waiting\n\n"  # notices a client that has left
    finally:
        driver.listeners.discard(listen)


def _text(row: Execution, recorded: Recorded) -> str:
    data = json.dumps(plain(envelope(row.execution_id, row.trace_id, recorded)), ensure_ascii=False)
    return f"id: {recorded.seq}\nevent: {recorded.event.name}\ndata: {data}\n\n"
