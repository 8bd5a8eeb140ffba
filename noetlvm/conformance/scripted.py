"""Scripted tools for workers in other processes: a host with the scripts, and tools that get their answers from it.

The host is in the process that runs the suite. A script may answer call by call, whichever worker makes the call, so
there is one owner of its state. The clock is shared too: a file says how fast time passes, so that waits cost little.
"""

from __future__ import annotations

import asyncio
import json
import os
import struct
import time
from collections.abc import Callable, Mapping
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from threading import Lock, Thread, get_ident
from typing import Any

from noetlvm.machine.instructions import CallTool
from noetlvm.machine.messages import Work
from noetlvm.testing.result import CallLog, CallMade, shown
from noetlvm.testing.script import Answer, Script, ScriptError, Scripts
from noetlvm.tools.call import Outcome, ToolCall, Tools, error, ok
from noetlvm.tools.inputs import plain

CLOCK, HOST = "clock", "host"
"""Files in the home folder of a cluster: the shared clock, and the socket of the script host."""

_TICK_SECONDS = 0.05
"""Longest real wait before the clock's speed is read again."""
_KEY = b"noetlvm conformance"

Part = tuple[str, int, str]


class SharedClock:
    """A clock for all processes of a cluster; its owner sets how many seconds pass in a real one."""

    _LAYOUT = struct.Struct("<ddd")

    def __init__(self, file: Path) -> None:
        self._file = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)

    def start(self) -> None:
        """Let time pass from now on, as fast as it does."""
        self._write(time.time(), 1.0)

    def set_speed(self, speed: float) -> None:
        self._write(self.now(), speed)

    def now(self) -> float:
        virtual, real, speed = self._read()
        return virtual + (time.monotonic() - real) * speed

    def monotonic(self) -> float:
        """Return real time: heartbeats and connections follow it."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        until = self.now() + seconds
        while (left := until - self.now()) > 0:
            await asyncio.sleep(min(left / self._read()[2], _TICK_SECONDS))

    def sleep_until(self, moment: float) -> None:
        """Block this thread until a time."""
        while (left := moment - self.now()) > 0:
            time.sleep(min(left / self._read()[2], _TICK_SECONDS))

    def rest(self, waiting: int) -> None:
        """Time passes by itself."""

    def _write(self, virtual: float, speed: float) -> None:
        os.pwrite(self._file, self._LAYOUT.pack(virtual, time.monotonic(), speed), 0)

    def _read(self) -> tuple[float, float, float]:
        virtual, real, speed = self._LAYOUT.unpack(os.pread(self._file, self._LAYOUT.size, 0))
        return virtual, real, speed


class ScriptHost:
    """Holds the scripts of bundles and answers the calls of all workers."""

    def __init__(self, address: Path, clock: SharedClock) -> None:
        self.keychains = address.with_suffix(".keychain")
        """File with the entries of the case that runs, which servers read."""
        self._clock = clock
        self._scripts: dict[str, Script] = {}
        self._written: dict[str, Scripts] = {}
        self._calls = CallLog()
        self._lock = Lock()
        self._listener = Listener(str(address), "AF_UNIX", backlog=16, authkey=_KEY)
        Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def set_keychain(self, entries: Mapping[str, Any]) -> None:
        """Let servers find these entries. A server may read the file at any time: it is replaced as a whole."""
        new = self.keychains.with_suffix(f".{get_ident()}")
        new.write_text(json.dumps(entries), encoding="utf-8")
        new.replace(self.keychains)

    def play(self, bundle: str, scripts: Scripts) -> None:
        """Answer the calls of a bundle's executions by a script, from its beginning."""
        with self._lock:
            self._scripts[bundle], self._written[bundle] = Script(scripts), scripts

    def played(self, execution_id: str) -> tuple[list[CallMade], int]:
        with self._lock:
            return self._calls.played(execution_id)

    def _accept(self) -> None:
        while True:
            try:
                connection = self._listener.accept()
            except (OSError, EOFError):
                return
            Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: Connection) -> None:
        while True:
            try:
                request, arguments = connection.recv()
                with self._lock:
                    answer = _REQUESTS[request](self, *arguments)
                connection.send(answer)
            except (EOFError, OSError):
                return

    def _begin(self, bundle: str, execution: str, step: str, iteration: str, call: CallTool, visible: Any) -> Answer:
        made = CallMade(self._clock.now(), step, iteration, call.label, call.attempt, call.kind, visible, call.key)
        self._calls.begin(execution, made)
        try:
            answer = self._scripts[bundle].answer(step, iteration, call)
        except ScriptError as problem:
            return Answer(error("script", str(problem)))
        return answer or Answer(error("script", f"the script has no answer for `{call.label}`"))


_REQUESTS: dict[str, Callable[..., Any]] = {
    "script": lambda host, bundle: host._written.get(bundle),
    "begin": ScriptHost._begin,
    "end": lambda host, execution: host._calls.end(execution),
}


class HostedTools:
    """Takes answers from a host. A bundle without a script has real tools."""

    def __init__(self, address: Path, clock: SharedClock, tools: Tools) -> None:
        self.works: dict[Part, Work] = {}
        """The command of each pipeline that this worker began last."""
        self.redacted: Callable[[Part, Any], Any] = lambda _part, value: value
        self.lose: Callable[[Part, int, bool], None] = lambda _part, _lease, _late: None
        """Returns a command to the server, and stops it unless it reports late."""
        self._host = Client(str(address), "AF_UNIX", authkey=_KEY)
        self._clock = clock
        self._tools = tools
        self._scripts: dict[str, Script | None] = {}

    def at_once(self, call: ToolCall) -> Outcome | None:
        work = self.works[_part(call)]
        script = self._script(work.bundle)
        if script is None:
            return self._tools.at_once(call)
        is_idle = call.kind == "noop" and not script.knows(work.step, work.iteration, call.label)
        return ok() if is_idle else None

    async def run(self, call: ToolCall) -> Outcome:
        part = _part(call)
        work = self.works[part]
        if self._script(work.bundle) is None:
            return await self._tools.run(call)
        inputs = plain(call.inputs)
        wanted = CallTool(call.kind, inputs, dict(call.spec), 0, call.label, call.attempt, call.key)
        visible = shown(self.redacted(part, dict(inputs)))
        answer: Answer = self._request(
            "begin", work.bundle, work.execution_id, work.step, work.iteration, wanted, visible
        )
        if answer.fate:
            self.lose(part, work.lease, answer.fate == "late")
        try:
            await self._clock.sleep(answer.takes)
        finally:
            self._request("end", work.execution_id)
        if answer.fate == "lost":
            raise asyncio.CancelledError
        return answer.outcome

    async def close(self) -> None:
        self._host.close()
        await self._tools.close()

    def _script(self, bundle: str) -> Script | None:
        if bundle not in self._scripts:
            written: Mapping[str, Any] | None = self._request("script", bundle)
            self._scripts[bundle] = None if written is None else Script(written)
        return self._scripts[bundle]

    def _request(self, request: str, *arguments: Any) -> Any:
        """Exchange one message with the host. It blocks, as briefly as a call within the process would."""
        self._host.send((request, arguments))
        return self._host.recv()


def _part(call: ToolCall) -> Part:
    execution, number, *iteration = call.key.rpartition("#")[0].split("/")
    return execution, int(number), iteration[0] if iteration else ""
