"""No-op durable actions on Restate and a server of its own, whose program is SERVER.

Usage: python run_restate.py JOB FOLDER TASKS EXECUTIONS SERVER
"""

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import restate
from hypercorn.asyncio import serve
from hypercorn.config import Config

job, folder, tasks, executions = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
PATIENCE_SECONDS = 60
bench = restate.Service("bench")


async def work() -> None:
    pass


@bench.handler()
async def chain(ctx: restate.Context, tasks: int) -> int:
    for _ in range(tasks):
        await ctx.run_typed("work", work)
    return tasks


@bench.handler()
async def loop(ctx: restate.Context, tasks: int) -> int:
    await restate.gather(*[ctx.run_typed("work", work) for _ in range(tasks)])
    return tasks


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def ask(address, body):
    request = urllib.request.Request(address, json.dumps(body).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=600) as answer:
        return json.loads(answer.read())


def register(admin, own):
    give_up = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return ask(f"http://127.0.0.1:{admin}/deployments", {"uri": f"http://127.0.0.1:{own}"})
        except (OSError, urllib.error.URLError):
            if time.monotonic() > give_up:
                raise
            time.sleep(0.2)


def run(ingress):
    with ThreadPoolExecutor(min(executions, 64)) as pool:
        address = f"http://127.0.0.1:{ingress}/bench/{job}"
        assert set(pool.map(lambda _: ask(address, tasks), range(executions))) == {tasks}


async def main():
    own, ingress, admin, node = (free_port() for _ in range(4))
    config = Config()
    config.bind = [f"127.0.0.1:{own}"]
    config.h2_max_concurrent_streams = 1_000
    config.graceful_timeout = 0
    config.loglevel = "CRITICAL"
    stop = asyncio.Event()
    serving = asyncio.create_task(serve(restate.app([bench]), config, shutdown_trigger=stop.wait))
    environment = {
        **os.environ,
        "RESTATE_BASE_DIR": folder,
        "RESTATE_INGRESS__BIND_ADDRESS": f"127.0.0.1:{ingress}",
        "RESTATE_ADMIN__BIND_ADDRESS": f"127.0.0.1:{admin}",
        "RESTATE_BIND_ADDRESS": f"127.0.0.1:{node}",
        "RESTATE_LOG_FILTER": "error",
        "RESTATE_DISABLE_TELEMETRY": "true",
    }
    server = subprocess.Popen([sys.argv[5]], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        await asyncio.to_thread(register, admin, own)
        await asyncio.to_thread(ask, f"http://127.0.0.1:{ingress}/bench/chain", 1)  # its first is nobody's time
        began = time.perf_counter()
        await asyncio.to_thread(run, ingress)
        print(json.dumps({"seconds": time.perf_counter() - began}), flush=True)
    finally:
        server.kill()
        server.wait()
        stop.set()
        await serving


asyncio.run(main())
