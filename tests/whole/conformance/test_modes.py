"""One truth in every mode: cases and examples give the log of the embedded engine on servers and workers.

A server set a mode: a server and two workers on SQLite, two servers and two workers on PostgreSQL and NATS.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from noetlvm.bridge import compile_texts
from noetlvm.conformance.service_runs import MODES, ServiceMode, compared, judge_all, started
from noetlvm.conformance.suite import Suite
from noetlvm.engine.engine import Engine
from noetlvm.machine.loaded import Bundle
from noetlvm.results.interface import MemoryResults
from noetlvm.store.memory import MemoryStore
from noetlvm.testing.result import RunResult, read_result
from noetlvm.tools.runner import ToolRunner
from tests.whole.conformance.log_rules import problems, stored_logs
from tests.whole.conformance.suite import SUITE

EXAMPLES = SUITE.parent / "examples"
MISTAKEN = {"mistakes", "orders_draft"}
CHILDREN = {"sub_playbook": ["invoice"]}
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.yaml") if path.stem not in MISTAKEN)


@contextmanager
def example_server() -> Iterator[Any]:
    """Start the server that the examples talk to."""
    sys.path.insert(0, str(EXAMPLES))
    try:
        import server
    finally:
        sys.path.remove(str(EXAMPLES))
    running = server.start()
    try:
        yield running
    finally:
        running.shutdown()


SHARE = 8
"""One case in so many runs in each mode, and others in the other mode; all run in both among the long tests."""


@pytest.mark.parametrize("share", [SHARE, pytest.param(1, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", MODES)
def test_cases_and_examples_give_the_log_of_the_embedded_engine(
    name: str, share: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("m")  # a short name: a socket lies in it
    shutil.copytree(EXAMPLES, folder / "examples")
    cases = Suite(SUITE).cases("run")[list(MODES).index(name) % share :: share]
    found: dict[str, list[str]] = {}
    with started(name, folder) as mode:
        judge_all(mode, cases, lambda case, problems: found.update({case.id: problems}))
        mode.clock.set_speed(1)
        with example_server() as api:
            found |= {f"example {one}": judge_example(mode, one, api) for one in NAMES}
        logs = stored_logs(mode.reader)
    assert {id: wrong for id, log in logs.items() if (wrong := problems(log))} == {}
    assert found.keys() == {case.id for case in cases} | {f"example {one}" for one in NAMES}
    assert {id: problems for id, problems in found.items() if problems} == {}


def run_embedded(bundle: bytes, payload: dict[str, Any]) -> RunResult:
    store, results = MemoryStore(), MemoryResults()

    async def run() -> None:
        engine = Engine(store, results, ToolRunner())
        engine.start(Bundle.of(bundle), payload, "00000000-0000-8000-8000-e38edded0000")
        await asyncio.wait_for(engine.run(), 200)

    asyncio.run(run())
    return read_result(store, results, store.executions(parent="")[0], lambda _id: ([], 0))


def judge_example(mode: ServiceMode, name: str, api: Any) -> list[str]:
    files = [EXAMPLES / f"{one}.yaml" for one in (name, *CHILDREN.get(name, ()))]
    texts = [file.read_text(encoding="utf-8") for file in files]
    bundle = compile_texts(texts)
    payload = {"api_url": f"http://127.0.0.1:{api.server_port}"} if "api_url" in texts[0] else {}
    before = Path.cwd()
    os.chdir(mode.cluster.folder)  # where the workers are: an example names a file
    try:
        api.RequestHandlerClass.seen.clear()
        embedded = run_embedded(bundle, payload)
    finally:
        os.chdir(before)
    api.RequestHandlerClass.seen.clear()
    ran = mode.run(bundle, {"payload": payload}, embedded, scripted=False)
    return [*([] if embedded.status == "success" else [str(embedded.failures)]), *compared(embedded, ran)]
