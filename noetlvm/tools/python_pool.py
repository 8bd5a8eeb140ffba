"""Child processes for `python` tasks: started on demand, reused, killed with everything they started when cancelled."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
from collections import deque
from pathlib import Path
from typing import Any, NamedTuple

_CHILD = Path(__file__).with_name("python_child.py")
_IDLE_MAX = 8
"""Idle children that stay running."""
_AT_ONCE = max(2, os.cpu_count() or 2)
"""Children that are started without waiting whether one becomes idle."""
_PATIENCE_SECONDS = 0.02
"""Time that a task waits for a child before another one is started: short tasks share few, long ones do not queue."""

_GRACE_SECONDS = 2
"""Time a child gets to end what it runs."""

_LOG = logging.getLogger(__name__)


class Response(NamedTuple):
    """How one piece of code ended."""

    signal: int
    """The signal that ended it; 0 if none did."""
    stopped: str
    """`output` or `processes` if it exceeded that limit."""
    printed: str
    body: bytes


class ChildEndedError(Exception):
    """The child process ended unexpectedly."""


class PythonPool:
    """Running children. Each runs one task at a time."""

    def __init__(self) -> None:
        self._idle: list[_Child] = []
        self._running = 0
        """Tasks that have a child, or start one."""
        self._waiting: deque[asyncio.Future[_Child | None]] = deque()
        """Tasks that wait for a child; None: for too long."""
        self._has_warned = False

    async def run(self, execution: str, limits: dict[str, int], request: dict[str, Any]) -> Response:
        """Run one piece of code; a cancellation waits until it is killed. Raises ChildEndedError."""
        child = await self._take(execution)
        is_reusable = False
        try:
            head = json.dumps({"execution": execution, "limits": limits}).encode()
            found = await child.request(head, json.dumps(request).encode())
            child.execution = execution
            is_reusable = True
            return found
        finally:
            if not is_reusable:
                await asyncio.shield(child.end())
            await self._give_back(child)

    async def close(self) -> None:
        idle, self._idle = self._idle, []
        await asyncio.gather(*(child.end() for child in idle))

    async def _take(self, execution: str) -> _Child:
        found = await self._freed() if not self._idle and self._running >= _AT_ONCE else None
        if found is not None:
            if found.is_alive():
                return found
        else:
            self._running += 1
        while self._idle:
            # A child that ran the same execution last has a process ready for it.
            found = next((child for child in self._idle if child.execution == execution), self._idle[-1])
            self._idle.remove(found)
            if found.is_alive():
                return found
        try:
            child = await _Child.start()
        except BaseException:
            self._running -= 1
            raise
        if child.missing and not self._has_warned:
            self._has_warned = True
            _LOG.warning("this system cannot prevent `python` tasks from %s", " or from ".join(child.missing))
        return child

    async def _freed(self) -> _Child | None:
        """Wait for the child of another task, but not for long."""
        loop = asyncio.get_running_loop()
        freed: asyncio.Future[_Child | None] = loop.create_future()
        timer = loop.call_later(_PATIENCE_SECONDS, _stop_waiting, freed)
        self._waiting.append(freed)
        try:
            return await freed
        except asyncio.CancelledError:
            child = freed.result() if freed.done() and not freed.cancelled() else None
            if child is not None:
                await self._give_back(child)
            raise
        finally:
            timer.cancel()

    async def _give_back(self, child: _Child) -> None:
        """Hand a child to the task that waits for one, which then counts as running."""
        while self._waiting:
            waiting = self._waiting.popleft()
            if not waiting.done():
                waiting.set_result(child)
                return
        self._running -= 1
        if not child.is_alive():
            return
        if len(self._idle) < _IDLE_MAX:
            self._idle.append(child)
        else:
            await asyncio.shield(child.end())


def _stop_waiting(freed: asyncio.Future[_Child | None]) -> None:
    if not freed.done():
        freed.set_result(None)


class _Child:
    """One child process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.missing: list[str] = []
        self.execution = ""
        """The execution whose task it ran last."""

    @classmethod
    async def start(cls) -> _Child:
        pipe = asyncio.subprocess.PIPE
        child = cls(
            await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-u", "-X", "utf8", str(_CHILD)),
                env={},
                cwd="/",
                stdin=pipe,
                stdout=pipe,
                stderr=asyncio.subprocess.DEVNULL,
                start_new_session=True,
            )
        )
        is_ready = False
        try:
            head, _ = await child._read()
            is_ready = True
        finally:
            if not is_ready:
                await asyncio.shield(child.end())
        child.missing = head["missing"]
        return child

    def is_alive(self) -> bool:
        return self._process.returncode is None

    async def request(self, head: bytes, body: bytes) -> Response:
        assert self._process.stdin is not None, "it is a pipe"
        try:
            sizes = len(head).to_bytes(8, "big") + len(body).to_bytes(8, "big")
            self._process.stdin.write(b"".join((sizes, head, body)))
            await self._process.stdin.drain()
        except ConnectionError:
            raise ChildEndedError from None
        answer, result = await self._read()
        return Response(answer["signal"], answer["stopped"], answer["printed"], result)

    async def end(self) -> None:
        """End it and what it runs: it does so when its input is closed, or is killed."""
        assert self._process.stdin is not None, "it is a pipe"
        self._process.stdin.close()
        try:
            await asyncio.wait_for(self._process.wait(), _GRACE_SECONDS)
        except TimeoutError:
            self._process.kill()
            await self._process.wait()

    async def _read(self) -> tuple[dict[str, Any], bytes]:
        stdout = self._process.stdout
        assert stdout is not None, "it is a pipe"
        try:
            sizes = await stdout.readexactly(16)
            head = json.loads(await stdout.readexactly(int.from_bytes(sizes[:8], "big")))
            return head, await stdout.readexactly(int.from_bytes(sizes[8:], "big"))
        except (asyncio.IncompleteReadError, ConnectionError):
            raise ChildEndedError from None
