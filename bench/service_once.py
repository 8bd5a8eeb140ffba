"""No-op work on servers and workers over a private PostgreSQL. Prints what it took as JSON.

Usage: python -m bench.service_once JOB FOLDER TASKS EXECUTIONS WORKERS
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from pathlib import Path

from aiohttp import ClientSession, TCPConnector

from bench.noop_playbooks import chain, loop
from noetlvm.bridge import compile_texts
from noetlvm.client.client import AsyncClient
from noetlvm.conformance.cluster import Cluster, running
from noetlvm.conformance.databases import postgres_server
from noetlvm.conformance.service_runs import opened_for_reading
from noetlvm.store.interface import StoreReader

SLOTS = "100"
CONNECTIONS = 50
PLAYBOOKS = {"chain": chain, "loop": loop}
LOOK_SECONDS = 0.02


async def run(cluster: Cluster, bundle: bytes, executions: int) -> tuple[float, list[str]]:
    """Start executions at once, wait until the last one has ended, and return the seconds and the identifiers."""
    client = AsyncClient(cluster.servers[0].url, cluster.token)
    id = (await client.register(bundle))["bundle"]
    await client.wait(await client.start(bundle=id))  # the first one loads the bundle everywhere
    reader, _ = opened_for_reading(cluster.store)
    began = time.perf_counter()
    started = await _started(cluster, id, executions)
    if executions == 1:
        await client.wait(started[0])
    else:
        await _all_ended(reader, started)
    seconds = time.perf_counter() - began
    await client.close()
    reader.close()
    return seconds, list(started)


async def _started(cluster: Cluster, bundle: str, executions: int) -> list[str]:
    """Start executions over a few connections, with a client that costs little."""
    headers = {"Authorization": f"Bearer {cluster.token}"}
    async with ClientSession(headers=headers, connector=TCPConnector(limit=CONNECTIONS)) as session:

        async def start() -> str:
            url = f"{cluster.servers[0].url}/api/v1/executions"
            async with session.post(url, json={"bundle": bundle}) as answer:
                return str((await answer.json())["execution_id"])

        return list(await asyncio.gather(*(start() for _ in range(executions))))


async def _all_ended(reader: StoreReader, ids: list[str]) -> None:
    """Look at the store, as 200 streams of events would be a load of their own."""
    left = set(ids)
    while left:
        await asyncio.sleep(LOOK_SECONDS)
        left = {row.execution_id for row in reader.unfinished()} & left


def main() -> None:
    job, tasks, executions, workers = sys.argv[1], int(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5])
    bundle = compile_texts([PLAYBOOKS[job](tasks)])
    with postgres_server() as store, tempfile.TemporaryDirectory(prefix="bench-") as folder:
        made = Cluster(
            store,
            Path(folder),
            server_options=["--json", "--log-level", "error"],
            worker_options=["--slots", SLOTS],
        )
        with running(made, servers=1, workers=workers) as cluster:
            seconds, ids = asyncio.run(run(cluster, bundle, executions))
            reader, _ = opened_for_reading(store)
            statuses = {row.status for id in ids if (row := reader.execution(id)) is not None}
            reader.close()
    assert statuses == {"success"}, statuses
    print(json.dumps({"seconds": seconds}))


if __name__ == "__main__":
    main()
