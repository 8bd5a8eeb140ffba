"""Deliberate breaks of what the decisions (S1 to S65) say about runs, and of envelopes."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

import pytest

from noetlc.codegen import pipeline as pipeline_code
from noetlc.codegen import program as program_code
from noetlc.syntax import ast
from noetlvm.data import event as envelopes
from noetlvm.data.event import Event
from noetlvm.data.references import Reference
from noetlvm.expr import calls, translate_writer
from noetlvm.language.events import EVENTS
from noetlvm.machine import decide, fold, frame, instructions, loaded, loops, scope, settling
from noetlvm.machine.fold import Journal
from noetlvm.machine.frame import Frame
from noetlvm.machine.loaded import LoadedStep
from noetlvm.machine.messages import WorkerReport
from noetlvm.machine.routing import Routing
from noetlvm.machine.settling import Settling
from noetlvm.machine.time_limits import TimeLimits
from noetlvm.record import changed
from noetlvm.rounds import rounds as server
from noetlvm.rounds.credentials import Credentials, UnresolvedError
from noetlvm.store.memory import MemoryStore
from noetlvm.testing import script
from noetlvm.testing.script import Answer
from tests.whole.conformance.breaks import Break, replaced


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


# ---- envelopes


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


# ---- expressions


def expressions_call(name: str, function: Any) -> Break:
    """Break: what expressions call under this name is something else."""
    return lambda monkeypatch: monkeypatch.setitem(translate_writer._OPERATIONS, name, function)


def filters_call(name: str, function: Any) -> Break:
    """Break: a filter does something else."""
    return lambda monkeypatch: monkeypatch.setitem(calls.implementations()["FILTER"], name, function)


# ---- events and what they say


def without_field(name: str, field: str) -> Break:
    """Break: a field of an event is recorded, and changes nothing."""

    def breaks(monkeypatch: pytest.MonkeyPatch) -> None:
        handle = fold.HANDLERS[name]

        def less(state: Any, event: Event) -> None:
            data = {key: value for key, value in event.data.items() if key != field}
            handle(state, event._replace(data=data))

        monkeypatch.setitem(fold.HANDLERS, name, less)

    return breaks


def headers_with(**other: Any) -> Break:
    """Break: a loop starts with other settings."""
    header = Settling._header
    return replaced(Settling, "_header", lambda *given: header(*given) | other)


def without_limit(name: str) -> Break:
    """Break: a time limit of a step is ignored."""
    of = TimeLimits.of
    return replaced(TimeLimits, "of", lambda settings: of(settings)._replace(**{name: inf}))


def without_retryable(found: dict[str, Any]) -> None:
    if found.get("error"):
        found["error"] = {key: value for key, value in found["error"].items() if key != "retryable"}


def one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The values of a patch are written one after the other."""
    then_of = pipeline_code._TaskCode._then

    def write_each(self: Any, then: ast.Then, call: Any) -> None:
        for entry in then.set_ctx.entries if then.set_ctx else ():
            self._emit("PATCH", None, self._patch(changed(then.set_ctx, entries=(entry,)), "set_ctx"), at=then.span)
        then_of(self, changed(then, set_ctx=None), call)

    monkeypatch.setattr(pipeline_code._TaskCode, "_then", write_each)


def specs_are_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tool does not get the settings of its task."""
    call = instructions.CallTool
    monkeypatch.setattr(instructions, "CallTool", lambda kind, inputs, _spec, *more: call(kind, inputs, {}, *more))


def references_without(name: str) -> Break:
    """Break: a reference does not say where its result is, or what it is."""
    to_data = Reference.to_data
    return replaced(
        Reference, "to_data", lambda self: {key: value for key, value in to_data(self).items() if key != name}
    )


def first_offer_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a pause, only the first of the iterations that have become due begins."""
    offers = decide.offers
    monkeypatch.setattr(decide, "offers", lambda *given: list(offers(*given))[:1])


# ---- tokens and gates


def admission(change: Callable[[tuple[Any, ...]], tuple[Any, ...]]) -> Break:
    """Break: the rules of a gate are changed: pairs of a guard, or None for `else`, and the verdict."""

    def breaks(monkeypatch: pytest.MonkeyPatch) -> None:
        lower = program_code.lower_verdict
        monkeypatch.setattr(program_code, "lower_verdict", lambda choices, *more: lower(change(tuple(choices)), *more))

    return breaks


def first_result_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The name of a step reads the result of its first run."""
    done = fold.HANDLERS["step.done"]

    def keep(state: Any, event: Event) -> None:
        before = state.view.results
        done(state, event)
        state.view = state.view._replace(results={**state.view.results, **before})

    monkeypatch.setitem(fold.HANDLERS, "step.done", keep)


def routes_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    route = Routing.route

    def twice(self: Routing) -> Any:
        data, tokens = route(self)
        return data, tokens * 2

    monkeypatch.setattr(Routing, "route", twice)


_FIRING = Routing._firing


def something_fires(self: Routing) -> list[int]:
    """Where no arc holds, the first one fires."""
    return _FIRING(self) or [0]


def routing_never_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    route = Routing.route

    def routed(self: Routing) -> Any:
        data, tokens = route(self)
        return {key: value for key, value in data.items() if key != "error"}, tokens

    monkeypatch.setattr(Routing, "route", routed)


def sees_the_state(state: Any, _run: Any, _path: str) -> Any:
    """An iteration sees what is in `ctx` when it opens."""
    return state.view


def never_drops(monkeypatch: pytest.MonkeyPatch) -> None:
    """A token that is not admitted waits, whatever `on_deny` says."""
    monkeypatch.setattr(LoadedStep, "drops_denied", property(lambda _: False, lambda *_: None))


def reducer(name: str) -> Break:
    """Break: a reducer gives nothing."""
    return lambda monkeypatch: monkeypatch.setitem(loops.REDUCERS, name, lambda _: None)


_ADMIT = Settling._admit


def tried_once(self: Settling, number: int, token: Any) -> None:
    """A token that was not admitted is not tried again."""
    if token.is_denied:
        del self._state.untested[number]
    else:
        _ADMIT(self, number, token)


def shadowed(module: Any, name: str, value: Any) -> Break:
    """Break: a module calls something else in place of a builtin."""
    return lambda monkeypatch: monkeypatch.setattr(module, name, value, raising=False)


# ---- children, labels, limits


def without_result(self: Any, run: int, iteration: str, outcome: dict[str, Any]) -> None:
    """A parent does not get the result of its child."""
    _ANSWER(self, run, iteration, outcome | {"result": None})


_ANSWER = decide._Decider._answer
_REQUESTED = decide.requested


def unrelated(*given: Any) -> Event:
    """The log of a child does not name its parent."""
    event = _REQUESTED(*given)
    return event._replace(data={key: value for key, value in event.data.items() if key != "parent"})


def limits_with(**other: int) -> Break:
    """Break: an execution has other limits."""
    of = loaded.Limits.of
    return replaced(loaded.Limits, "of", lambda executor: of(executor)._replace(**other))


def one_token_for_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second token for a step is lost."""
    record = Journal.record

    def forget(journal: Journal, event: Event) -> None:
        state, step = journal.state, event.data.get("step")
        known = {one.step for one in (*state.tokens.values(), *state.runs.values())} | state.results.keys()
        if event.name != "token.enqueued" or step not in known:
            record(journal, event)

    monkeypatch.setattr(Journal, "record", forget)


def labels_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a label reads is shared by all iterations."""
    shared: dict[str, Any] = {}
    hand_on, first = Frame.hand_on, frame.labels_first

    def hand_on_to_all(self: Frame) -> None:
        hand_on(self)
        shared.update(self.labels)

    monkeypatch.setattr(Frame, "hand_on", hand_on_to_all)
    monkeypatch.setattr(
        frame, "labels_first", lambda labels, steps, offload: first(_Shared(shared, labels), steps, offload)
    )


class _Shared(dict[str, Any]):
    """Labels of all iterations, and those of one."""

    def __init__(self, shared: dict[str, Any], own: dict[str, Any]) -> None:
        self._parts = (own, shared)

    def __contains__(self, name: object) -> bool:
        return any(name in part for part in self._parts)

    def __getitem__(self, name: str) -> Any:
        return next(part[name] for part in self._parts if name in part)


_PATCH_CTX = Settling.patch_ctx


def patch_of_nobody(self: Settling, patch: dict[str, Any], _by: Any = None) -> Any:
    """`ctx.patched` does not say who wrote."""
    return _PATCH_CTX(self, patch)


def own_writes_are_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that takes a step over does not see what the step wrote."""
    monkeypatch.setattr(fold, "_overlay", lambda *_: None)


def inner_merges_continue(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reducers of inner loops continue from `ctx` too."""
    merge = settling.merge_patches
    monkeypatch.setattr(
        settling,
        "merge_patches",
        lambda patches, reducers, read, start: merge(patches, reducers, read, start or {"total": 100}),
    )


def counts_are_summed(monkeypatch: pytest.MonkeyPatch) -> None:
    """`count` of an outer loop counts the iterations of inner ones."""
    monkeypatch.setitem(loops.REDUCERS, "count", lambda values: sum(values))


def waiting_tokens_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every token that waits at the end fails the execution."""
    error = instructions.failure("admission", "it was never admitted")
    monkeypatch.setattr(Settling, "_never_admitted", lambda *_: {"error": error})


class Other:
    """An entity of the closed set, and not the right one."""

    value = "next"


_ENVELOPE = envelopes.envelope


def envelope_without_trace(*given: Any) -> dict[str, Any]:
    return {key: value for key, value in _ENVELOPE(*given).items() if key != "trace_id"}


def secrets_of_one_execution(monkeypatch: pytest.MonkeyPatch) -> None:
    """An execution masks its own secrets only."""
    made = Credentials.__init__

    def alone(self: Credentials, entries: Any = None, secrets: Any = (), known: Any = None) -> None:
        made(self, entries, secrets)

    monkeypatch.setattr(Credentials, "__init__", alone)


def boundary_named(event: str, name: str) -> Break:
    """Break: arcs see a boundary event under another name."""
    return lambda monkeypatch: monkeypatch.setitem(fold._VIEWS, event, fold._VIEWS[event] | {"name": name})


def server_without(name: str) -> Break:
    """Break: templates of the server lack a namespace."""
    made = settling.server_names
    return replaced(settling, "server_names", lambda *given, **names: made(*given, **(names | {name: None})))


def nameless_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """A credential that is missing is not named."""
    monkeypatch.setattr(UnresolvedError, "__str__", lambda _: "a credential is missing")


def patches_reach_the_workload(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is written to `ctx` is written to the workload too."""
    patched = fold.HANDLERS["ctx.patched"]

    def both(state: Any, event: Event) -> None:
        patched(state, event)
        state.workload = {**state.workload, **event.data["patch"]}

    monkeypatch.setitem(fold.HANDLERS, "ctx.patched", both)
