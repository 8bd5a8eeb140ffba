"""A worker process: holds one connection to a server, runs the commands that come on it, and reports.

It has no port of its own and no database. What it holds, it holds by leases: if the connection is lost and cannot be
had again before they end, it stops its work, because another worker may have it by then.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import Callable
from typing import Any

from noetlvm.data.encoding import decode, encode
from noetlvm.protocol.link import Exchange, ServerLink
from noetlvm.protocol.messages import ServerMessage, lease_form, part_in, work_in
from noetlvm.tools.call import Tools
from noetlvm.worker.command_data import CommandData, Missing
from noetlvm.worker.commands import Commands
from noetlvm.worker.held_leases import MARGIN, HeldLeases
from noetlvm.worker.outbox import Outbox
from noetlvm.worker.pipeline_run import Clock, PipelinePorts, Slots, SystemClock

RETRY_SECONDS = (0.1, 5.0)
"""Shortest and longest wait before the connection is tried again."""
_DRAIN_SECONDS = 0.05
"""How long a worker that has ended its last command waits for what else there may be to report."""

_LOG = logging.getLogger("noetlvm.worker")


class RemoteWorker:
    """Connects to a server again and again, until it has drained."""

    def __init__(
        self,
        link: ServerLink,
        tools: Tools,
        *,
        id: str,
        pools: tuple[str, ...],
        slots: int,
        clock: Clock | None = None,
        jitter: Callable[[], float] = random.random,
        missing: Missing = lambda _kinds: [],
        records_inputs: bool = False,
    ) -> None:
        """`jitter` gives numbers below 1 that spread the reconnection of many workers.

        `missing` lists what is not installed here of what tool kinds need: a pipeline with such a task fails before its
        first one. `records_inputs`: the log says what tools were given.
        """
        time = clock or SystemClock()

        def ports(commands: Commands) -> PipelinePorts:
            spawn, ended = commands.spawn, commands.ended
            return PipelinePorts(tools, time, commands, Slots(slots), spawn, lambda: False, ended, records_inputs)

        self._link = link
        self._tools = tools
        self._hello = {"worker": id, "pools": list(pools), "slots": slots}
        self._jitter = jitter
        self._news = asyncio.Event()
        """There may be something to send."""
        self._leaves = asyncio.Event()
        """There may be nothing left to do, or to wait for."""
        self._is_draining = False
        self.outbox = Outbox(self._news.set)
        self.leases = HeldLeases(time)
        self._data = CommandData(link, id, tools, missing)
        self.commands = Commands(self._data, self.outbox, self.leases, ports, self._ended)

    async def run(self) -> None:
        """Work until `drain` has come to its end. Raises RefusedError."""
        watch = asyncio.create_task(self._watch_leases())
        wait = RETRY_SECONDS[0]
        try:
            while not self._is_done and not (self._is_draining and self.leases.are_over):
                try:
                    await self._connected()
                    wait = RETRY_SECONDS[0]
                except OSError as error:
                    _LOG.warning("no connection to %s: %s", self._link, error)
                if not self._is_done:
                    self._leaves.clear()  # something has come, or a report has not been answered
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(self._leaves.wait(), wait * (0.5 + self._jitter()))
                    wait = min(wait * 2, RETRY_SECONDS[1])
        finally:
            watch.cancel()
            await self.commands.close()
            await self._tools.close()

    def drain(self) -> None:
        """Take no more commands, and leave when those that run have ended."""
        self._is_draining = True
        self._news.set()
        self._leave()

    @property
    def _is_done(self) -> bool:
        return self._is_draining and not self.commands and not self.outbox

    def _leave(self) -> None:
        if not self.outbox and not self.commands:
            self._leaves.set()

    def _ended(self) -> None:
        if self._is_draining:
            self._news.set()
            if not self.commands:
                asyncio.get_running_loop().call_later(_DRAIN_SECONDS, self._leave)

    async def _watch_leases(self) -> None:
        while True:
            await asyncio.sleep(min(0.5, self.leases.seconds * MARGIN / 2))
            self.commands.give_up_late()

    # ---- one connection

    async def _connected(self) -> None:
        async with self._link.connect() as exchange:
            self.leases.connected()
            await exchange.send(encode(self._hello))
            for part, lease in self.outbox.in_doubt():
                self.commands.give_up(part, lease)  # the next worker continues from the log
            self._news.set()
            working = (
                asyncio.create_task(self._receive(exchange)),
                asyncio.create_task(self._send(exchange)),
                asyncio.create_task(self._until_it_leaves()),
            )
            try:
                done, _ = await asyncio.wait(working, return_when=asyncio.FIRST_COMPLETED)
                for error in [task.exception() for task in done]:
                    if error is not None:
                        raise error
            finally:
                for task in working:
                    task.cancel()

    async def _receive(self, exchange: Exchange) -> None:
        while not self._is_done:
            self.take(ServerMessage.of(decode(await exchange.receive())))

    def take(self, message: ServerMessage) -> None:
        """Do what a server says."""
        if message.beat and self.leases.acknowledge(message.beat, message.lease_seconds):
            self._news.set()  # the next beat may be due earlier
        for answer in message.answers:
            self.outbox.answer(answer["number"], answer["accepted"])
            if self._is_draining:
                self._leave()
        for lease in message.stop:
            self.commands.stop(part_in(lease), lease["lease"])
        for command in message.commands:
            self.commands.take(work_in(command["work"]), command["secrets"])

    async def _until_it_leaves(self) -> None:
        await self._leaves.wait()

    async def _send(self, exchange: Exchange) -> None:
        while True:
            timer = asyncio.get_running_loop().call_later(self.leases.until_beat, self._news.set)
            await self._news.wait()
            timer.cancel()
            self._news.clear()
            messages = list(self.outbox.take())
            for results in messages[:-1]:
                await exchange.send(encode(results))
            await exchange.send(encode(messages[-1] | self._state(messages[-1]["reports"])))

    def _state(self, reports: list[dict[str, Any]]) -> dict[str, Any]:
        """Return what a message says besides what is reported in it: a renewal, if one is due, and that we leave."""
        state: dict[str, Any] = {}
        if not self.leases.until_beat:
            self._data.forget_secrets(is_idle=not self.commands)
            # What runs here, and what has ended and these reports say so.
            held = {part_in(report): report["lease"] for report in reports} | self.commands.held
            state["beat"] = self.leases.beat()
            state["held"] = [lease_form(part, lease) for part, lease in held.items()]
        if self._is_draining:
            state["slots"] = 0
        return state
