"""No-op work on DBOS, its state in SQLite unless BENCH_DATABASE names another database.

Usage: python run_dbos.py JOB FOLDER TASKS EXECUTIONS
"""

import asyncio
import json
import os
import sys
import time

from dbos import DBOS

job, folder, tasks, executions = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
database = os.environ.get("BENCH_DATABASE") or f"sqlite:///{folder}/dbos.db"
DBOS(config={"name": "bench", "system_database_url": database, "log_level": "ERROR"})


@DBOS.step()
def work():
    pass


@DBOS.step()
async def work_on_item():
    pass


@DBOS.workflow()
def chain():
    for _ in range(tasks):
        work()


@DBOS.workflow()
async def loop():
    await asyncio.gather(*(work_on_item() for _ in range(tasks)))


def run_chains():
    for handle in [DBOS.start_workflow(chain) for _ in range(executions)]:
        handle.get_result()


DBOS.launch()
began = time.perf_counter()
run_chains() if job == "chain" else asyncio.run(loop())
print(json.dumps({"seconds": time.perf_counter() - began}))
DBOS.destroy()
