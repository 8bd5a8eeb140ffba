"""The ports of simulated processes: clocks, a store that fails, tools, identifiers and a keychain."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from hashlib import sha256
from itertools import count, islice
from typing import TYPE_CHECKING, Any, NamedTuple

from noetlvm.bytecode.program import KeychainEntry
from noetlvm.keychain.shapes import secret_texts
from noetlvm.rounds.credentials import Credentials, KnownSecrets
from noetlvm.sim.loop import KilledError, Process, SimulatedLoop, running_process
from noetlvm.store.interface import Append, QueuedCommand, StoreError
from noetlvm.store.memory import MemoryStore
from noetlvm.tools.call import Outcome, ToolCall, error, ok

if TYPE_CHECKING:
    from collections.abc import Iterable

EPOCH = 1_700_000_000.0
"""When every simulation begins."""
SECRET = "sim-secret-7f3a9c1e5d"
_KNOWN = KnownSecrets()
"""Of all simulated processes: making what masks a secret takes longer than many a simulation."""
LARGE_CHARS = 6_000
_READS = frozenset(
    {"bundle", "descendants", "due", "events", "execution", "expired", "requests", "snapshot", "started", "unfinished"}
)


class SimulatedClock:
    """A wall clock that may run too fast or too slowly, and jump. Monotonic time is that of the loop, as timers are."""

    def __init__(self, loop: SimulatedLoop) -> None:
        self._loop = loop
        self._rate = 1.0
        self._offset = EPOCH
        self._elapsed = 0.0
        self._since = 0.0

    def monotonic(self) -> float:
        return self._loop.time()

    def now(self) -> float:
        return self._offset + self._elapsed + (self._loop.time() - self._since) * self._rate

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def rest(self, waiting: int) -> None:
        """Time passes by itself."""

    def jump(self, seconds: float) -> None:
        self._offset += seconds

    def drift(self, rate: float) -> None:
        self._elapsed, self._since, self._rate = self.now() - self._offset, self._loop.time(), rate


class FaultyStore:
    """The port of one server to the shared store: each call may fail or take time, and a transaction be the last."""

    def __init__(
        self,
        inner: MemoryStore,
        loop: SimulatedLoop,
        process: Process,
        clock: SimulatedClock,
        armed: dict[str, float],
        die: Callable[[], None],
        happened: Callable[[str], None],
    ) -> None:
        self._inner = inner
        self._loop = loop
        self._process = process
        self._armed = armed
        """Faults of the next calls, by kind; the value is a time, a duration, or how many."""
        self._die = die
        self._happened = happened
        self.now = clock.now

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        return partial(self._read, found) if self._armed and name in _READS else found

    def _read(self, read: Callable[..., Any], *args: Any, **options: Any) -> Any:
        self._require_alive()
        armed = self._armed
        if "slow_read" in armed:
            self._happened("slow_read")
            # A worker that waits for an answer is blocked itself: the server reads for it in a thread.
            self._loop.block(running_process(), armed.pop("slow_read"))
        left = armed.pop("read_fails", 0)
        if not left:
            return read(*args, **options)
        self._happened("read_fails")
        if left > 1:
            armed["read_fails"] = left - 1
        found = read(*args, **options) if left % 2 else None
        if not isinstance(found, Iterator):
            raise StoreError("the connection to the database was lost")
        return _torn(found)

    def write(self, batch: Sequence[Append], bundles: Mapping[str, bytes] = {}) -> set[str]:
        conflicts: set[str] = self._transaction(self._inner.write, batch, bundles)
        if conflicts:
            self._happened("conflicting_append")
        return conflicts

    def claim(self, worker: str, pools: Iterable[str], until: float, limit: int, now: float) -> list[QueuedCommand]:
        if not self._armed:
            self._require_alive()
            return self._inner.claim(worker, pools, until, limit, now)
        found: list[QueuedCommand] = self._transaction(self._inner.claim, worker, pools, until, limit, now)
        return found

    def renew(self, worker: str, held: Sequence[QueuedCommand], until: float) -> list[QueuedCommand]:
        found: list[QueuedCommand] = self._transaction(self._inner.renew, worker, held, until)
        return found

    def release(self, worker: str, held: Sequence[QueuedCommand]) -> list[QueuedCommand]:
        found: list[QueuedCommand] = self._transaction(self._inner.release, worker, held)
        return found

    def request(self, execution_id: str, action: Any) -> None:
        self._transaction(self._inner.request, execution_id, action)

    def _transaction(self, act: Callable[..., Any], *args: Any) -> Any:
        self._require_alive()
        armed = self._armed
        if not armed:
            return act(*args)
        full_until = armed.get("full_disk", 0.0)
        if full_until > self._loop.time():
            self._happened("full_disk")
            raise StoreError("database or disk is full")
        if self._takes("server_crash_before_commit"):
            self._crash()
        if "slow_store" in armed:
            seconds = armed.pop("slow_store")
            self._happened("slow_store")
            self._loop.block(self._process, seconds)
            result = act(*args)
            self._loop.block(self._process, seconds / 2)
        else:
            result = act(*args)
        if self._takes("server_crash_after_commit"):
            self._crash()
        if self._takes("commit_answer_lost"):
            raise StoreError("the connection to the database was lost")
        return result

    def _takes(self, kind: str) -> bool:
        if kind not in self._armed:
            return False
        del self._armed[kind]
        self._happened(kind)
        return True

    def _crash(self) -> None:
        self._die()
        raise KilledError

    def _require_alive(self) -> None:
        if self._process.is_dead:
            raise KilledError


def _torn(rows: Iterator[Any]) -> Iterator[Any]:
    """Yield the first row; then the connection is lost."""
    yield from islice(rows, 1)
    raise StoreError("the connection to the database was lost")


class CallRecord(NamedTuple):
    """A tool call that began."""

    key: str
    attempt: int
    seq: int
    """Number of the last durable event of its execution at that moment."""


class SimulatedTools:
    """Answers every call by a number that follows from the seed, the task run and how often it was called."""

    def __init__(self, seed: int, store: MemoryStore, calls: list[CallRecord]) -> None:
        self._seed = seed
        self._store = store
        self._calls = calls

    def at_once(self, call: ToolCall) -> Outcome | None:
        return ok() if call.kind == "noop" else None

    async def run(self, call: ToolCall) -> Outcome:
        row = self._store.execution(call.key.partition("/")[0])
        number = _number(self._seed, call.key, call.attempt, len(self._calls))
        self._calls.append(CallRecord(call.key, call.attempt, row.seq if row else 0))
        await asyncio.sleep(_duration(number))
        return _outcome(number // 1000, call)

    async def close(self) -> None:
        """Nothing is open."""


def _number(*parts: object) -> int:
    return int.from_bytes(sha256(repr(parts).encode()).digest()[:6])


def _duration(number: int) -> float:
    """Return seconds: mostly short, sometimes longer than a lease."""
    chance = number % 100
    if chance < 8:
        return 6.0 + number % 21
    return (number % 200) / 100 if chance < 60 else 0.01


def _outcome(number: int, call: ToolCall) -> Outcome:
    chance = number % 100
    if chance < 14:
        return error("sim", f"attempt {call.attempt} fails", retryable=True)
    if chance < 22:
        return error("sim", "it fails", result={"inputs": dict(call.inputs)})
    if chance < 28:
        return ok("x" * LARGE_CHARS)
    if chance < 38:
        return ok({"echo": dict(call.inputs)})
    return ok(number % 7)


def resolve_secrets(declared: tuple[KeychainEntry, ...]) -> Credentials:
    """Give every credential the secret that must appear in no log."""
    if not declared:
        return Credentials()
    entries = {one.name: {"token": SECRET} for one in declared}
    return Credentials(entries, secret_texts(entries), _KNOWN)


def numbered_ids() -> Callable[[float, int], list[str]]:
    """Return a source of identifiers that count."""
    numbers = count(1)
    return lambda _now, wanted: [f"{next(numbers):012x}" for _ in range(wanted)]
