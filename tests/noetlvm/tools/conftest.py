"""What the tests of tools share: a way to run one task."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from noetlvm.tools.call import Outcome, ToolCall
from noetlvm.tools.runner import ToolRunner
from tests.waiting import until

KEY = "01J-execution/3#1"


def tool_call(kind: str, inputs: dict[str, Any], spec: dict[str, Any] | None = None, auth: Any = None) -> ToolCall:
    named = inputs if auth is None else {"auth": "entry", **inputs}
    return ToolCall(kind, named, spec or {}, KEY, keychain={} if auth is None else {"entry": auth})


@pytest.fixture
def run() -> Callable[..., Outcome]:
    """Run one task with a runner of its own, and close that."""

    async def once(call: ToolCall) -> Outcome:
        runner = ToolRunner()
        try:
            return await runner.run(call)
        finally:
            await runner.close()

    return lambda kind, inputs, spec=None, auth=None: asyncio.run(once(tool_call(kind, inputs, spec, auth)))


@pytest.fixture
def run_all() -> Callable[..., list[Outcome]]:
    """Run tasks one after another with one runner."""

    async def one_by_one(calls: tuple[ToolCall, ...]) -> list[Outcome]:
        runner = ToolRunner()
        try:
            return [await runner.run(call) for call in calls]
        finally:
            await runner.close()

    return lambda *calls: asyncio.run(one_by_one(tuple(tool_call(*call) for call in calls)))


@pytest.fixture
def cancel() -> Callable[..., None]:
    """Start a task, wait until a condition holds, cancel it, and wait until it has ended."""

    async def cancelled(call: ToolCall, has_begun: Callable[[], bool]) -> None:
        runner = ToolRunner()
        task = asyncio.create_task(runner.run(call))
        try:
            await until(lambda: has_begun() or task.done())
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        finally:
            await runner.close()

    return lambda kind, inputs, has_begun: asyncio.run(cancelled(tool_call(kind, inputs), has_begun))
