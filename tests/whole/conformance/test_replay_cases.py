"""Every case of the stage `replay`: logs of old must fold to the state that was recorded with them, forever."""

from __future__ import annotations

from datetime import datetime

import pytest

from noetlvm.data.event import Recorded, envelope
from noetlvm.language.events import EVENTS, Entity, Plane, Status
from noetlvm.machine.state import State
from noetlvm.testing.log import event_of, fold_log, read_log, state_view
from noetlvm.testing.result import shown
from tests.whole.conformance.suite import Case, read_cases

CASES = read_cases("replay")
FIELDS = {
    *("event_id", "execution_id", "seq", "timestamp", "source", "name", "entity", "entity_id", "status", "data"),
}
PLANES, ENTITIES, STATUSES = set(Plane), set(Entity), set(Status)
RENAMED = {"token": "step"}
"""Entities of logs that were recorded before tokens were events of their step."""
DATA_PLANE = {"loop.started", "loop.done"}
"""Events whose source was the server in logs that were recorded before formal §10.2 was followed."""


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_log_folds_to_the_recorded_state(case: Case) -> None:
    assert state_view(fold_log(read_log(case.data.decode().splitlines()))) == case.expect["state"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_snapshot_after_any_event_leads_to_the_same_state(case: Case) -> None:
    log = read_log(case.data.decode().splitlines())
    whole = fold_log(log).to_data()
    for cut in range(len(log)):
        state = State.from_data(fold_log(log[:cut]).to_data())
        assert fold_log(log[cut:], state).to_data() == whole


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_an_envelope_has_what_an_event_is_made_of(case: Case) -> None:
    for reported in read_log(case.data.decode().splitlines()):
        assert set(reported) >= FIELDS
        assert reported["name"] in EVENTS
        assert reported["source"] in PLANES
        reported["entity"] = RENAMED.get(reported["entity"], reported["entity"])
        assert reported["entity"] in ENTITIES
        assert reported["status"] in STATUSES
        recorded = Recorded(
            reported["seq"],
            reported["event_id"],
            datetime.fromisoformat(reported["timestamp"]).timestamp(),
            event_of(reported),
        )
        if reported["name"] in DATA_PLANE:
            reported["source"] = "worker"
        trace = reported.setdefault("trace_id", reported["execution_id"])  # old logs have none
        assert event_of(envelope(reported["execution_id"], trace, recorded)) == event_of(reported)
        assert {**shown(envelope(reported["execution_id"], trace, recorded)), "data": reported["data"]} == reported


def test_the_log_grows_by_one_at_a_time() -> None:
    for case in CASES:
        log = read_log(case.data.decode().splitlines())
        assert [reported["seq"] for reported in log] == list(range(1, len(log) + 1))
        assert len({reported["event_id"] for reported in log}) == len(log)


def test_the_logs_together_hold_every_event() -> None:
    met = {reported["name"] for case in CASES for reported in read_log(case.data.decode().splitlines())}
    assert {name for name, kind in EVENTS.items() if not kind.folded_into} - met == set()
