"""Secrets at a worker: masked before anything leaves it, and forgotten when it has nothing to do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from noetlvm.bridge import compile_texts
from noetlvm.data.encoding import MASK
from noetlvm.keychain import redaction
from noetlvm.machine.loaded import Bundle
from noetlvm.results.interface import MemoryResults
from noetlvm.rounds.credentials import Credentials, KnownSecrets
from noetlvm.service.driver import Driver, ServerPorts
from noetlvm.store.memory import MemoryStore
from noetlvm.tools.call import Outcome, ToolCall, ok
from noetlvm.worker.remote_worker import RemoteWorker
from tests.canary import find_canaries
from tests.noetlvm.engine.runs import PlayedTools
from tests.noetlvm.service.local_link import LocalLink
from tests.waiting import ended, until

CANARY = "canary-9be1c0de77aa4c52"
KEYED = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: keyed, path: tests/keyed }
keychain: [{ name: token, kind: bearer_token }]
workflow:
  - step: start
    loop: { in: [1, 2, 3, 4, 5, 6], iterator: n, spec: { mode: parallel } }
    tool: [{ use: { kind: shell, command: [echo, "{{ keychain.token }}"] } }]
"""


KEYLESS = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: keyless, path: tests/keyless }
workflow:
  - step: start
    tool:
      - find: { kind: shell, command: [ls] }
      - use: { kind: shell, command: [ls] }
"""


def worked(
    play: Callable[[ToolCall], Any],
    check: Callable[[Driver, RemoteWorker], Coroutine[Any, Any, None]],
    playbook: str = KEYED,
) -> None:
    """Run a playbook on a driver and a worker, and check them while both are there."""

    async def run() -> None:
        driver = Driver(
            MemoryStore(),
            MemoryResults(),
            lambda _declared: Credentials({"token": CANARY}, [CANARY]),
            ServerPorts(poll_seconds=0.02),
        )
        driving = asyncio.create_task(driver.run())
        worker = RemoteWorker(LocalLink(driver), PlayedTools(play), id="one", pools=("default",), slots=2)
        working = asyncio.create_task(worker.run())
        id = await driver.start(Bundle.of(compile_texts([playbook])), {}, {})
        row = await ended(driver.store, id)
        assert row.status == "success"
        await check(driver, worker)
        worker.drain()
        await working
        driver.stop()
        await driving

    asyncio.run(asyncio.wait_for(run(), 120))


PARENT = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: parent, path: tests/parent }
workflow:
  - step: start
    tool: [{ child: { kind: playbook, path: tests/child, workload: { said: "{{ workload.said }}" } } }]
    next: { arcs: [{ step: use }] }
  - step: use
    tool: [{ use: { kind: shell, command: ["{{ start.result.said }}"] } }]
"""
CHILD = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: child, path: tests/child }
workflow:
  - step: start
    tool: [{ find: { kind: shell, command: ["{{ workload.said }}"] } }]
"""
KEYCHAIN = "keychain: [{ name: token, kind: bearer_token }]\nworkflow:"


KEYED_CHILD = PARENT, CHILD.replace("workflow:", KEYCHAIN)
KEYED_PARENT = PARENT.replace("workflow:", KEYCHAIN).replace("{{ workload.said }}", "{{ keychain.token }}"), CHILD


@pytest.mark.parametrize(("parent", "child"), [KEYED_CHILD, KEYED_PARENT])
def test_a_mask_from_a_playbook_of_another_bundle_is_never_given_to_a_tool(parent: str, child: str) -> None:
    commands: list[str] = []

    async def play(call: ToolCall) -> Outcome:
        commands.extend(call.inputs["command"])
        return ok({"said": CANARY})

    async def run() -> None:
        known = KnownSecrets()
        driver = Driver(
            MemoryStore(),
            MemoryResults(),
            lambda declared: Credentials({"token": CANARY} if declared else {}, [CANARY] if declared else [], known),
            ServerPorts(poll_seconds=0.02),
        )
        bundle = Bundle.of(compile_texts([child]))
        driver.store.register("tests/child", bundle.id, bundle.data, 0.0)
        driving = asyncio.create_task(driver.run())
        worker = RemoteWorker(LocalLink(driver), PlayedTools(play), id="one", pools=("default",), slots=2)
        working = asyncio.create_task(worker.run())
        id = await driver.start(Bundle.of(compile_texts([parent])), {"said": "ls"}, {})
        row = await ended(driver.store, id)
        assert row.status == "failed"
        worker.drain()
        await working
        driver.stop()
        await driving

    asyncio.run(asyncio.wait_for(run(), 120))
    assert MASK not in commands


async def large(call: ToolCall) -> Outcome:
    return ok({"said": [call.inputs["command"][1]] * 10_000})


def test_a_stored_result_is_masked_before_it_leaves_the_worker() -> None:
    async def check(driver: Driver, _worker: RemoteWorker) -> None:
        stored = [driver.results.get(key) for key in driver.results.keys()]  # noqa: SIM118 - a method, not a mapping's
        assert len(stored) >= 1
        assert not find_canaries(b"".join(stored), CANARY)
        assert b"said" in stored[0]

    worked(large, check)


async def secret(call: ToolCall) -> Outcome:
    return ok({"said": CANARY if call.label == "find" else "nothing"})


def test_a_result_that_only_the_server_can_mask_is_marked_for_the_next_worker() -> None:
    async def check(driver: Driver, _worker: RemoteWorker) -> None:
        (row,) = driver.store.executions()
        events = [recorded.event for recorded in driver.store.events(row.execution_id)]
        done = {event.label: event.data for event in events if event.name == "task.done"}
        assert done["find"]["outcome"]["result"] == {"said": MASK}
        assert [done[label].get("masked", False) for label in ("find", "use")] == [True, False]

    worked(secret, check, KEYLESS)


def test_commands_with_the_same_secrets_share_what_masks_them(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[redaction.Redactor] = []

    class Counted(redaction.Redactor):
        def __init__(self, *secrets: Any) -> None:
            made.append(self)
            super().__init__(*secrets)

    monkeypatch.setattr(redaction, "Redactor", Counted)

    async def play(_call: ToolCall) -> Outcome:
        return ok()

    async def check(_driver: Driver, worker: RemoteWorker) -> None:
        assert len(made) == 2  # one of the server, one of the worker
        worker.leases.seconds = 0.05
        worker._news.set()
        await until(lambda: not worker._data._known_secrets)

    worked(play, check)
