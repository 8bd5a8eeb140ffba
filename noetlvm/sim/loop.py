"""An event loop on virtual time that runs several simulated processes in one thread.

Every callback belongs to the process in whose context it was scheduled. Callbacks of a dead process are dropped, those
of a stopped one wait until it continues. Time passes only when nothing is ready. A process that blocks in a synchronous
call is stopped, and the others run, until the call returns: `block`.
"""

from __future__ import annotations

import asyncio
import heapq
from asyncio import events
from asyncio.tasks import _enter_task, _leave_task  # `block` must leave the task it is in
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar, copy_context
from itertools import count
from typing import Any


class KilledError(BaseException):
    """Ends the code of a process that crashes within a call. No handler of the process may catch it."""


class StuckLoopError(Exception):
    """Something runs without end."""


class Process:
    """A simulated process: what its tasks and callbacks belong to."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_dead = False
        self._stops = 0
        self._backlog: list[_Entry] = []

    @property
    def is_stopped(self) -> bool:
        return self._stops > 0

    def stop(self) -> None:
        self._stops += 1

    def append(self, entry: _Entry) -> None:
        self._backlog.append(entry)

    def resume(self) -> list[_Entry]:
        """End one stop; return what waited, if it was the last."""
        self._stops -= 1
        return [] if self._stops else self.release()

    def release(self) -> list[_Entry]:
        waited, self._backlog = self._backlog, []
        return waited


WORLD = Process("world")
"""Owns what belongs to no process: network, faults, checks."""

_OWNER: ContextVar[Process] = ContextVar("process", default=WORLD)


def running_process() -> Process:
    """Return the process whose code runs now."""
    return _OWNER.get()


TICKS_MAX = 1_000_000
"""Callbacks of a simulation: with more, something runs without end. Most have some thousands, few 100,000."""


class _Entry:
    """A scheduled callback; also the handle that asyncio gets."""

    __slots__ = ("args", "at", "callback", "context", "is_cancelled", "owner")

    def __init__(self, callback: Callable[..., Any], args: Any, context: Context, at: float) -> None:
        self.callback = callback
        self.args = args
        self.context = context
        self.owner = context.get(_OWNER, WORLD)
        self.is_cancelled = False
        self.at = at

    def cancel(self) -> None:
        self.is_cancelled = True

    def cancelled(self) -> bool:
        return self.is_cancelled

    def when(self) -> float:
        return self.at


class SimulatedLoop(asyncio.AbstractEventLoop):
    """Runs callbacks in the order of their time and of their scheduling."""

    def __init__(self) -> None:
        self.failures: list[tuple[str, BaseException]] = []
        """Process and exception of each task that failed, and of each callback."""
        self.is_closing = False
        self._now = 0.0
        self._ticks = 0
        self._ready: deque[_Entry] = deque()
        self._timers: list[tuple[float, int, _Entry]] = []
        self._order = count()
        self._dropped: list[_Entry] = []
        """What dead processes would have done. It runs when the loop is closed, so that every coroutine ends."""
        self._tasks: dict[asyncio.Task[Any], Process] = {}

    # ---- what asyncio uses

    def time(self) -> float:
        return self._now

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return False

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(self, coro: Any, *, name: str | None = None, context: Context | None = None) -> asyncio.Task[Any]:
        task: asyncio.Task[Any] = asyncio.Task(coro, loop=self, name=name or "task", context=context)
        self._tasks[task] = (context or copy_context()).get(_OWNER, WORLD)
        task.add_done_callback(self._ended)
        return task

    def call_soon(  # type: ignore[override]  # the handle has the methods that asyncio calls
        self, callback: Any, *args: Any, context: Context | None = None
    ) -> Any:
        entry = _Entry(callback, args, context or copy_context(), self._now)
        self._ready.append(entry)
        return entry

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Any, *args: Any, context: Context | None = None
    ) -> Any:
        return self.call_at(self._now + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Any, *args: Any, context: Context | None = None
    ) -> Any:
        entry = _Entry(callback, args, context or copy_context(), when)
        heapq.heappush(self._timers, (when, next(self._order), entry))
        return entry

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if error is not None:
            self._note(_OWNER.get(), error)

    # ---- processes

    def spawn(self, process: Process, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        context = copy_context()
        context.run(_OWNER.set, process)
        return self.create_task(work, context=context)

    def call_in(self, process: Process, delay: float, callback: Callable[..., None], *args: Any) -> None:
        """Call something in a process after a time."""
        context = copy_context()
        context.run(_OWNER.set, process)
        self.call_at(self._now + delay, callback, *args, context=context)

    def kill(self, process: Process) -> None:
        """Let a process die: nothing of it runs any more, clean-up included."""
        process.is_dead = True

    def stop_process(self, process: Process, seconds: float) -> None:
        """Stop a process for a time, as SIGSTOP does."""
        process.stop()
        self.call_in(WORLD, seconds, self._continue, process)

    def _continue(self, process: Process) -> None:
        self._ready.extend(process.resume())

    def block(self, process: Process, seconds: float) -> None:
        """Let time pass within a synchronous call of a process, while the others run. Raises KilledError."""
        task = asyncio.current_task(self)
        if task is not None:
            _leave_task(self, task)
        process.stop()
        self.run(lambda: False, self._now + seconds)
        self._continue(process)
        if task is not None:
            _enter_task(self, task)
        if process.is_dead:
            raise KilledError

    # ---- running

    def run(self, is_done: Callable[[], bool], until: float) -> bool:
        """Run until something is done or a time has come; return whether it is done."""
        ready = self._ready
        while True:
            if ready:
                self._ticks += 1
                if self._ticks > TICKS_MAX:
                    raise StuckLoopError(f"at {self._now:.3f} s something runs without end")
                self._run_entry(ready.popleft())
                continue
            if is_done():
                return True
            timers = self._timers
            while timers and timers[0][2].is_cancelled:
                heapq.heappop(timers)
            if not timers or timers[0][0] > until:
                self._now = max(self._now, until)
                return False
            self._now = max(self._now, timers[0][0])
            while timers and timers[0][0] <= self._now:
                ready.append(heapq.heappop(timers)[2])

    def _run_entry(self, entry: _Entry) -> None:
        owner = entry.owner
        if entry.is_cancelled:
            return
        if not self.is_closing and (owner.is_dead or owner.is_stopped):
            (self._dropped if owner.is_dead else owner).append(entry)
            return
        try:
            entry.context.run(entry.callback, *entry.args)
        except KilledError:
            pass
        except Exception as error:
            self._note(owner, error)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        owner = self._tasks.pop(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._note(owner, error)

    def _note(self, owner: Process, error: BaseException) -> None:
        if not owner.is_dead and not self.is_closing and not isinstance(error, KilledError):
            self.failures.append((owner.name, error))

    def __enter__(self) -> SimulatedLoop:
        events._set_running_loop(self)
        return self

    def __exit__(self, *_: object) -> None:
        """End all tasks, those of dead processes too: what they do now counts no more."""
        self.is_closing, self._ticks = True, 0
        try:
            self._ready.extend(self._dropped)
            for owner in set(self._tasks.values()):
                self._ready.extend(owner.release())
            for _turn in range(10):
                for task in list(self._tasks):
                    task.cancel()
                self.run(lambda: not self._tasks, self._now + 1)
        finally:
            events._set_running_loop(None)
