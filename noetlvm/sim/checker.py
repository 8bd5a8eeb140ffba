"""Checks a simulation: each log against an independent model, and logs, rows and calls against each other.

It uses no code of the machine. Every invariant has a name and a sentence in `INVARIANTS`; a violation names the
invariant, the execution and the event.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from noetlvm.data.event import Recorded
from noetlvm.rounds.identity import child_id
from noetlvm.sim.log_model import Violation, check_log, child_key
from noetlvm.sim.ports import SECRET
from noetlvm.sim.world import History, Scenario, StoredLog

INVARIANTS = {
    "dense": "Events are numbered from 1 without a gap, and the execution's row has the number of the last.",
    "order": "A log begins with the request, and nothing follows the end.",
    "token_once": "A token is made once, consumed once, and by the step that it waited for.",
    "conserved": "At the end every token was consumed or rejected.",
    "gate": "A step with a gate consumes a token only when its gate holds, and drops one only when it does not.",
    "run_once": "A step run has one boundary event and is routed once, after it.",
    "arc_once": "Exactly the arcs fire whose guards hold; each makes one token, with the right args.",
    "finished": "An execution finishes if and only if nothing of it is live, with the status that its failures give.",
    "settled": "Before the next task starts, all runs that have ended are routed, and all tokens admitted or denied.",
    "leases_grow": "Leases of a part of a run only grow, and only while the run is open.",
    "in_flight": "No loop has more iterations open than `max_in_flight` allows.",
    "iterations": "Every iteration of a loop ends once; counts and results add up, in index order.",
    "reduced": "A parallel loop writes to `ctx` what its reducers make of its iterations.",
    "attempts": "Attempts of a task count from 1, never exceed what its policy allows, and end once, before their run.",
    "outcomes": "Every outcome has the attempt, a duration and a time.",
    "stopped": "What a time limit or a cancellation stops ends with events of its own, inner parts first.",
    "pace": "The wait before an attempt is at least that of the policy, if no clock was wrong.",
    "rate": "No more iterations of a loop have begun than its `rate` allows since it started, if no clock was wrong.",
    "ctx": "`ctx` of an execution is the fold of its patches.",
    "policy": "After each outcome, a task does what the first matching rule decides, and waits as long.",
    "paused": "A paused execution decides nothing.",
    "content": "Every event holds what follows from the playbook and the events before it.",
    "sizes": "No event is larger than the limit.",
    "labels": "Every task event names a task of its step.",
    "secrets": "No secret is in an event, a stored result, a row or a log line.",
    "effects": "A tool runs only after its `task.started` is durable, and again only under a new lease.",
    "children": "Every child was requested by its parent, once; a parent continues with the child's own ending.",
    "requests": "Requests to start or to retry with one key begin one execution, and all get its identifier.",
    "retries": "A retried execution begins with the whole log of the failed one, and names it.",
    "snapshots": "The last snapshot and the events after it make the same state as all events.",
    "replay": "The log, decided again, gives the same log.",
    "alive": "No process ends by an error that its code does not expect.",
    "progress": "Once faults stop, everything ends: executions, commands, requests.",
}

_CLOCK_FAULTS = frozenset({"clock_jump", "clock_drift", "stopped_worker"})
_SECRET = SECRET.encode()


def check(scenario: Scenario, history: History) -> list[Violation]:
    """Return every violation, the earliest of each execution first."""
    documents = {document["metadata"]["path"]: document for document in scenario.playbooks}
    found: list[Violation] = []
    for id, log in history.logs.items():
        steady = not _CLOCK_FAULTS.intersection(history.happened)
        found += check_log(documents[log.row.path], log, history.ctx.get(id), is_steady=steady)
    found += _across(scenario, history)
    return found


def _across(scenario: Scenario, history: History) -> Iterator[Violation]:
    """Check what no single log shows."""
    yield from (Violation("progress", "", 0, text) for text in history.left)
    yield from (Violation("alive", "", 0, f"{name}: {error!r}") for name, error in history.failures)
    yield from (Violation("snapshots", id, 0, "its snapshot leads to another state") for id in history.unlike_snapshots)
    yield from (Violation("replay", id, seq, "it is decided differently") for id, seq in history.differences.items())
    yield from _requests(scenario, history)
    yield from _effects(history)
    yield from check_children(history.logs)
    texts = [*history.log_lines, *(repr(log.row) for log in history.logs.values())]
    if any(SECRET in text for text in texts) or any(_SECRET in blob for blob in history.blobs.values()):
        yield Violation("secrets", "", 0, "a stored result, a row or a log line holds a secret")


def _requests(scenario: Scenario, history: History) -> Iterator[Violation]:
    """Check that each key has begun one execution, and a retry one with the log of the failed one."""
    roots = [id for id, log in history.logs.items() if not log.row.parent]
    keys = len(scenario.starts) + len(history.retries)
    if len(roots) != keys:
        yield Violation("requests", "", 0, f"{keys} keys have begun {len(roots)} executions")
    answers = [*history.answers.values(), *(one.answers for one in history.retries)]
    got = Counter(id for ids in answers for id in ids)
    for ids in answers:
        if len(ids) > 1 or not ids.issubset(roots) or any(got[id] > 1 for id in ids):
            yield Violation("requests", "", 0, f"one key got {sorted(ids)}, which another one got, or which is no root")
    retried = {id: one.execution for one in history.retries for id in one.answers}
    for id, log in history.logs.items():
        shared = log.events[: len(log.events) - len(own_events(log))]
        failed = history.logs.get(retried.get(id, ""))
        if shared != (failed.events if failed else []):
            yield Violation("retries", id, len(shared) + 1, f"it does not begin with the log of {retried.get(id)}")


def own_events(log: StoredLog) -> list[Recorded]:
    """Return the events of a log without those that a retried execution shares with the failed one."""
    at = max((at for at, one in enumerate(log.events) if one.event.name == "execution.retried"), default=0)
    return log.events[at:]


def _effects(history: History) -> Iterator[Violation]:
    """Check that every tool call follows its durable start, and is repeated only for a new lease."""
    starts: dict[tuple[str, int], int] = {}
    leases: Counter[str] = Counter()
    for id, log in history.logs.items():
        resumed = history.resumed[log.row.trace_id]
        for recorded in own_events(log):
            event = recorded.event
            run = f"{id}/{event.run}"
            if event.name == "task.started":
                within = f"/{event.iteration}" if event.iteration else ""
                starts[f"{run}{within}#{event.task}", event.attempt] = recorded.seq
                leases[run] = max(leases[run], resumed)
            elif event.name == "step.scheduled" and "lease" in event.data:
                leases[run] += 1
    calls: Counter[tuple[str, int]] = Counter()
    for call in history.calls:
        key = call.key, call.attempt
        id, _, rest = call.key.partition("/")
        run = f"{id}/{rest.partition('#')[0].partition('/')[0]}"
        calls[key] += 1
        if starts.get(key, call.seq + 1) > call.seq:
            yield Violation("effects", id, call.seq, f"`{call.key}` runs before its start is durable")
        if calls[key] > 1 + leases[run]:
            message = f"`{call.key}` runs {calls[key]} times under {1 + leases[run]} leases"
            yield Violation("effects", id, call.seq, message)


def check_children(logs: dict[str, StoredLog]) -> Iterator[Violation]:
    """Yield what the logs of parents and of their children do not agree on."""
    wanted: dict[str, str] = {}
    for log in logs.values():
        execution = ""
        for recorded in log.events:
            event = recorded.event
            execution = event.data.get("execution", execution)
            if event.name == "task.started" and "child" in event.data:
                wanted[child_id(child_key(execution, event))] = execution
            elif event.name == "child.finished":
                child = logs.get(child_id(event.data["key"]))
                yield from _child_ending(log.row.execution_id, recorded, child)
    for id, log in logs.items():
        if log.row.parent and wanted.get(id) != log.row.parent:
            yield Violation("children", log.row.parent, 0, f"it has the child {id}, which it did not request")


def _child_ending(id: str, recorded: Recorded, child: StoredLog | None) -> Iterator[Violation]:
    """Check that a parent continues with its child's own ending, or with an error of its own."""
    outcome = recorded.event.data["outcome"]
    result, error = outcome.get("result"), outcome.get("error") or {}
    status = child.row.status if child is not None and child.row.ended is not None else "open"
    is_success = outcome["status"] == "ok"
    is_own = is_success or "execution_id" in (error.get("details") or {})
    if is_own and is_success != (status == "success"):
        yield Violation(
            "children", id, recorded.seq, f"the parent continues with {outcome['status']} of a child: {status}"
        )
    if is_success and isinstance(result, dict) and child is not None:
        ctx: dict[str, Any] = {}
        for one in child.events:
            ctx |= one.event.data.get("patch", {})
        if result["ctx"] != ctx:
            yield Violation("children", id, recorded.seq, f"the parent gets {result['ctx']} of a child with {ctx}")
