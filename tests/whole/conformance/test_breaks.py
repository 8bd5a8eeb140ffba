"""Cases that can fail: each passes as the machine is, and does not when the sentence that it checks is broken."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from noetlc.rules.catalogue import rules_by_code
from noetlvm.data import event as envelopes
from noetlvm.data.event import Event
from noetlvm.expr import numbers
from noetlvm.language.events import EVENTS
from noetlvm.limits import Limits
from noetlvm.machine import decide, fold, frame, instructions, loaded, routing, scope, settling
from noetlvm.machine.fold import Journal
from noetlvm.machine.messages import WorkerReport
from noetlvm.machine.payload import Offload
from noetlvm.machine.settling import Settling
from noetlvm.record import changed
from noetlvm.server import server
from noetlvm.store.memory import MemoryStore
from noetlvm.testing import __main__ as protocol
from noetlvm.testing import script
from noetlvm.testing.script import Answer, ScriptError
from tests.whole.conformance.suite import Case, read_cases
from tests.whole.conformance.test_lint_cases import test_lint_answers_as_the_case_expects
from tests.whole.conformance.test_run_cases import IN_ANY_ORDER, told
from tests.whole.conformance.test_run_envelopes import emitted, problems
from tests.whole.conformance.verdict import complaints

Break = Callable[[pytest.MonkeyPatch], None]

CASES = {case.id: case for case in read_cases("run")}


def replaced(target: Any, name: str, value: Any) -> Break:
    return lambda monkeypatch: monkeypatch.setattr(target, name, value)


def first_try(answers: list[Any], takes: float, call: Any) -> Answer:
    """A tool that does not try again."""
    return script.read_answer(answers[0], call)._replace(takes=takes)


def reducers_from_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    merge = settling.merge_patches
    monkeypatch.setattr(
        settling, "merge_patches", lambda patches, reducers, read, _start: merge(patches, reducers, read, {})
    )


def failed_writes_count(monkeypatch: pytest.MonkeyPatch) -> None:
    failed = fold.HANDLERS["loop.iteration.failed"]

    def keep(state: Any, event: Event) -> None:
        around, index = fold.split(event.iteration)
        loop = state.runs[event.run].loops[around]
        patch = loop.patches.get(index)
        failed(state, event)
        if patch:
            loop.patches[index] = patch

    monkeypatch.setitem(fold.HANDLERS, "loop.iteration.failed", keep)


def newest_ctx(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread sees what others wrote after it was scheduled."""
    patched = fold.HANDLERS["ctx.patched"]

    def show(state: Any, event: Event) -> None:
        patched(state, event)
        for run in state.runs.values():
            for thread in run.threads.values():
                thread.view = state.view

    monkeypatch.setitem(fold.HANDLERS, "ctx.patched", show)


def masks_are_values(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (frame, scope):
        monkeypatch.setattr(module, "unmasked", lambda value, *_: value)


def settled_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """Inputs that arrive together are settled once, after the last of them."""
    decide_inbox = server.Server._decide_inbox

    def decide_all(self: Any, active: Any) -> None:
        left, made, settle = len(active.inbox), self._decide, Settling.settle

        def decide_one(*given: Any) -> Any:
            nonlocal left
            left -= 1
            Settling.settle = (lambda _: None) if left else settle  # type: ignore[method-assign]
            return made(*given)

        self._decide = decide_one
        try:
            decide_inbox(self, active)
        finally:
            self._decide, Settling.settle = made, settle  # type: ignore[method-assign]

    monkeypatch.setattr(server.Server, "_decide_inbox", decide_all)


REPORT = decide._Decider.report


def any_lease(self: Any, given: Any) -> tuple[Any, ...]:
    """Break: a report is accepted from a worker that has lost its lease."""
    thread = self._state.thread(given.run, given.iteration)
    return REPORT(self, given._replace(lease=thread.lease) if thread else given)


def late_reports_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(decide._INPUTS, WorkerReport, any_lease)


def sequential_writes_are_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    failed = fold.HANDLERS["loop.iteration.failed"]

    def lose(state: Any, event: Event) -> None:
        failed(state, event)
        state.view = state.runs[event.run].view

    monkeypatch.setitem(fold.HANDLERS, "loop.iteration.failed", lose)


def outer_beginnings_are_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    emit = Journal.emit

    def forget(journal: Journal, name: str, data: dict[str, Any], run: int = 0, iteration: str = "") -> None:
        if name != "loop.iteration.started" or journal.state.thread(run, iteration) is not None:
            emit(journal, name, data, run, iteration)

    monkeypatch.setattr(Journal, "emit", forget)


ON_CASES: dict[str, tuple[str, Break]] = {
    "S51-1": ("reports-decided-one-by-one", settled_last),
    "S52-2": ("number-that-is-none", replaced(numbers, "number_of", lambda value: 0)),
    "S53-1": ("delay-between-rounds", replaced(instructions, "waiting_time", lambda delay, factor: 0)),
    "S53-2": ("loop-rate", replaced(fold, "_next_start", lambda state, loop: 0.0)),
    "S60-2": ("loop-writes-of-failed-iterations", sequential_writes_are_lost),
    "S61-1": ("events-of-their-own", lambda monkeypatch: unrecorded("task.started")(monkeypatch)),
    "S61-2": ("denial-is-recorded-once", replaced(settling, "denial", lambda *_: {})),
    "S61-3": ("outer-iterations-begin", outer_beginnings_are_lost),
    "S61-4": ("request-refused", replaced(protocol, "invalid_playbook", lambda *_: {"kind": "validation"})),
    "S62-1": ("net-fuel-runs-out", replaced(loaded, "Limits", type("NoLimits", (), {"of": lambda _: Limits()}))),
    "formal-4.1-02": ("child-of-another-version", replaced(server, "refusal", lambda *_: {})),
    "formal-4.2-03": ("step-gate-pipeline-router", replaced(decide, "_needed", lambda *_: ())),
    "formal-4.2-04": ("denial-is-recorded-once", replaced(settling, "denial", lambda *_: {})),
    "formal-4.3-01": ("lease-late-report", late_reports_count),
    "formal-4.3-04": ("log-of-a-whole-run", lambda monkeypatch: unrecorded("task.started")(monkeypatch)),
    "formal-10.2-01": ("log-of-a-whole-run", lambda monkeypatch: unrecorded("workflow.finished")(monkeypatch)),
    "formal-10.2-02": ("tokens-enqueued-and-claimed", replaced(routing.Routing, "_token_args", lambda *_: {})),
    "formal-12-01": ("job-submitted-and-polled", replaced(frame.Frame, "retry", lambda self, *_: self.fail(0))),
    "formal-12-02": ("job-submitted-and-polled", replaced(fold, "_open_iterations", lambda *_: None)),
    "formal-12-03": ("job-submitted-and-polled", replaced(Offload, "fit", lambda _, mapping, *more: mapping)),
    "brief-5.2-02": ("log-of-a-whole-run", lambda monkeypatch: unrecorded("task.done")(monkeypatch)),
    "brief-8-02": ("loop-results-in-order", replaced(fold, "_open_iterations", lambda *_: None)),
    "brief-8-03": ("loop-distributed-leases", replaced(loaded.LoadedStep, "unit", lambda *_: "")),
    "brief-8-04": ("loop-distributed-leases", replaced(loaded.LoadedStep, "unit", lambda *_: "")),
    "S22-1": ("loop-distributed-leases", replaced(loaded.LoadedStep, "unit", lambda *_: "")),
    "S45-1": ("keychain-stays-out-of-the-log", replaced(Offload, "redacted", lambda _, value: value)),
    "step-9.1-01": ("tool-retries-before-policy", replaced(script, "_tried", first_try)),
    "S52-1": ("numbers-as-text", replaced(numbers, "number_of", lambda value: value)),
    "S57-1": ("step-sees-ctx-of-its-scheduling", newest_ctx),
    "S58-1": ("reducers-continue-from-ctx", reducers_from_nothing),
    "S59-1": ("admit-entry-never", replaced(Settling, "_never_admitted", lambda *_: {})),
    "S60-1": ("loop-writes-of-failed-iterations", failed_writes_count),
    "brief-7.2-01": ("log-of-a-whole-run", lambda monkeypatch: unrecorded("ctx.patched")(monkeypatch)),
    "S45-4": ("secret-in-a-result-is-lost-with-its-lease", masks_are_values),
    "S64-1": ("mask-in-ctx-is-refused", masks_are_values),
    "formal-11.2-03": ("log-of-a-whole-run", lambda monkeypatch: unrecorded("task.started")(monkeypatch)),
    "S65-1": ("failures-in-the-order-of-the-log", replaced(fold, "_failure_position", lambda _: (0, ()))),
}
"""By requirement: the case that checks it, and how the sentence is broken."""


def all_complaints(case: Case) -> Iterator[str]:
    """Judge a case as it is, and under its schedules."""
    yield from complaints(case.expect, told(case))
    expect = {key: value for key, value in case.expect.items() if key in IN_ANY_ORDER}
    for seed in range(case.expect.get("given", {}).get("schedules", 0)):
        yield from complaints(expect, told(case, seed))


def is_passed(case: Case) -> bool:
    """Return whether a case passes; one with an invalid state or an unexpected call does not."""
    try:
        return not any(all_complaints(case))
    except (AssertionError, ScriptError, LookupError, TypeError, ValueError, AttributeError):
        return False


@pytest.mark.parametrize("requirement", ON_CASES)
def test_a_case_fails_when_its_sentence_is_broken(requirement: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, breaks = ON_CASES[requirement]
    assert requirement in CASES[name].expect["requirement"]
    assert is_passed(CASES[name])
    breaks(monkeypatch)
    assert not is_passed(CASES[name])


WHOLE = "log-of-a-whole-run"


def unrecorded(name: str) -> Break:
    """Break: an event is neither recorded nor applied."""

    def breaks(monkeypatch: pytest.MonkeyPatch) -> None:
        record = Journal.record

        def forget(journal: Journal, event: Event) -> None:
            if event.name != name:
                record(journal, event)

        monkeypatch.setattr(Journal, "record", forget)

    return breaks


def kind(name: str, **other: Any) -> Break:
    """Break: the catalogue describes an event otherwise."""
    return lambda monkeypatch: monkeypatch.setitem(EVENTS, name, changed(EVENTS[name], **other))


def identifiers_without(name: str) -> Break:
    made = envelopes._identifiers
    return replaced(
        envelopes, "_identifiers", lambda *given: {key: made(*given)[key] for key in made(*given) if key != name}
    )


def without_first_event(monkeypatch: pytest.MonkeyPatch) -> None:
    events = MemoryStore.events
    monkeypatch.setattr(MemoryStore, "events", lambda *given: iter(list(events(*given))[1:]))


class Foreign:
    """A value outside the closed sets."""

    value = "foreign"


ON_ENVELOPES: dict[str, tuple[str, Break]] = {
    "formal-10.1-01": ("without step.started", unrecorded("step.started")),
    "formal-10.1-02": ("entity_id", replaced(envelopes, "_entity_id", lambda *_: "")),
    "formal-10.1-03 source": ("source foreign", kind("step.done", plane=Foreign)),
    "formal-10.1-03 entity": ("entity foreign", kind("step.done", entity=Foreign)),
    "formal-10.1-03 status": ("status foreign", kind("step.done", status=Foreign)),
    "brief-11-01": ("the end is not recorded last", unrecorded("workflow.finished")),
    "brief-11-02": ("without task.started", unrecorded("task.started")),
    "brief-11-03 task": ("lacks task_run_id", identifiers_without("task_run_id")),
    "brief-11-03 step": ("lacks step_run_id", identifiers_without("step_run_id")),
    "brief-11-03 attempt": ("lacks attempt", identifiers_without("attempt")),
    "step-8-02": ("without loop.iteration.started", unrecorded("loop.iteration.started")),
    "formal-11.1-03": ("seq is not dense", without_first_event),
    "step-1-02": ("seq is not dense", without_first_event),
}
"""By requirement: what is then wrong with the log, and how the sentence is broken."""


@pytest.mark.parametrize("requirement", ON_ENVELOPES)
def test_envelopes_that_a_run_emits_are_refused_when_the_sentence_is_broken(
    requirement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem, breaks = ON_ENVELOPES[requirement]
    assert requirement.partition(" ")[0] in CASES[WHOLE].expect["requirement"]
    (log,) = emitted(CASES[WHOLE], monkeypatch).values()
    assert problems(log) == []
    breaks(monkeypatch)
    (log,) = emitted(CASES[WHOLE], monkeypatch).values()
    assert any(problem in found for found in problems(log))


ON_LINT = {
    "brief-2.A-02": ("credentials-under-executor", "P020"),
    "brief-7.1-02": ("workload-write", "P020"),
    "S63-1": ("spec-key-elsewhere", "P323"),
    "S63-2": ("spec-key-unread", "P323"),
    "S63-3": ("limit-out-of-range", "P321"),
    "brief-2.2-07": ("executor-of-another-runtime", "P327"),
}
"""By requirement: the case, and the rule that has to find what it refuses."""


@pytest.mark.parametrize("requirement", ON_LINT)
def test_a_lint_case_fails_when_its_rule_says_nothing(requirement: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, code = ON_LINT[requirement]
    (case,) = [case for case in read_cases("lint") if case.id == name]
    assert requirement in case.expect["requirement"]
    test_lint_answers_as_the_case_expects(case)
    monkeypatch.setattr(rules_by_code()[code], "check", lambda *_: iter(()))
    with pytest.raises(AssertionError):
        test_lint_answers_as_the_case_expects(case)
