"""No-op work on Prefect with a server of its own. Usage: python run_prefect.py JOB FOLDER TASKS EXECUTIONS."""

import json
import os
import sys
import time

job, folder, tasks = sys.argv[1], sys.argv[2], int(sys.argv[3])
os.environ |= {
    "PREFECT_HOME": folder,
    "PREFECT_SERVER_ALLOW_EPHEMERAL_MODE": "true",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "120",
    "PREFECT_LOGGING_LEVEL": "CRITICAL",
}
from prefect import flow, task  # noqa: E402 - it reads the environment when it is imported


@task
def work():
    pass


@flow
def chain(tasks):
    for _ in range(tasks):
        work()


@flow
def loop(tasks):
    for future in [work.submit() for _ in range(tasks)]:
        future.result()


run = {"chain": chain, "loop": loop}[job]
run(1)  # starts its server, which is nobody's time
began = time.perf_counter()
run(tasks)
print(json.dumps({"seconds": time.perf_counter() - began}), flush=True)
