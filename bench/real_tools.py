"""Durable parallel loops of http, postgres and python tasks beside the bare client in the same run, and one step each.

The servers run on this machine, in processes of their own. In a loop neither side pays for imports: both have done the
same once before the clock starts. The bare client has open connections too.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from bench.contest import OURS, TURNS, Machine, best_costs, ours
from bench.measurement import Contestant, Goal, Row, at_most, best_of
from bench.noop_playbooks import chain
from bench.workplace import Workplace
from noetlvm.bridge import compile_texts

_TASKS, _QUICK_TASKS = 1_000, 200
_AT_ONCE = 16
_GOAL = Goal("80 % of its rate", 1 / 0.8)
_PYTHON_RATE = 1_000
_PYTHON_AT_ONCE = 4

_SERVER = """
import asyncio
from aiohttp import web

async def answer(request):
    return web.json_response({"n": 1})

async def main():
    app = web.Application()
    app.router.add_get("/", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    print(site._server.sockets[0].getsockname()[1], flush=True)
    await asyncio.sleep(3600)

asyncio.run(main())
"""

_LOOP = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {{ name: tools, path: bench/tools }}
workflow:
  - step: start
    loop:
      in: "{{{{ range({items}) }}}}"
      iterator: item
      spec: {{ mode: parallel, max_in_flight: {at_once} }}
    tool:
      - work: {task}
"""

_ONE = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {{ name: one, path: bench/one }}
workflow:
  - step: start
    tool:
      - work: {task}
"""


def measure(workplace: Workplace) -> list[Row]:
    """Time each kind in a loop beside its bare client, and one step of it from the start of the process."""
    tasks = _QUICK_TASKS if workplace.quick else _TASKS
    with _http_server() as url:
        http = _beside(workplace, "http", url, f'{{ kind: http, url: "{url}" }}', tasks)
        steps = _single_steps(workplace, url)
    with _postgres_server() as dsn:
        task = (
            f'{{ kind: postgres, host: "{dsn["host"]}", user: {dsn["user"]}, database: {dsn["database"]}, '
            'command: "SELECT %(n)s::int AS n", params: { n: "{{ iter.item }}" } }'
        )
        postgres = _beside(workplace, "postgres", dsn["uri"], task, tasks)
    return [http, postgres, _python(workplace, tasks), *steps]


def _beside(workplace: Workplace, kind: str, address: str, task: str, tasks: int) -> Row:
    client = f"bare {'aiohttp' if kind == 'http' else 'psycopg'}, {_AT_ONCE} at once"
    bare = Machine(
        client,
        lambda _folder: [sys.executable, "-m", "bench.bare_client", kind, address, str(tasks), str(_AT_ONCE)],
        TURNS,
    )
    playbook = _LOOP.format(items=tasks, at_once=_AT_ONCE, task=task)
    costs = best_costs(workplace, [bare, ours(workplace, playbook, is_warm=True)])
    done, other = costs[OURS], costs[client]
    note = f"{tasks / done.seconds:,.0f} tasks/s, bare {tasks / other.seconds:,.0f}/s; cpu {done.cpu / other.cpu:.1f}x"
    return Row(f"loop of {tasks:,} {kind} tasks", done.seconds, client, other.seconds, _GOAL, note)


def _python(workplace: Workplace, tasks: int) -> Row:
    task = '{ kind: python, code: "result = n + 1", args: { n: "{{ iter.item }}" } }'
    playbook = _LOOP.format(items=tasks, at_once=_PYTHON_AT_ONCE, task=task)
    costs = best_costs(workplace, [ours(workplace, playbook, is_warm=True)])
    seconds = costs[OURS].seconds
    allowed, goal = tasks / _PYTHON_RATE, Goal("within", 1)
    note = f"{tasks / seconds:,.0f} tasks/s"
    return Row(f"loop of {tasks:,} python tasks", seconds, f"{_PYTHON_RATE:,} tasks/s", allowed, goal, note)


def _single_steps(workplace: Workplace, url: str) -> list[Row]:
    texts = {
        "noop": chain(1),
        "http": _ONE.format(task=f'{{ kind: http, url: "{url}" }}'),
        "python": _ONE.format(task='{ kind: python, code: "result = 1" }'),
    }
    contestants = []
    for kind, text in texts.items():
        bundle = workplace.folder / f"{kind}-{uuid4().hex}.nbc"
        bundle.write_bytes(compile_texts([text]))
        contestants.append(Contestant(kind, lambda bundle=bundle: _run(workplace, bundle)))  # type: ignore[misc]
    for contestant in contestants:
        contestant.run()
    times = best_of(contestants, workplace.rounds * 4)
    noop = times.pop("noop")
    return [
        Row(f"one {kind} step from process start", seconds, "one noop step", noop, at_most(3))
        for kind, seconds in times.items()
    ]


def _run(workplace: Workplace, bundle: Path) -> object:
    return workplace.run([sys.executable, "-m", "noetlvm", "run", "--quiet", "--db", "known.db", bundle])


@contextmanager
def _http_server() -> Iterator[str]:
    server = subprocess.Popen([sys.executable, "-c", _SERVER], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None, "it is a pipe"
    try:
        yield f"http://127.0.0.1:{server.stdout.readline().strip()}/"
    finally:
        server.terminate()
        server.wait()


@contextmanager
def _postgres_server() -> Iterator[dict[str, str]]:
    from psycopg.conninfo import conninfo_to_dict

    from noetlvm.conformance.databases import postgres_server

    with postgres_server() as uri:
        parts = conninfo_to_dict(uri)
        yield {"uri": uri, "host": str(parts["host"]), "user": str(parts["user"]), "database": str(parts["dbname"])}
