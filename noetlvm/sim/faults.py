"""Every kind of fault: what it does to a simulated service. A schedule is a list of faults with times."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from noetlvm.sim.loop import WORLD
from noetlvm.store.interface import QueuedCommand

if TYPE_CHECKING:
    from noetlvm.sim.world import World

FAULT_SECONDS = 20.0
"""No fault begins later."""
_KINDS_MAX = 8
_LEASE_SECONDS = 15.0
_RARE = ["wake_up_lost"] * 4 + ["wake_up_doubled"] * 2
"""Kinds that are scheduled more often, because the moment that they wait for often does not come."""
_READ_KINDS = ("read_fails", "slow_read")
_READS_SHARE = 0.2
_RETRIES_SHARE = 0.5
_LOOK_SECONDS = 0.5
"""How often a fault looks for what it needs."""


class Fault(NamedTuple):
    """Something that goes wrong at a time."""

    at: float
    kind: str
    target: int
    """Which server, worker or execution: modulo their number."""
    amount: float
    """How much, between 0 and 1."""


class FaultKind(NamedTuple):
    """A row of the table."""

    summary: str
    strike: Callable[[World, Fault], None]


def random_schedule(random: Random, reads: Random, retries: Random, *, is_embedded: bool = False) -> list[Fault]:
    """Return faults of a few kinds, in the order of their time.

    Faults of reads and retries have sources of their own: they come to a schedule and change nothing else of it, so
    that seeds which failed before there were any still mean what they meant.
    """
    known = sorted(set(EMBEDDED if is_embedded else FAULTS).difference((*_READ_KINDS, "retry")))
    known += [] if is_embedded else _RARE
    kinds = sorted(set(random.sample(known, random.randint(1, min(_KINDS_MAX, len(known))))))
    found = _faults(random, kinds)
    found += _faults(reads, [kind for kind in _READ_KINDS if reads.random() < _READS_SHARE])
    return sorted(found + _faults(retries, ["retry"] if retries.random() < _RETRIES_SHARE else []))


def _faults(random: Random, kinds: list[str]) -> list[Fault]:
    return [
        Fault(round(random.uniform(0.0, FAULT_SECONDS) * random.random(), 3), kind, random.randint(0, 5), amount)
        for kind in kinds
        for amount in (round(random.random(), 3) for _ in range(random.randint(1, 2)))
    ]


# ---- crashes


def _server_crash_before_commit(world: World, fault: Fault) -> None:
    world.server(fault).armed["server_crash_before_commit"] = 1


def _server_crash_after_commit(world: World, fault: Fault) -> None:
    world.server(fault).armed["server_crash_after_commit"] = 1


def _worker_crash(world: World, fault: Fault) -> None:
    world.happened("worker_crash")
    world.worker(fault).crash()


def _worker_crash_before_report(world: World, fault: Fault) -> None:
    world.worker(fault).armed["worker_crash_before_report"] = 1


def _worker_crash_after_report(world: World, fault: Fault) -> None:
    world.worker(fault).armed["worker_crash_after_report"] = 1


def _stopped_worker(world: World, fault: Fault) -> None:
    worker, seconds = world.worker(fault), _LEASE_SECONDS * (0.5 + 2 * fault.amount)
    if not worker.process.is_dead:
        world.happened("stopped_worker")
        world.loop.stop_process(worker.process, seconds)
        world.network.unanswered(worker.process, seconds)


def _stopped_server(world: World, fault: Fault) -> None:
    server, seconds = world.server(fault), _LEASE_SECONDS * (0.2 + 2 * fault.amount)
    if not server.process.is_dead:
        world.happened("stopped_server")
        world.loop.stop_process(server.process, seconds)
        world.network.unanswered(server.process, seconds)


# ---- network


def _message_lost(world: World, _fault: Fault) -> None:
    world.network.armed["message_lost"] = 1


def _message_doubled(world: World, _fault: Fault) -> None:
    world.network.armed["message_doubled"] = 1


def _message_late(world: World, fault: Fault) -> None:
    world.network.armed["message_late"] = 0.2 + 20 * fault.amount**3


def _message_reordered(world: World, fault: Fault) -> None:
    world.network.armed["message_reordered"] = 0.5 + 8 * fault.amount


def _partition(world: World, fault: Fault) -> None:
    seconds = 2 + 40 * fault.amount
    worker, server = world.worker(fault), world.server(fault)
    world.happened("partition")
    world.network.part(worker.number, server.number, seconds)
    if fault.amount < 0.3:  # the worker reaches no server at all
        for other in world.servers:
            world.network.part(worker.number, other.number, seconds)


def _wake_up_lost(world: World, _fault: Fault) -> None:
    world.wake_ups.armed["wake_up_lost"] = 1


def _wake_up_doubled(world: World, fault: Fault) -> None:
    world.wake_ups.armed["wake_up_doubled"] = 3 * fault.amount


# ---- time and leases


def _clock_jump(world: World, fault: Fault) -> None:
    world.happened("clock_jump")
    clock = world.store_clock if fault.target % 2 else world.worker(fault).clock
    clock.jump(60 * (fault.amount - 0.4))


def _clock_drift(world: World, fault: Fault) -> None:
    world.happened("clock_drift")
    clock = world.store_clock if fault.target % 3 == 0 else world.worker(fault).clock
    clock.drift(0.5 + 1.5 * fault.amount)


def _lease_expiry(world: World, fault: Fault) -> None:
    """End the first lease that a worker holds, within the next seconds, while its task runs."""
    held = [one for one in world.store.expired(float("inf")) if one.until]
    if held:
        command = held[fault.target % len(held)]
        world.happened("lease_expiry")
        world.store.release(command.worker, [QueuedCommand(*command.part, command.lease)])
    elif world.loop.time() < FAULT_SECONDS:
        world.loop.call_in(WORLD, _LOOK_SECONDS, _lease_expiry, world, fault)


# ---- store


def _slow_store(world: World, fault: Fault) -> None:
    world.server(fault).armed["slow_store"] = 0.05 + 6 * fault.amount**2


def _slow_read(world: World, fault: Fault) -> None:
    world.server(fault).armed["slow_read"] = 0.05 + 6 * fault.amount**2


def _read_fails(world: World, fault: Fault) -> None:
    world.server(fault).armed["read_fails"] = 1 + int(5 * fault.amount)


def _conflicting_append(world: World, fault: Fault) -> None:
    """Let one server write slowly while another decides for the same execution."""
    world.server(fault).armed["slow_store"] = 0.5
    id = world.an_execution(fault)
    if id:
        world.control(id, "pause", world.servers[(fault.target + 1) % len(world.servers)])
        world.loop.call_in(WORLD, 1.0, world.control, id, "resume")


def _commit_answer_lost(world: World, fault: Fault) -> None:
    world.server(fault).armed["commit_answer_lost"] = 1


def _full_disk(world: World, fault: Fault) -> None:
    for server in world.servers:
        server.armed["full_disk"] = world.loop.time() + 0.5 + 10 * fault.amount


# ---- requests


def _doubled_request(world: World, fault: Fault) -> None:
    world.happened("doubled_request")
    world.start_again(fault.target)


def _cancel(world: World, fault: Fault) -> None:
    id = world.an_execution(fault)
    if id:
        world.happened("cancel")
        world.control(id, "cancel")
        if fault.amount < 0.5:
            world.control(id, "cancel")
    elif world.loop.time() < FAULT_SECONDS:
        world.loop.call_in(WORLD, _LOOK_SECONDS, _cancel, world, fault)


def _pause(world: World, fault: Fault) -> None:
    id = world.an_execution(fault)
    if id:
        world.happened("pause")
        world.control(id, "pause")
        world.loop.call_in(WORLD, 12 * fault.amount, world.control, id, "resume")
    elif world.loop.time() < FAULT_SECONDS:
        world.loop.call_in(WORLD, _LOOK_SECONDS, _pause, world, fault)


def _retry(world: World, fault: Fault) -> None:
    """Retry an execution as soon as one has failed: once, twice with one key, or twice with two."""
    id = world.a_failed_execution(fault)
    if not id and world.is_busy():
        world.loop.call_in(WORLD, _LOOK_SECONDS, _retry, world, fault)
        return
    world.awaited.remove(fault)
    if id:
        world.happened("retry")
        for key in (1, 1) if fault.amount < 0.3 else (1, 2) if fault.amount < 0.6 else (1,):
            world.retry(id, f"retry {key} at {fault.at}")


FAULTS: dict[str, FaultKind] = {
    "server_crash_before_commit": FaultKind("A server dies in a transaction, before it.", _server_crash_before_commit),
    "server_crash_after_commit": FaultKind("A server dies in a transaction, after it.", _server_crash_after_commit),
    "worker_crash": FaultKind("A worker dies at any moment, with or without closing its connection.", _worker_crash),
    "worker_crash_before_report": FaultKind("A worker dies before its next message.", _worker_crash_before_report),
    "worker_crash_after_report": FaultKind("A worker dies after its next message.", _worker_crash_after_report),
    "stopped_worker": FaultKind("A worker stops (SIGSTOP), often beyond its leases, and continues.", _stopped_worker),
    "stopped_server": FaultKind("A server stops and continues.", _stopped_server),
    "message_lost": FaultKind("A connection is lost with everything on the way.", _message_lost),
    "message_doubled": FaultKind("A message arrives twice.", _message_doubled),
    "message_late": FaultKind("A message and those behind it arrive late.", _message_late),
    "message_reordered": FaultKind("A message arrives after those of the connection that follows.", _message_reordered),
    "partition": FaultKind("A worker cannot reach one server, or none, for a time.", _partition),
    "wake_up_lost": FaultKind("A wake-up is lost.", _wake_up_lost),
    "wake_up_doubled": FaultKind("A wake-up comes twice and late.", _wake_up_doubled),
    "clock_jump": FaultKind("The clock of the store or of a worker jumps forwards or backwards.", _clock_jump),
    "clock_drift": FaultKind("The clock of the store or of a worker runs too fast or too slowly.", _clock_drift),
    "lease_expiry": FaultKind("A lease ends in the middle of a task.", _lease_expiry),
    "slow_store": FaultKind("A transaction takes seconds; the server waits, and the others continue.", _slow_store),
    "slow_read": FaultKind("The store answers a read after seconds; the server waits.", _slow_read),
    "read_fails": FaultKind("Up to five reads of the store fail, or break off after a row.", _read_fails),
    "conflicting_append": FaultKind("Two servers decide for one execution at a time.", _conflicting_append),
    "commit_answer_lost": FaultKind("A transaction is written, and its answer is an error.", _commit_answer_lost),
    "full_disk": FaultKind("The store refuses every transaction for a time.", _full_disk),
    "doubled_request": FaultKind("A start request is sent twice with one key, to two servers.", _doubled_request),
    "cancel": FaultKind("An execution is cancelled, sometimes twice.", _cancel),
    "pause": FaultKind("An execution is paused, and resumed later.", _pause),
    "retry": FaultKind("An execution that failed is retried, sometimes twice, with one key or with two.", _retry),
}

EMBEDDED = (
    "cancel",
    "commit_answer_lost",
    "full_disk",
    "pause",
    "read_fails",
    "retry",
    "server_crash_after_commit",
    "server_crash_before_commit",
    "slow_read",
    "slow_store",
    "stopped_server",
)
"""Kinds that can happen to a process that is server and worker."""
