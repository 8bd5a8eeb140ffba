"""Cases that can fail: each passes as the machine is, and does not when the sentence that it checks is broken."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from noetlvm.bytecode.program import BundleError
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
from noetlvm.server import children, server
from noetlvm.store.memory import MemoryStore
from noetlvm.testing import __main__ as protocol
from noetlvm.testing import script
from noetlvm.testing.script import Answer, ScriptError
from tests.noetlc.canon import test_canonical_form
from tests.noetlc.codegen import test_golden_assembly
from tests.whole.conformance import test_lint_cases, test_parse_cases, test_replay_cases
from tests.whole.conformance.breaks import Break, replaced, silent, unrecorded
from tests.whole.conformance.broken import OTHERS, RUNS, Broken
from tests.whole.conformance.suite import Case, read_cases, read_requirements
from tests.whole.conformance.test_run_cases import IN_ANY_ORDER, reported
from tests.whole.conformance.test_run_envelopes import emitted, problems
from tests.whole.conformance.verdict import complaints

CASES = {case.id: case for case in read_cases("run")}


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
    "S61-1": ("events-of-their-own", unrecorded("task.started")),
    "S61-2": ("denial-is-recorded-once", replaced(settling, "denial", lambda *_: {})),
    "S61-3": ("outer-iterations-begin", outer_beginnings_are_lost),
    "S61-4": ("request-refused", replaced(protocol, "invalid_playbook", lambda *_: {"kind": "validation"})),
    "S62-1": ("net-fuel-runs-out", replaced(loaded, "Limits", type("NoLimits", (), {"of": lambda _: Limits()}))),
    "formal-4.1-02": ("child-of-another-version", replaced(children, "_refusal", lambda *_: {})),
    "formal-4.2-03": ("step-gate-pipeline-router", replaced(decide, "_needed", lambda *_: ())),
    "formal-4.2-04": ("denial-is-recorded-once", replaced(settling, "denial", lambda *_: {})),
    "formal-4.3-01": ("lease-late-report", late_reports_count),
    "formal-4.3-04": ("log-of-a-whole-run", unrecorded("task.started")),
    "formal-10.2-01": ("log-of-a-whole-run", unrecorded("workflow.finished")),
    "formal-10.2-02": ("tokens-enqueued-and-claimed", replaced(routing.Routing, "_token_args", lambda *_: {})),
    "formal-12-01": ("job-submitted-and-polled", replaced(frame.Frame, "retry", lambda self, *_: self.fail(0))),
    "formal-12-02": ("job-submitted-and-polled", replaced(fold, "_open_iterations", lambda *_: None)),
    "formal-12-03": ("job-submitted-and-polled", replaced(Offload, "fit", lambda _, mapping, *more: mapping)),
    "brief-5.2-02": ("log-of-a-whole-run", unrecorded("task.done")),
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
    "brief-7.2-01": ("log-of-a-whole-run", unrecorded("ctx.patched")),
    "S45-4": ("secret-in-a-result-is-lost-with-its-lease", masks_are_values),
    "S64-1": ("mask-in-ctx-is-refused", masks_are_values),
    "formal-11.2-03": ("log-of-a-whole-run", unrecorded("task.started")),
    "S65-1": ("failures-in-the-order-of-the-log", replaced(fold, "_failure_position", lambda _: (0, ()))),
}
"""By requirement: the case that checks it, and how the sentence is broken."""


def all_complaints(case: Case) -> Iterator[str]:
    """Judge a case as it is, and under its schedules."""
    yield from complaints(case.expect, reported(case))
    expect = {key: value for key, value in case.expect.items() if key in IN_ANY_ORDER}
    for seed in range(case.expect.get("given", {}).get("schedules", 0)):
        yield from complaints(expect, reported(case, seed))


def is_passed(case: Case) -> bool:
    """Return whether a case passes; one with an invalid state or an unexpected call does not."""
    try:
        return not any(all_complaints(case))
    except (AssertionError, BundleError, ScriptError, LookupError, TypeError, ValueError, AttributeError):
        return False


@pytest.mark.parametrize("requirement", ON_CASES)
def test_a_case_fails_when_its_sentence_is_broken(requirement: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, breaks = ON_CASES[requirement]
    assert requirement in CASES[name].expect["requirement"]
    assert is_passed(CASES[name])
    breaks(monkeypatch)
    assert not is_passed(CASES[name])


WHOLE = "log-of-a-whole-run"


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


# ---- every MUST of the three documents

DOCUMENTS = ("formal", "brief", "step")
MUSTS = [row for row in read_requirements() if row.level in ("MUST", "MUST NOT")]
LINT = {case.id: case for case in read_cases("lint")}

JUDGES: dict[str, Callable[[Case], None]] = {
    "lint": test_lint_cases.test_lint_answers_as_the_case_expects,
    "parse": test_parse_cases.test_parse_answers_as_the_case_expects,
    "replay": test_replay_cases.test_a_log_folds_to_the_recorded_state,
    "compile": lambda case: test_golden_assembly.test_the_code_is_as_written_down(case.path),
    "canon": lambda case: test_canonical_form.test_each_pair_of_the_conformance_suite(case.path),
}


def is_accepted(stage: str, case: Case) -> bool:
    if stage == "run":
        return is_passed(case)
    try:
        JUDGES[stage](case)
    except (AssertionError, LookupError, TypeError, ValueError, AttributeError):
        return False
    return True


@pytest.mark.parametrize("broken", [*RUNS, *OTHERS], ids=lambda broken: broken.requirements.split()[0])
def test_the_case_of_a_requirement_fails_when_its_sentence_is_broken(
    broken: Broken, monkeypatch: pytest.MonkeyPatch
) -> None:
    (case,) = [one for one in read_cases(broken.stage) if one.id == broken.case]
    assert set(broken.requirements.split()) <= set(case.expect["requirement"])
    assert is_accepted(broken.stage, case)
    broken.break_(monkeypatch)
    assert not is_accepted(broken.stage, case)


REFUSALS = {
    name: tuple(sorted({finding["code"] for finding in LINT[name].expect["findings"]}))
    for row in MUSTS
    if row.stage == "lint"
    for name in row.case_ids
    if name in LINT and LINT[name].expect["findings"]
}
"""By lint case of a MUST: the rules that have to find what it refuses."""


@pytest.mark.parametrize("name", REFUSALS)
def test_a_case_of_lint_fails_when_its_rules_find_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_accepted("lint", LINT[name])
    silent(*REFUSALS[name])(monkeypatch)
    assert not is_accepted("lint", LINT[name])


def broken_requirements() -> set[str]:
    """Return the rows of which a break shows that their case can fail."""
    by_hand = {one for broken in (*RUNS, *OTHERS) for one in broken.requirements.split()}
    by_lint = {row.id for row in MUSTS if row.stage == "lint" and not REFUSALS.keys().isdisjoint(row.case_ids)}
    return {*by_hand, *by_lint, *ON_CASES, *(name.partition(" ")[0] for name in ON_ENVELOPES)}


def test_every_must_of_the_three_documents_has_a_break_or_says_why_none_is_possible() -> None:
    broken = broken_requirements()
    unbroken = {row.id for row in MUSTS if row.document in DOCUMENTS and row.id not in broken}
    assert unbroken == {row.id for row in MUSTS if row.document in DOCUMENTS and row.unbreakable}
    assert len(unbroken) < 10
