"""Does with a bare client what a loop of tasks does, in a fresh process, and prints what that cost as JSON.

`http-tool` and `postgres-tool` do the same with our tools, without an engine around them.

Usage: python -m bench.bare_client http|postgres|http-tool|postgres-tool ADDRESS CALLS AT_ONCE
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from typing import Any

from bench.measurement import Cost


async def http(address: str, calls: int, at_once: int) -> Cost:
    """Send GETs with aiohttp and parse the answers."""
    from aiohttp import ClientSession, TCPConnector

    async with ClientSession(connector=TCPConnector(limit=0)) as session:

        async def call(_worker: int) -> None:
            async with session.get(address) as response:
                await response.json()

        await call(0)
        return await _measured(call, calls, at_once)


async def postgres(address: str, calls: int, at_once: int) -> Cost:
    """Run queries with psycopg on a pool of open connections."""
    from psycopg import AsyncConnection

    pool = [await AsyncConnection.connect(address, autocommit=True) for _ in range(at_once)]

    async def call(worker: int) -> None:
        cursor = await pool[worker].execute("SELECT %(n)s::int AS n", {"n": worker})
        await cursor.fetchall()

    cost = await _measured(call, calls, at_once)
    for connection in pool:
        await connection.close()
    return cost


async def http_tool(address: str, calls: int, at_once: int) -> Cost:
    """Send GETs with `kind: http`."""
    return await _with_tool("http", {"url": address}, calls, at_once)


async def postgres_tool(address: str, calls: int, at_once: int) -> Cost:
    """Run queries with `kind: postgres`."""
    inputs = {"auth": "db", "command": "SELECT %(n)s::int AS n", "params": {"n": 1}}
    return await _with_tool("postgres", inputs, calls, at_once, {"db": address})


async def _with_tool(
    kind: str, inputs: dict[str, Any], calls: int, at_once: int, keychain: dict[str, Any] | None = None
) -> Cost:
    from noetlvm.tools.call import ToolCall
    from noetlvm.tools.runner import ToolRunner

    runner = ToolRunner()

    async def call(_worker: int) -> None:
        outcome = await runner.run(ToolCall(kind, inputs, {}, "key", keychain=keychain or {}))
        if outcome["status"] != "ok":
            raise RuntimeError(outcome["error"]["message"])

    await asyncio.gather(*(call(worker) for worker in range(at_once)))
    cost = await _measured(call, calls, at_once)
    await runner.close()
    return cost


async def _measured(call: Callable[[int], Awaitable[None]], calls: int, at_once: int) -> Cost:
    left = iter(range(calls))

    async def work(worker: int) -> None:
        for _ in left:
            await call(worker)

    began, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*(work(worker) for worker in range(at_once)))
    return Cost(time.perf_counter() - began, time.process_time() - cpu)


_CLIENTS: dict[str, Callable[..., Any]] = {
    "http": http,
    "postgres": postgres,
    "http-tool": http_tool,
    "postgres-tool": postgres_tool,
}


def _main() -> None:
    parser = argparse.ArgumentParser(description="Call a server with a bare client and print what it cost.")
    parser.add_argument("kind", choices=_CLIENTS)
    parser.add_argument("address")
    parser.add_argument("calls", type=int)
    parser.add_argument("at_once", type=int)
    given = parser.parse_args()
    cost = asyncio.run(_CLIENTS[given.kind](given.address, given.calls, given.at_once))
    print(json.dumps(cost._asdict()))


if __name__ == "__main__":
    _main()
