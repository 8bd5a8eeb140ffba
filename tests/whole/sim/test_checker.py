"""The checker of the simulator: it rejects every log and every history that breaks an invariant, wherever it does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple, TypeAlias

import pytest

from noetlvm.data.event import Event, Recorded
from noetlvm.language.events import EventName
from noetlvm.limits import EVENT_BYTES_MAX
from noetlvm.sim.checker import INVARIANTS, check, own_events
from noetlvm.sim.ports import SECRET, CallRecord
from noetlvm.sim.world import History, Scenario, simulate

SEEDS = 80
PLACES, MANY_PLACES = 3, 12
"""Of a damage in one context: every context is looked at, and not every place that is like the one before."""
RUN, LOOP, NESTED, CHILD, SHARED, RETRIED = "run", "iteration", "nested iteration", "child", "shared", "retried"
"""Where an event is; the log of a retried execution begins with what it shares with the failed one."""
Damage: TypeAlias = Callable[[Recorded], list[Recorded] | None]
"""Returns what stands in a log instead of an event; None: the event stays."""


class Row(NamedTuple):
    """A damage of a log, and the invariant that it breaks, at every place."""

    invariant: str
    damage: Damage
    contexts: tuple[str, ...] = (RUN,)
    """Where there must be places for it."""
    is_seen_everywhere: bool = True
    """Else only where the playbook lets the checker know better, or no clock was wrong."""


def dropped(name: EventName) -> Damage:
    return lambda recorded: [] if recorded.event.name == name else None


def doubled(name: EventName) -> Damage:
    return lambda recorded: [recorded, recorded] if recorded.event.name == name else None


def replaced(name: EventName, **fields: Any) -> Damage:
    return lambda recorded: (
        [recorded._replace(event=recorded.event._replace(**fields))] if recorded.event.name == name else None
    )


def with_data(name: EventName, key: str, change: Callable[[Any], Any]) -> Damage:
    def damage(recorded: Recorded) -> list[Recorded] | None:
        event = recorded.event
        if event.name != name or key not in event.data or (changed := change(event.data[key])) == event.data[key]:
            return None
        return [recorded._replace(event=event._replace(data=event.data | {key: changed}))]

    return damage


def without_data(name: EventName, key: str) -> Damage:
    def damage(recorded: Recorded) -> list[Recorded] | None:
        event = recorded.event
        if event.name != name or not event.data.get(key):
            return None
        data = {other: value for other, value in event.data.items() if other != key}
        return [recorded._replace(event=event._replace(data=data))]

    return damage


def put_back(key: str | None, change: Callable[[Any], Any] = lambda value: value) -> Damage:
    """Damage a field of a token that a retry puts back; without a field, drop the token."""

    def damage(recorded: Recorded) -> list[Recorded] | None:
        event = recorded.event
        if event.run or event.data.get("token", 1) == 1 or event.data.get("final"):
            return None
        return [] if key is None else with_data("token.enqueued", key, change)(recorded)

    return damage


def stopped(name: EventName, damage: Damage) -> Damage:
    """Damage the end of something that a time limit or a cancellation stopped."""

    def stop(recorded: Recorded) -> list[Recorded] | None:
        event = recorded.event
        error = event.data.get("error") or event.data.get("outcome", {}).get("error") or {}
        is_stopped = event.name == name and "cancelled" in event.data and error["message"] not in _OF_ANOTHER
        return damage(recorded) if is_stopped else None

    return stop


_OF_ANOTHER = ("another iteration failed before this one started",)
"""Why an iteration is cancelled whose step fails by another."""


def early(name: EventName) -> Damage:
    return lambda recorded: [recorded._replace(timestamp=0.0)] if recorded.event.name == name else None


def more(value: Any) -> Any:
    return value + 1


def other(_value: Any) -> Any:
    return "other"


def of_kind(error: dict[str, Any]) -> dict[str, Any]:
    return error | {"kind": "cancelled" if error["kind"] == "timeout" else "timeout"}


def without_time(outcome: dict[str, Any]) -> dict[str, Any]:
    return outcome | {"meta": {key: value for key, value in outcome["meta"].items() if key != "ts"}}


def marked(recorded: Recorded) -> Recorded:
    """Return an event that has no place between the ends of what is stopped."""
    return recorded._replace(event=Event("execution.paused", {}))


def another_do(do: str) -> str:
    return "skip" if do == "continue" else "continue"


THREADS = (RUN, LOOP, NESTED, CHILD)
ROWS = [
    Row("dense", dropped("step.started"), (RUN, CHILD)),
    Row("order", doubled("playbook.processed"), (RUN, CHILD)),
    Row("order", doubled("workflow.started")),
    Row("order", doubled("workflow.finished")),
    Row("order", doubled("execution.cancelled")),
    Row("order", dropped("playbook.request.evaluated"), (RUN, CHILD)),
    Row("token_once", doubled("step.scheduled"), (RUN, CHILD)),
    Row("token_once", with_data("token.enqueued", "token", more), (RUN, CHILD)),
    Row("conserved", dropped("token.rejected")),
    Row("gate", with_data("token.rejected", "reason", other)),
    Row("gate", dropped("token.denied")),
    Row("settled", dropped("token.denied")),
    Row("settled", dropped("next.evaluated"), (RUN, CHILD)),
    Row("gate", doubled("token.denied")),
    Row("run_once", doubled("step.done"), (RUN, CHILD)),
    Row("run_once", doubled("loop.done"), (RUN, CHILD)),
    Row("run_once", doubled("step.failed")),
    Row("run_once", dropped("step.done"), (RUN, CHILD)),
    Row("run_once", doubled("step.started"), (RUN, CHILD)),
    Row("arc_once", with_data("next.evaluated", "arcs", lambda arcs: [*arcs, 7]), (RUN, CHILD)),
    Row("arc_once", with_data("next.evaluated", "arcs", lambda arcs: arcs[1:])),
    Row("arc_once", with_data("next.evaluated", "handled", lambda handled: not handled)),
    Row("arc_once", lambda recorded: [] if recorded.event.name == "token.enqueued" and recorded.event.run else None),
    Row("finished", with_data("workflow.finished", "status", other), (RUN, CHILD)),
    Row("finished", with_data("playbook.processed", "failures", more), (RUN, CHILD)),
    Row("finished", dropped("next.evaluated"), (RUN, CHILD)),
    Row("finished", dropped("playbook.processed"), (RUN, CHILD)),
    Row("leases_grow", with_data("step.scheduled", "lease", lambda _lease: 0), (RUN, LOOP)),
    Row("leases_grow", lambda recorded: [recorded, recorded] if "lease" in recorded.event.data else None, (RUN, LOOP)),
    Row("in_flight", with_data("loop.started", "width", more), (RUN, LOOP)),
    Row("iterations", doubled("loop.iteration.done"), (LOOP, NESTED, CHILD)),
    Row("iterations", doubled("loop.iteration.started"), (LOOP, NESTED, CHILD)),
    Row("iterations", doubled("loop.started"), (RUN, LOOP, CHILD)),
    Row("iterations", dropped("loop.iteration.started"), (LOOP, NESTED, CHILD)),
    Row("iterations", dropped("loop.iteration.done"), (LOOP, NESTED, CHILD)),
    Row("iterations", with_data("loop.started", "total", more), (RUN, LOOP, CHILD)),
    Row("iterations", with_data("loop.started", "items", lambda _items: ["other"]), (RUN, LOOP)),
    Row("iterations", with_data("loop.done", "loop", lambda counts: counts | {"ok": counts["ok"] + 1}), (RUN, CHILD)),
    Row("iterations", with_data("step.failed", "loop", lambda counts: counts | {"failed": 99})),
    Row("iterations", with_data("loop.done", "result", lambda _result: ["other"]), (RUN, CHILD)),
    Row("iterations", replaced("task.started", iteration="7"), THREADS),
    Row("reduced", dropped("ctx.patched"), (RUN,)),
    Row("attempts", doubled("task.started"), THREADS),
    Row("attempts", doubled("task.done"), THREADS),
    Row("attempts", dropped("task.started"), THREADS),
    Row("attempts", replaced("task.started", attempt=9), THREADS),
    Row("attempts", replaced("task.done", task=99), THREADS),
    Row("pace", with_data("task.started", "ts", lambda _ts: 0.0), (RUN, NESTED), is_seen_everywhere=False),
    Row("rate", early("loop.iteration.started"), (LOOP,), is_seen_everywhere=False),
    Row("ctx", with_data("ctx.patched", "patch", lambda _patch: {"unknown": 1}), (RUN, LOOP)),
    Row("ctx", with_data("task.done", "ctx", lambda patch: patch | {"unknown": 1}), (LOOP, NESTED)),
    Row("policy", with_data("task.done", "do", another_do), THREADS, is_seen_everywhere=False),
    Row("policy", with_data("task.done", "wait_s", more), (RUN,)),
    Row("paused", doubled("execution.paused")),
    Row("paused", dropped("execution.resumed")),
    Row("content", with_data("workflow.started", "workload", lambda workload: workload | {"items": []}), (RUN, CHILD)),
    Row("content", with_data("loop.iteration.done", "result", other), (LOOP, NESTED), is_seen_everywhere=False),
    Row("content", with_data("step.done", "result", other), (RUN, CHILD)),
    Row("content", with_data("loop.started", "best_effort", lambda tolerant: not tolerant), (RUN, LOOP, CHILD)),
    Row("sizes", with_data("task.done", "outcome", lambda _o: {"result": "x" * (EVENT_BYTES_MAX + 1)}), THREADS),
    Row("labels", replaced("task.started", label="unknown"), THREADS),
    Row("labels", replaced("task.done", label="unknown"), THREADS),
    Row("labels", replaced("child.finished", label="unknown")),
    Row("secrets", with_data("task.done", "outcome", lambda _outcome: {"result": SECRET}), THREADS),
    Row("secrets", with_data("token.enqueued", "args", lambda args: args | {"k": [SECRET]}), (RUN, CHILD)),
    Row("attempts", stopped("task.done", dropped("task.done")), (RUN, LOOP, NESTED)),
    Row("iterations", stopped("loop.iteration.failed", dropped("loop.iteration.failed")), (LOOP, NESTED)),
    Row("iterations", stopped("loop.iteration.failed", doubled("loop.iteration.failed")), (LOOP, NESTED)),
    Row("finished", stopped("step.failed", dropped("step.failed"))),
    Row("stopped", stopped("task.done", with_data("task.done", "do", another_do)), (RUN, LOOP, NESTED)),
    Row("stopped", stopped("loop.iteration.failed", with_data("loop.iteration.failed", "error", of_kind)), (LOOP,)),
    Row("stopped", stopped("step.failed", with_data("step.failed", "error", of_kind))),
    Row("stopped", stopped("task.done", lambda recorded: [recorded, marked(recorded)]), (RUN, LOOP, NESTED)),
    Row("outcomes", with_data("task.done", "outcome", lambda outcome: outcome | {"meta": {}}), THREADS),
    Row("outcomes", with_data("task.done", "outcome", without_time), THREADS),
    Row("effects", lambda recorded: dropped("task.started")(recorded) if recorded.event.attempt == 2 else None),
    Row("children", doubled("child.finished"), (RUN, LOOP)),
    Row("children", dropped("child.finished"), (RUN, LOOP)),
    Row("children", with_data("child.finished", "key", other), (RUN, LOOP)),
    Row("children", with_data("child.finished", "outcome", lambda _o: {"status": "ok", "result": 7}), (RUN, LOOP)),
    Row("children", without_data("task.started", "child"), (RUN, LOOP)),
    Row("order", dropped("execution.retried"), (RETRIED,)),
    Row("order", doubled("execution.retried"), (RETRIED,)),
    Row("content", with_data("execution.retried", "retried_from", other), (RETRIED,)),
    Row("content", with_data("execution.retried", "execution", other), (RETRIED,)),
    Row("token_once", with_data("execution.retried", "tokens", more), (RETRIED,)),
    Row("finished", with_data("execution.retried", "undone", lambda undone: [0, *undone[1:-1], 9]), (RETRIED,)),
    Row("arc_once", put_back(None), (RETRIED,)),
    Row("arc_once", put_back("args", lambda _args: {"other": 1}), (RETRIED,)),
    Row("arc_once", put_back("step", other), (RETRIED,)),
    Row("arc_once", put_back("event", lambda event: event | {"seq": 1}), (RETRIED,)),
    Row("retries", early("workflow.started"), (SHARED,), is_seen_everywhere=False),
    Row("retries", dropped("playbook.processed"), (SHARED,)),
    Row("attempts", dropped("task.started"), (RETRIED,)),
    Row("run_once", doubled("step.done"), (SHARED, RETRIED)),
]  # fmt: skip


@cache
def histories() -> list[tuple[Scenario, History]]:
    scenarios = [Scenario.of(seed) for seed in range(SEEDS)]
    return [(scenario, simulate(scenario)) for scenario in scenarios]


def context_of(history: History, id: str, recorded: Recorded) -> str:
    log = history.logs[id]
    if log.row.parent:
        return CHILD
    own = own_events(log)
    if own != log.events:
        return SHARED if recorded.seq < own[0].seq else RETRIED
    path = recorded.event.iteration
    return NESTED if "." in path else LOOP if path else RUN


def damaged(
    damage: Damage, *, renumbers: bool, is_wanted: Callable[[str], bool]
) -> Iterator[tuple[str, str, set[str]]]:
    """Yield context and place of a damage, and the invariants that the checker then finds broken."""
    for scenario, history in histories():
        for id, log in history.logs.items():
            for at, recorded in enumerate(log.events):
                context, instead = context_of(history, id, recorded), damage(recorded)
                if instead is None or not is_wanted(context):
                    continue
                events = [*log.events[:at], *instead, *log.events[at + 1 :]]
                row = log.row
                if renumbers:
                    events = [one._replace(seq=seq) for seq, one in enumerate(events, 1)]
                    row = row._replace(seq=len(events))
                logs = history.logs | {id: log._replace(row=row, events=events)}
                broken = {one.invariant for one in check(scenario, history._replace(logs=logs))}
                yield context, f"seed {scenario.seed}, {id}, event {recorded.seq}", broken


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.invariant)
@pytest.mark.parametrize("places", [PLACES, pytest.param(MANY_PLACES, marks=pytest.mark.long)])
def test_the_checker_sees_a_damaged_log(row: Row, places: int) -> None:
    seen: Counter[str] = Counter()
    missing, unseen = set(row.contexts), []

    def is_wanted(context: str) -> bool:
        if not row.is_seen_everywhere:
            return context in missing
        return seen[context] < (MANY_PLACES if context in missing else places)

    for context, place, broken in damaged(row.damage, renumbers=row.invariant != "dense", is_wanted=is_wanted):
        seen[context] += 1
        if row.invariant in broken:
            missing.discard(context)
        if not broken:
            unseen.append(place)
    assert unseen == [] or not row.is_seen_everywhere
    assert missing == set()


def _another_child(history: History) -> dict[str, Any]:
    log = next(log for log in history.logs.values() if log.row.parent)
    return {"logs": history.logs | {"other": log._replace(row=log.row._replace(execution_id="other"))}}


def _unfinished(history: History) -> dict[str, Any]:
    id, log = next(iter(history.logs.items()))
    return {"logs": history.logs | {id: log._replace(row=log.row._replace(ended=None))}}


def _failed_child(history: History) -> dict[str, Any]:
    id, log = next((id, log) for id, log in history.logs.items() if log.row.parent and log.row.status == "success")
    return {"logs": history.logs | {id: log._replace(row=log.row._replace(status="failed"))}}


DAMAGED_HISTORIES: list[tuple[str, Callable[[History], dict[str, Any]]]] = [
    ("finished", _unfinished),
    ("children", _another_child),
    ("children", _failed_child),
    ("effects", lambda history: {"calls": [history.calls[0]._replace(seq=0)]}),
    ("effects", lambda history: {"calls": history.calls * 20}),
    ("requests", lambda _history: {"answers": {0: {"one", "another"}}}),
    ("requests", lambda history: {"answers": {}, "logs": dict(list(history.logs.items())[1:])}),
    ("secrets", lambda history: {"blobs": history.blobs | {"key": SECRET.encode()}}),
    ("secrets", lambda _history: {"log_lines": [f"it fails: {SECRET}"]}),
    ("snapshots", lambda history: {"unlike_snapshots": [next(iter(history.logs))]}),
    ("replay", lambda history: {"differences": {next(iter(history.logs)): 3}}),
    ("alive", lambda _history: {"failures": [("server 0", KeyError("run"))]}),
    ("progress", lambda _history: {"left": ["a command is open"]}),
]
"""What else of a history breaks an invariant."""


def _repeated_call(history: History) -> dict[str, Any]:
    (id,) = history.retries[0].answers
    task = next(one.event for one in history.logs[id].events if one.event.name == "task.started")
    within = f"/{task.iteration}" if task.iteration else ""
    return {"calls": [*history.calls, CallRecord(f"{id}/{task.run}{within}#{task.task}", task.attempt, 1_000)]}


DAMAGED_RETRIES: list[tuple[str, Callable[[History], dict[str, Any]]]] = [
    ("requests", lambda _history: {"retries": []}),
    ("requests", lambda history: {"retries": history.retries * 2}),
    ("requests", lambda history: {"retries": [one._replace(answers={"one", "two"}) for one in history.retries]}),
    ("retries", lambda history: {"retries": [one._replace(execution="other") for one in history.retries]}),
    ("effects", _repeated_call),
]
"""What breaks an invariant where an execution was retried; the last runs again what the failed one ran."""


def broken_by(damage: Callable[[History], dict[str, Any]], *, fits: Callable[[History], object]) -> set[str]:
    """Return the invariants that a damage breaks, in the first history that it fits."""
    scenario, history = next(one for one in histories() if fits(one[1]))
    return {violation.invariant for violation in check(scenario, history._replace(**damage(history)))}


@pytest.mark.parametrize(("name", "damage"), DAMAGED_HISTORIES)
def test_the_checker_sees_a_damaged_history(name: str, damage: Callable[[History], dict[str, Any]]) -> None:
    assert name in broken_by(damage, fits=lambda history: any(log.row.parent for log in history.logs.values()))


@pytest.mark.parametrize(("name", "damage"), DAMAGED_RETRIES)
def test_the_checker_sees_a_damaged_history_of_a_retry(name: str, damage: Callable[[History], dict[str, Any]]) -> None:
    assert name in broken_by(damage, fits=lambda history: history.retries)


def test_every_invariant_is_seen_to_be_broken() -> None:
    assert {row.invariant for row in ROWS} | {name for name, _ in DAMAGED_HISTORIES} == set(INVARIANTS)
