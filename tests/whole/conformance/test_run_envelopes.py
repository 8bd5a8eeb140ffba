"""Every case of the stage `run` once more: the envelopes that the run emits, as the store holds them."""

from __future__ import annotations

from typing import Any

import pytest

from noetlvm.language.events import EVENTS
from noetlvm.store.memory import MemoryStore
from noetlvm.testing import simulation
from noetlvm.testing.__main__ import run_given
from tests.whole.conformance.log_rules import Envelope, problems, stored_logs
from tests.whole.conformance.suite import Case, read_cases

FORMAL_NAMES = {
    *("PlaybookExecutionRequested", "PlaybookRequestEvaluated", "WorkflowStarted", "TokenEnqueued", "TokenClaimed"),
    *("StepScheduled", "NextEvaluated", "WorkflowFinished", "PlaybookProcessed"),
    *("TaskStarted", "TaskProcessed", "StepDone", "StepFailed"),
    *("LoopStarted", "LoopIterationStarted", "LoopIterationCompleted", "LoopDone"),
}
"""The names of formal §10.2."""
CASES = [case for case in read_cases("run") if case.expect["status"] != "refused"]


def emitted(case: Case, monkeypatch: pytest.MonkeyPatch) -> dict[str, list[Envelope]]:
    """Return the envelopes of a case's executions, from the store that the run wrote to."""
    store = MemoryStore()
    monkeypatch.setattr(simulation, "MemoryStore", lambda: store)
    texts = [path.read_text(encoding="utf-8") for path in (case.path, *case.companions)]
    run_given(texts, case.expect.get("given", {}))
    return stored_logs(store)


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
