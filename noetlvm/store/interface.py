"""The four ports of a store: log, dispatch, catalogue and executions. One contract test set covers every store.

`Log.write` is the only way to change an execution: it takes a batch of appends, at most one per execution, in one
transaction. Each append names the sequence number that its decision knew; one that lost a race to another writer is
left out, and its neighbours are written. Every method is synchronous and may be called from any thread; every time is
a parameter, so that leases and timers follow the clock of the caller's choice (`Store.now` for a shared database).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

from noetlvm.data.event import Recorded
from noetlvm.language.placement import DEFAULT_POOL

Durability: TypeAlias = Literal["full", "relaxed"]
"""How much may be lost.

`full`: nothing. Every decision is written before the next is made, and what is written survives a power cut.

`relaxed`: writes do not wait for the disk, so a power cut or a crash of the operating system may lose the latest of
them (but never half of one), and a tool that ran after the last remaining one runs again. The engine may also let
several decisions share a write, for a few milliseconds, as long as no tool, timer or child has to be started: if the
process dies, decisions since the last write are made again, and no tool with an effect runs twice for it. Observers
and readers see only what is written."""

Action: TypeAlias = Literal["cancel", "pause", "resume"]
"""The control requests."""

PAGE_ROWS = 100
"""Default number of rows of a page."""


class StoreError(Exception):
    """The store cannot do this. The message gives reason and remedy. Nothing was written; a retry is allowed."""


class LockedError(StoreError):
    """Another process writes to this database."""


class DamagedError(StoreError):
    """A row does not hold what was written to it, or is missing. The message names it."""


class Execution(NamedTuple):
    """The row of an execution: what lists, timers and servers need without reading its events."""

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
    """Execution that started this one as its child."""
    counts: Mapping[str, int] = {}
    """Counters for overviews, for instance step runs and failures."""
    seq: int = 0
    """Number of its last event."""
    due: float | None = None
    """Time of its next timer."""
    trace: str = ""
    """Execution at the root of its request; empty: it has no parent and is the root itself."""

    @property
    def trace_id(self) -> str:
        """Return the identifier that all executions of one request share."""
        return self.trace or self.execution_id


class Snapshot(NamedTuple):
    """A state, as data, after the event of this number. It is a cache: folding the events gives the same state."""

    bundle: str
    seq: int
    data: Any


class QueuedCommand(NamedTuple):
    """A unit of work in the outbox: one part of a step run, under a lease number that only grows.

    A lease number is claimed at most once. After a lost or released lease the part gets a higher
    number, which the log assigns; so a report that names an old number is recognised as stale.
    """

    execution_id: str
    run: int
    unit: str
    """The part of the run that the lease covers, as an index path; empty: all of it."""
    lease: int
    step: str = ""
    pool: str = DEFAULT_POOL
    not_before: float = 0.0
    """Time before which it is not claimed."""
    worker: str = ""
    """The worker that holds it; empty: none. A command opened with a worker is claimed in the same transaction."""
    until: float = 0.0
    """When the claim ends; 0 with a worker: the worker released it."""
    attempts: int = 0
    """How often this part was claimed, under any lease. The store counts."""
    bundle: str = ""
    """Of the execution. The store fills it in, and `path`."""
    path: str = ""

    @property
    def part(self) -> tuple[str, int, str]:
        return self[:3]


class ExecutionRequest(NamedTuple):
    """An input for an execution from outside of it: from a user, its parent or its child. Waits until acknowledged.

    The execution need not exist yet: a parent starts its child by a request.
    """

    execution_id: str
    action: str
    data: Any = None
    """Plain data that belongs to the action."""
    number: int = 0
    """Position in the order of arrival, never used twice. The store assigns it."""


class Append(NamedTuple):
    """What one decision changes: all of it is written, or nothing."""

    execution: Execution
    """The row after this decision; its `seq` is the number of the last event."""
    known_seq: int
    """Number of the last event that the decision knew; 0: the execution is new."""
    events: Sequence[Recorded] = ()
    """They continue from `known_seq` without a gap."""
    opened: Sequence[QueuedCommand] = ()
    """Replaces the command of the same part under an older lease."""
    closed: Sequence[QueuedCommand] = ()
    """Removes the command of the same part, up to this lease; also one that this append opens."""
    acknowledged: Sequence[int] = ()
    """Numbers of requests that this decision answers."""
    sent: Sequence[ExecutionRequest] = ()
    """Requests to other executions."""
    snapshot: Snapshot | None = None
    """Replaces the earlier snapshot."""
    start_key: str = ""
    """Of a new execution: if another execution already has this key, the append conflicts."""


class CatalogueEntry(NamedTuple):
    """A playbook as it was registered."""

    path: str
    version: int
    """Counts from 1 for each path."""
    bundle: str
    registered: float


class StoredToken(NamedTuple):
    """An access token of the service: everything but its secret."""

    id: str
    digest: str
    """SHA-256 of the secret, in hexadecimal."""
    scopes: tuple[str, ...]
    created: float
    revoked: float | None = None


class LogReader(Protocol):
    """Reads events and snapshots."""

    def events(self, execution_id: str, after: int = 0, until: int | None = None) -> Iterator[Recorded]:
        """Return the events with numbers above `after`, up to and including `until`, in order."""

    def snapshot(self, execution_id: str, bundle: str, until: int | None = None) -> Snapshot | None:
        """Return the snapshot if it was made with this bundle and not after the event `until`."""


class Log(LogReader, Protocol):
    """Events of executions, and the one write."""

    def write(self, batch: Sequence[Append], bundles: Mapping[str, bytes] = {}) -> set[str]:
        """Write a batch, and bundles that it refers to, in one transaction; return the executions that lost a race.

        An append is left out if its execution's row no longer has `known_seq` (or, for a new execution, exists, or its
        start key does); the caller then reads the tail of the log and the requests again and decides again. Raises
        StoreError if nothing could be written, and ValueError or UnencodableError for an append that is invalid.
        """


class Dispatch(Protocol):
    """Commands and their holders. Each call is a transaction of its own."""

    def claim(self, worker: str, pools: Iterable[str], until: float, limit: int, now: float) -> list[QueuedCommand]:
        """Assign unclaimed commands of these pools whose time has come, the oldest first, until a time."""

    def renew(self, worker: str, held: Sequence[QueuedCommand], until: float) -> list[QueuedCommand]:
        """Extend a worker's claims; return those that it still holds."""

    def release(self, worker: str, held: Sequence[QueuedCommand]) -> list[QueuedCommand]:
        """End a worker's claims at once, as if their time had passed; return those that it held."""

    def expired(self, now: float, limit: int = PAGE_ROWS) -> list[QueuedCommand]:
        """Return commands whose claim has ended, the oldest first. Each needs a decision that opens a new lease."""


class CatalogueReader(Protocol):
    """Reads bundles and registered playbooks."""

    def bundle(self, bundle: str) -> bytes | None:
        """Return a bundle's bytes."""

    def resolve(self, path: str, version: int | None = None) -> CatalogueEntry | None:
        """Return the registered playbook of a version; without one, the latest."""

    def playbooks(self, *, after: str = "", limit: int = PAGE_ROWS) -> list[CatalogueEntry]:
        """Return the latest version of each playbook, by path; `after` is the last path of the page before."""

    def versions(self, path: str, *, before: int | None = None, limit: int = PAGE_ROWS) -> list[CatalogueEntry]:
        """Return the versions of a playbook, the latest first; `before` is the last version of the page before."""


class Catalogue(CatalogueReader, Protocol):
    """Bundles by content id, and playbooks by path and version."""

    def put_bundle(self, bundle: str, data: bytes) -> None:
        """Store a bundle; an existing one stays as it is."""

    def register(self, path: str, bundle: str, data: bytes, now: float) -> CatalogueEntry:
        """Store a bundle as the next version of a playbook; if it is the latest already, return that."""


class ExecutionsReader(Protocol):
    """Reads the rows of executions, their requests and start keys."""

    def execution(self, execution_id: str) -> Execution | None:
        """Return the row of an execution."""

    def find(self, text: str, limit: int) -> list[Execution]:
        """Return executions whose identifier is, begins or ends with a text; an exact match alone."""

    def executions(
        self,
        *,
        status: str | None = None,
        path: str | None = None,
        parent: str | None = None,
        before: str | None = None,
        limit: int | None = None,
    ) -> list[Execution]:
        """Return executions, the latest first; `parent=""`: those without a parent.

        `before` is the last execution of the page before. Raises StoreError if that has been deleted meanwhile.
        """

    def descendants(self, trace: str) -> int:
        """Return how many executions were started under a root, at any depth."""

    def unfinished(self, limit: int | None = None) -> list[Execution]:
        """Return executions that have not ended, the earliest first."""

    def due(self, now: float, limit: int = PAGE_ROWS) -> list[Execution]:
        """Return executions whose timer has come, the most overdue first."""

    def requests(
        self, execution_id: str | None = None, *, after: int = 0, limit: int | None = None
    ) -> list[ExecutionRequest]:
        """Return requests that are not acknowledged, in order. Cheap when there are none.

        `after` is the last number of the call before. Servers that share a store commit out of order, so requests with
        a lower number that were stored since then are returned too, and one may be returned twice.
        """

    def started(self, start_key: str) -> str | None:
        """Return the execution that was started with a key."""


class Executions(ExecutionsReader, Protocol):
    """Rows of executions, requests to them, and start keys."""

    def request(self, execution_id: str, action: Action) -> None:
        """Send a control request. Raises StoreError if there is no such execution, or it has ended."""

    def delete(self, execution_ids: Iterable[str]) -> int:
        """Remove executions with everything that belongs to them; return how many there were."""


class Tokens(Protocol):
    """Access tokens of the service."""

    def put_token(self, token: StoredToken) -> None:
        """Store a new token."""

    def token(self, id: str) -> StoredToken | None:
        """Return a token by its id."""

    def tokens(self) -> list[StoredToken]:
        """Return all tokens, the oldest first."""

    def revoke_token(self, id: str, now: float) -> bool:
        """Revoke a token; return False if there is none. Idempotent: the first time counts."""


class TokenStore(Tokens, Protocol):
    """The tokens of a store, opened for themselves."""

    def now(self) -> float:
        """Return the time of the store."""

    def close(self) -> None:
        """Release everything."""


class StoreReader(LogReader, CatalogueReader, ExecutionsReader, Protocol):
    """Reads a store. Any number of readers may work while others write."""

    def references(self) -> Iterator[str]:
        """Return the keys of stored results that events refer to, each once."""

    def close(self) -> None:
        """Release everything."""


class Store(StoreReader, Log, Dispatch, Catalogue, Executions, Tokens, Protocol):
    """All ports over one database."""

    durability: Durability

    def now(self) -> float:
        """Return the time of the store: one clock for all processes that share it."""
