"""Does with a bare client what a loop of tasks does, in a fresh process, and prints what that cost as JSON.

Usage: python -m bench.bare_client http|postgres ADDRESS CALLS AT_ONCE
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


async def _measured(call: Callable[[int], Awaitable[None]], calls: int, at_once: int) -> Cost:
    left = iter(range(calls))

    async def work(worker: int) -> None:
        for _ in left:
            await call(worker)

    began, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*(work(worker) for worker in range(at_once)))
    return Cost(time.perf_counter() - began, time.process_time() - cpu)


_CLIENTS: dict[str, Callable[..., Any]] = {"http": http, "postgres": postgres}


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
