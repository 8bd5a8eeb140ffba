"""Memory of a server over many executions: `python -m bench.server_memory --executions 100000`.

A server on SQLite, two workers and a client as processes of their own. Each execution has two steps, of which one has a
task. The table has the resident memory of the server after every part of them; it must not grow with their number.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path

from noetlvm.client import AsyncClient

PLAYBOOK = b"""\
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: small, path: bench/small }
workload: { n: 0 }
workflow:
  - step: start
    tool: [{ one: { kind: noop } }]
    next: { arcs: [{ step: end }] }
  - step: end
"""
PARTS = 10
AT_ONCE = 16
"""Clients, each with a token of its own: the rate of one is limited."""
NOETLVM = (sys.executable, "-m", "noetlvm")


def resident(process: int) -> int:
    """Return the resident memory of a process, in bytes."""
    pages = int(Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


async def run_many(clients: list[AsyncClient], bundle: str, count: int) -> None:
    """Start executions, some at once, and wait until all have ended."""
    left = iter(range(count))

    async def some(client: AsyncClient) -> None:
        for number in left:
            await client.start(bundle=bundle, payload={"n": number})

    await asyncio.gather(*map(some, clients))
    while (await clients[0].executions(status="running", limit=1))["executions"]:
        await asyncio.sleep(0.1)


async def measure(url: str, tokens: list[str], server: int, executions: int) -> list[int]:
    sizes: list[int] = []
    size = executions // PARTS
    for part in range(PARTS):
        began = time.monotonic()
        async with AsyncExitStack() as stack:
            clients = [await stack.enter_async_context(AsyncClient(url, token)) for token in tokens]
            bundle = (await clients[0].register(PLAYBOOK))["bundle"]
            await run_many(clients, bundle, size)
        sizes.append(resident(server))
        spent = time.monotonic() - began
        print(f"{(part + 1) * size:>9,} executions  {sizes[-1] / 2**20:7.1f} MiB  {size / spent:6.0f}/s", flush=True)
    return sizes


def main() -> int:
    """Run the measurement; the exit code is 1 if memory grew by more than a twentieth in the second half."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--executions", type=int, default=10_000)
    count = parser.parse_args().executions
    with tempfile.TemporaryDirectory() as folder:
        store = f"sqlite:{folder}/service.db"
        create = [*NOETLVM, "token", "create", "--store", store, "--scope", "run,worker", "--json"]
        tokens = [json.loads(subprocess.check_output(create))["token"] for _ in range(AT_ONCE)]
        words = ["server", "--store", store, "--listen", "127.0.0.1:0", "--json", "--log-level", "error"]
        server = subprocess.Popen([*NOETLVM, *words], stdout=subprocess.PIPE, text=True)
        assert server.stdout is not None
        url = json.loads(server.stdout.readline())["url"]
        environment = os.environ | {"NOETLVM_TOKEN": tokens[0]}
        command = [*NOETLVM, "worker", "--server", url, "--log-level", "error"]
        workers = [subprocess.Popen(command, env=environment) for _ in range(2)]
        try:
            sizes = asyncio.run(measure(url, tokens, server.pid, count))
        finally:
            for worker in workers:
                worker.terminate()
            server.terminate()
            for worker in workers:
                worker.wait()
            server.wait()
    growth = sizes[-1] / sizes[PARTS // 2 - 1] - 1
    print(f"in the second half, memory grew by {growth:.1%}")
    return int(growth > 0.05)


if __name__ == "__main__":
    raise SystemExit(main())
