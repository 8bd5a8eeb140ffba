"""Every case of the stage `run` once more: the envelopes that the run emits, as the store holds them."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import pytest

from noetlvm.data.event import envelope
from noetlvm.language.events import BOUNDARY, EVENTS
from noetlvm.store.memory import MemoryStore
from noetlvm.testing import simulation
from noetlvm.testing.__main__ import run_given
from noetlvm.testing.result import shown
from tests.whole.conformance.suite import Case, read_cases

Envelope = dict[str, Any]

FIELDS = {
    "event_id",
    "execution_id",
    "trace_id",
    "timestamp",
    "source",
    "name",
    "entity",
    "entity_id",
    "status",
    "data",
}
"""The fields of formal §10.1, and the trace (S61)."""
SOURCES = {"server", "worker"}
ENTITIES = {"playbook", "workflow", "step", "task", "loop", "next"}
STATUSES = {"in_progress", "success", "error", "paused"}
FORMAL_NAMES = {
    *("PlaybookExecutionRequested", "PlaybookRequestEvaluated", "WorkflowStarted", "TokenEnqueued", "TokenClaimed"),
    *("StepScheduled", "NextEvaluated", "WorkflowFinished", "PlaybookProcessed"),
    *("TaskStarted", "TaskProcessed", "StepDone", "StepFailed"),
    *("LoopStarted", "LoopIterationStarted", "LoopIterationCompleted", "LoopDone"),
}
"""The names of formal §10.2."""
OPENING = ["playbook.execution.requested", "playbook.request.evaluated"]
CLOSING = ["workflow.finished", "playbook.processed"]
NOT_CALLED = {"template"}
"""Errors of inputs: the tool is not called, and no attempt begins."""
CASES = [case for case in read_cases("run") if case.expect["status"] != "refused"]


def emitted(case: Case, monkeypatch: pytest.MonkeyPatch) -> dict[str, list[Envelope]]:
    """Return the envelopes of a case's executions, from the store that the run wrote to."""
    store = MemoryStore()
    monkeypatch.setattr(simulation, "MemoryStore", lambda: store)
    texts = [path.read_text(encoding="utf-8") for path in (case.path, *case.companions)]
    run_given(texts, case.expect.get("given", {}))
    return {
        row.execution_id: [
            envelope(row.execution_id, row.trace_id, recorded) for recorded in store.events(row.execution_id)
        ]
        for row in store.executions()
    }


def problems(log: list[Envelope]) -> list[str]:
    """Return what is wrong with the log of one execution."""
    found = [f"{event['name']}: {problem}" for event in log for problem in _of_one(event)]
    if [event["seq"] for event in log] != list(range(1, len(log) + 1)):
        found.append("seq is not dense")
    if len({event["event_id"] for event in log}) != len(log):
        found.append("an event_id is used twice")
    shared = {name: {event.get(name, "") for event in log} for name in ("execution_id", "trace_id")}
    found += [f"{name} changes, or is empty" for name, values in shared.items() if len(values) != 1 or "" in values]
    return found or _server_set(log) + _worker_set(log)


def _of_one(event: Envelope) -> list[str]:
    if not set(event) >= FIELDS:
        return [f"lacks {sorted(FIELDS - set(event))}"]
    checks = {
        "event_id is empty": bool(event["event_id"]),
        "timestamp has no zone": datetime.fromisoformat(event["timestamp"]).tzinfo is not None,
        f"source {event['source']}": event["source"] in SOURCES,
        f"entity {event['entity']}": event["entity"] in ENTITIES,
        f"status {event['status']}": event["status"] in STATUSES,
        "not of a step": event["entity"] == "step" or not event["name"].startswith("token."),
        "is not in the catalogue": event["name"] in EVENTS,
        "entity_id is not of this execution": event["entity_id"].startswith(event["execution_id"]),
        "data is not JSON": bool(json.dumps(shown(event["data"]))),
    }
    return [problem for problem, holds in checks.items() if not holds] + _ids(event) + _data(event)


def _data(event: Envelope) -> list[str]:
    """The catalogue names every field of `data`, and those that an event always has are there."""
    fields, given = EVENTS[event["name"]].payload, set(event["data"])
    unknown = given - {field.name for field in fields}
    absent = {field.name for field in fields if not field.optional} - given
    return [f"data has {sorted(unknown)}, lacks {sorted(absent)}"] if unknown or absent else []


def _ids(event: Envelope) -> list[str]:
    """Events of steps, iterations and tasks carry the identifiers of what they are about."""
    name = event["name"]
    wanted: tuple[str, ...] = ()
    if name.startswith(("step.", "loop.", "next.")):
        wanted = ("step_run_id",)
    if name.startswith("loop.iteration."):
        wanted += ("iteration_id",)
    if name.startswith("task."):
        wanted = ("step_run_id", "task_run_id", "task_label", "attempt")
    return [f"lacks {field}" for field in wanted if not event.get(field)]


def _ran(event: Envelope) -> bool:
    """Return whether the tool was called: not where a rule skips it, or its inputs cannot be made."""
    data = event["data"]
    kind = (data["outcome"].get("error") or {}).get("kind")
    return data["do"] != "skip" and kind not in NOT_CALLED


def _names(log: list[Envelope]) -> list[str]:
    return [event["name"] for event in log]


def _server_set(log: list[Envelope]) -> list[str]:
    """The server's minimal set: the request, the start, each scheduling, each routing, the end."""
    names = _names(log)
    found = [] if names[:2] == OPENING else ["the request is not recorded first"]
    if "playbook.processed" in names and "workflow.started" in names and names[-2:] != CLOSING:
        found.append("the end is not recorded last")
    runs = {event["step_run_id"] for event in log if event["name"] in BOUNDARY and "iteration_id" not in event}
    for name in ("step.scheduled", "next.evaluated"):
        reported = {event["step_run_id"] for event in log if event["name"] == name}
        if CLOSING[-1] in names and "execution.cancelled" not in names and not runs <= reported:
            found.append(f"a step run ended without {name}")
    return found


def _worker_set(log: list[Envelope]) -> list[str]:
    """The worker's minimal set: every attempt and every iteration begins before it ends, with the same identifiers."""
    found = []
    begun: set[tuple[str, ...]] = set()
    for event in log:
        name = event["name"]
        if name == "step.started":
            begun.add(("step", event["step_run_id"]))
        if name in ("task.started", "task.done") and ("step", event["step_run_id"]) not in begun:
            found.append(f"{event['step_run_id']} runs tasks without step.started")
        if name == "task.started":
            begun.add(("task", event["task_run_id"], str(event["attempt"])))
        if name == "task.done" and _ran(event) and ("task", event["task_run_id"], str(event["attempt"])) not in begun:
            found.append(f"{event['task_run_id']} attempt {event['attempt']} ends without task.started")
        if name == "task.done" and "outcome" not in event["data"]:
            found.append(f"{event['task_run_id']} ends without an outcome")
        if name == "loop.iteration.started":
            begun.add(("iteration", event["iteration_id"]))
        if (
            name in ("loop.iteration.done", "loop.iteration.failed")
            and not event["data"].get("cancelled")
            and ("iteration", event["iteration_id"]) not in begun
        ):
            found.append(f"{event['iteration_id']} ends without loop.iteration.started")
    return found


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_run_emits_envelopes_as_the_documents_demand(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    logs = emitted(case, monkeypatch)
    assert logs
    assert {execution: found for execution, log in logs.items() if (found := problems(log))} == {}


NOT_OF_A_RUN = {"execution.retried"}
"""A case is one run; a stored log has it."""


def test_the_cases_emit_every_name_of_the_catalogue_that_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = {event["name"] for case in CASES for log in emitted(case, monkeypatch).values() for event in log}
    assert seen == {name for name, kind in EVENTS.items() if not kind.folded_into} - NOT_OF_A_RUN


def test_the_catalogue_has_every_name_of_the_formal_specification() -> None:
    assert FORMAL_NAMES - {kind.camel for kind in EVENTS.values()} == set()


def test_two_runs_of_a_case_give_the_same_identifiers(monkeypatch: pytest.MonkeyPatch) -> None:
    (case,) = [case for case in CASES if case.id == "log-of-a-whole-run"]

    def identifiers() -> list[tuple[Any, ...]]:
        (log,) = emitted(case, monkeypatch).values()
        return [tuple(event.get(name) for name in ("name", "entity_id", "step_run_id", "task_run_id")) for event in log]

    assert identifiers() == identifiers()
