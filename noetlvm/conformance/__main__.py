"""The processes of a cluster with scripted tools: a server and a worker as `noetlvm` starts them, on a shared clock.

python -m noetlvm.conformance server --store STORE --home FOLDER [--wake nats://…]
python -m noetlvm.conformance worker --server URL --home FOLDER
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import uuid
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from noetlvm.command_line.process import SUCCESS
from noetlvm.conformance.scripted import CLOCK, HOST, HostedTools, Part, SharedClock
from noetlvm.language.placement import DEFAULT_POOL
from noetlvm.protocol.link import WebSocketLink
from noetlvm.protocol.messages import ServerMessage, part_of, work_in
from noetlvm.results.interface import ResultStore
from noetlvm.service.process import log_to_stderr, open_store, serve
from noetlvm.store.interface import Store
from noetlvm.testing.run_playbook import resolver_of
from noetlvm.tools.runner import ToolRunner
from noetlvm.worker.remote_worker import RemoteWorker

LEASE_SECONDS = 1e9
"""On the shared clock, which may be fast: a lease ends by its release only."""
POLL_SECONDS = 0.05
SLOTS = 200


class ScriptedWorker(RemoteWorker):
    """A worker whose tools can return their command to the server."""

    def __init__(self, link: WebSocketLink, tools: HostedTools, **options: Any) -> None:
        super().__init__(link, tools, **options)
        self._scripted = tools
        tools.redacted = self.commands.redacted
        tools.lose = self._lose

    def take(self, message: ServerMessage) -> None:
        for command in message.commands:
            work = work_in(command["work"])
            self._scripted.works[part_of(work)] = work
        super().take(message)

    def _lose(self, part: Part, lease: int, late: bool) -> None:
        if late:
            self.outbox.release(part, lease)
        else:
            self.commands.give_up(part, lease)


def main(words: Sequence[str] | None = None) -> int:
    """Run one process until a signal ends it."""
    arguments = _arguments(words)
    log_to_stderr("warning")
    return _serve(arguments) if arguments.role == "server" else _work(arguments)


def _serve(arguments: Namespace) -> int:
    clock = SharedClock(arguments.home / CLOCK)
    keychain = (arguments.home / HOST).with_suffix(".keychain")

    def opened(name: str) -> tuple[Store, ResultStore]:
        store, results = open_store(name)
        store.now = clock.now  # type: ignore[method-assign]
        return store, results

    return serve(
        arguments.store,
        arguments.listen,
        resolver_of(lambda: json.loads(keychain.read_text(encoding="utf-8"))),
        wake=arguments.wake,
        on_ready=lambda url: print(json.dumps({"url": url}), flush=True),
        lease_seconds=LEASE_SECONDS,
        poll_seconds=POLL_SECONDS,
        opened=opened,
    )


def _work(arguments: Namespace) -> int:
    clock = SharedClock(arguments.home / CLOCK)
    link = WebSocketLink(arguments.server, os.environ["NOETLVM_TOKEN"])

    async def run() -> None:
        tools = HostedTools(arguments.home / HOST, clock, ToolRunner())
        id = uuid.uuid4().hex
        worker = ScriptedWorker(link, tools, id=id, pools=(DEFAULT_POOL,), slots=SLOTS, clock=clock)
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, worker.drain)
        await worker.run()

    asyncio.run(run())
    return SUCCESS


def _arguments(words: Sequence[str] | None) -> Namespace:
    parser = ArgumentParser("noetlvm.conformance", description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("role", choices=("server", "worker"))
    parser.add_argument("--home", type=Path, required=True, help="folder with the clock and the script host's socket")
    parser.add_argument("--store")
    parser.add_argument("--listen", default="127.0.0.1:0")
    parser.add_argument("--wake")
    parser.add_argument("--server")
    return parser.parse_args(words)


if __name__ == "__main__":
    sys.exit(main())
