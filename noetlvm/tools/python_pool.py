"""Child processes for `python` tasks: started when needed, used again, ended with all they started when cancelled."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from pathlib import Path
from typing import Any, NamedTuple

_CHILD = Path(__file__).with_name("python_child.py")
_IDLE_MAX = 8
"""Children that are kept while nobody uses them."""

_GRACE_SECONDS = 2
"""How long a child may take to end what it runs."""

_LOG = logging.getLogger(__name__)


class Answer(NamedTuple):
    """What came of one piece of code."""

    signal: int
    """The signal that ended it; 0 if none did."""
    too_much: bool
    printed: str
    body: bytes


class Gone(Exception):  # noqa: N818 - it says what happened
    """The child process has ended unasked."""


class PythonPool:
    """Warm children. There are as many as there are calls at once."""

    def __init__(self) -> None:
        self._idle: list[_Child] = []
        self._has_warned = False

    async def run(self, request: dict[str, Any]) -> Answer:
        """Run one piece of code; cancelled, it ends for good before this does. Raises Gone."""
        child = await self._take()
        is_whole = False
        try:
            found = await child.ask(json.dumps(request).encode())
            is_whole = True
            return found
        finally:
            if is_whole and len(self._idle) < _IDLE_MAX:
                self._idle.append(child)
            else:
                await asyncio.shield(child.end())

    async def close(self) -> None:
        idle, self._idle = self._idle, []
        await asyncio.gather(*(child.end() for child in idle))

    async def _take(self) -> _Child:
        while self._idle:
            child = self._idle.pop()
            if child.is_alive():
                return child
        child = await _Child.start()
        if child.missing and not self._has_warned:
            self._has_warned = True
            _LOG.warning("this system cannot keep `python` tasks from %s", " or from ".join(child.missing))
        return child


class _Child:
    """One child process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.missing: list[str] = []

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

    async def ask(self, request: bytes) -> Answer:
        assert self._process.stdin is not None, "it is a pipe"
        try:
            self._process.stdin.write(len(request).to_bytes(8, "big") + request)
            await self._process.stdin.drain()
        except ConnectionError:
            raise Gone from None
        head, body = await self._read()
        return Answer(head["signal"], head["too_much"], head["printed"], body)

    async def end(self) -> None:
        """End it and what it runs: without a reader it does so by itself, and in good time or not at all."""
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
            raise Gone from None
