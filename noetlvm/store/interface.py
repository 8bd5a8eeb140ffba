"""What a store keeps and what it promises, whichever it is. One set of contract tests runs against each.

Writing is buffered: `append` and its like only check and remember, and `commit` makes everything since the last commit
durable at once, or nothing of it. Reading gives what is committed, never what waits for a commit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

from noetlvm.data.event import Recorded

Durability: TypeAlias = Literal["full", "relaxed"]
"""How much may be lost.

`full`: nothing. Every decision is committed before the next is made, and what is committed survives a power cut.

`relaxed`: commits do not wait for the disk, so a power cut or a crash of the operating system may lose the latest of
them (but leaves no half of one), and a tool that ran after the last that is left runs again. The engine may moreover
let several decisions share a commit, for a few milliseconds, as long as no tool, timer or child has to be begun: if
the process dies, decisions since the last commit are made again, and no tool with an effect runs twice for it. What
observers hear and readers see is committed."""

Action: TypeAlias = Literal["cancel", "pause", "resume"]


class StoreError(Exception):
    """The store cannot do what it was asked. The message says why, and what to do."""


class ConflictError(StoreError):
    """Somebody else has appended to the execution since its caller last looked."""


class LockedError(StoreError):
    """Another process writes to this database."""


class Execution(NamedTuple):
    """How an execution stands: what lists and overviews show without reading its events."""

    execution_id: str
    bundle: str
    name: str
    path: str
    status: str
    """`running`, `paused`, `success`, `failed` or `cancelled`."""
    started: float
    ended: float | None = None
    """None while anything is left to do: then the execution can be resumed."""
    parent: str = ""
    """Execution that asked for this one, as its child."""
    counts: Mapping[str, int] = {}
    """Whatever is worth counting, for instance step runs and failures."""
    seq: int = 0
    """Number of its last event. The store sets it."""


class Snapshot(NamedTuple):
    """A state, as data, after the event of this number. It can be thrown away: the events tell the same."""

    bundle: str
    seq: int
    data: Any


class Dispatch(NamedTuple):
    """A command that waits in the outbox or is held: one part of a step run, under a lease number that only grows."""

    execution_id: str
    run: int
    unit: str
    """The part of the run that the lease covers, as an index path; empty: all of it."""
    lease: int


class ControlRequest(NamedTuple):
    """What somebody outside of the running process wants of an execution."""

    number: int
    execution_id: str
    action: Action


class Reader(Protocol):
    """Reads what is committed. Any number of readers may look while somebody writes."""

    def execution(self, execution_id: str) -> Execution | None:
        """Return how an execution stands; None if there is none."""

    def executions(self, *, limit: int | None = None, parent: str | None = None) -> list[Execution]:
        """Return executions, the latest first; with `parent`, only its children (`""`: those of nobody)."""

    def unfinished(self) -> list[Execution]:
        """Return executions that have not ended, the earliest first."""

    def events(self, execution_id: str, after: int = 0, until: int | None = None) -> Iterator[Recorded]:
        """Return the events with numbers above `after`, up to and with `until`, in their order."""

    def bundle(self, bundle: str) -> bytes | None:
        """Return a bundle's bytes."""

    def snapshot(self, execution_id: str, bundle: str, until: int | None = None) -> Snapshot | None:
        """Return the latest snapshot that was made with this bundle, not later than the event `until`."""

    def close(self) -> None:
        """Let go of everything. What was not committed is lost."""


class Store(Reader, Protocol):
    """Reads and writes. A database has one such at a time."""

    durability: Durability

    # ---- what a decision changes: buffered until `commit`

    def append(
        self,
        execution_id: str,
        expected_seq: int,
        events: Sequence[Recorded],
        execution: Execution,
        *,
        opened: Iterable[Dispatch] = (),
        closed: Iterable[Dispatch] = (),
        done: Iterable[ControlRequest] = (),
    ) -> None:
        """Add one decision: events, how the execution stands now, commands to give out or take back, requests met.

        `expected_seq` is the number of the last event that the decision knew, 0 for a new execution, and `events` go on
        from there without a gap; else ConflictError, and nothing is added. An opened command replaces the one of the
        same part under an older lease; closing one under an older lease changes nothing.
        """

    def put_bundle(self, bundle: str, data: bytes) -> None:
        """Keep a bundle; one that is there stays as it is."""

    def put_snapshot(self, execution_id: str, snapshot: Snapshot) -> None:
        """Keep a snapshot of events that are appended already."""

    def drop_snapshots(self, execution_id: str) -> None:
        """Forget the snapshots of an execution."""

    def commit(self) -> None:
        """Make everything since the last commit durable, in one transaction. Without anything to write it is free.

        It may run in a thread while others append: those appends belong to the next commit. After a commit that failed
        the store refuses everything; open it anew, and go on from what was committed.
        """

    # ---- commands and their leases: each call is a transaction of its own, over what is committed

    def claim(self, worker: str, until: float, limit: int = 1) -> list[Dispatch]:
        """Give commands that nobody holds to a worker, the oldest first, to hold until that time."""

    def renew(self, worker: str, held: Sequence[Dispatch], until: float) -> list[Dispatch]:
        """Let a worker hold its commands for longer; return those that it still holds."""

    def expired(self, now: float) -> list[Dispatch]:
        """Return commands whose holder let their time pass. A new lease number must be decided on for each."""

    # ---- requests from outside

    def request(self, execution_id: str, action: Action) -> None:
        """Ask for an action at once: durable when it returns."""

    def requests(self) -> list[ControlRequest]:
        """Return requests that are not met yet, in their order. Cheap when there is nothing new."""
