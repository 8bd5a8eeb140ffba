"""Deliberate breaks of the machine and of what runs it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import pytest

from noetlc.codegen import pipeline as pipeline_code
from noetlc.syntax import ast, nodes
from noetlc.syntax.span import Span
from noetlvm.data.event import Event
from noetlvm.expr.errors import ExpressionError, Fuel
from noetlvm.machine import decide, fold, frame, instructions, loaded, settling
from noetlvm.machine.fold import Journal
from noetlvm.machine.frame import Frame
from noetlvm.machine.loaded import LoadedLoop, LoadedStep
from noetlvm.machine.payload import Offload
from noetlvm.machine.routing import Routing
from noetlvm.machine.settling import Settling
from tests.whole.conformance.breaks import Break


def unrecorded(name: str) -> Break:
    """Break: an event is neither recorded nor applied."""

    def breaks(monkeypatch: pytest.MonkeyPatch) -> None:
        record = Journal.record

        def forget(journal: Journal, event: Event) -> None:
            if event.name != name:
                record(journal, event)

        monkeypatch.setattr(Journal, "record", forget)

    return breaks


def unapplied(name: str) -> Break:
    """Break: an event is recorded, and changes nothing."""
    return lambda monkeypatch: monkeypatch.setitem(fold.HANDLERS, name, lambda *_: None)


def hidden(name: str) -> Break:
    """Break: an event is applied, and the log does not have it."""

    def breaks(monkeypatch: pytest.MonkeyPatch) -> None:
        record = Journal.record

        def hide(journal: Journal, event: Event) -> None:
            record(journal, event)
            journal.events = [made for made in journal.events if made.name != name]

        monkeypatch.setattr(Journal, "record", hide)

    return breaks


def performs(name: str, other: str) -> Break:
    """Break: a pipeline's instruction does what another of the same operands does."""
    return lambda monkeypatch: monkeypatch.setitem(instructions.BINDERS, name, instructions.BINDERS[other])


# ---- requests and tokens


def first_step_is_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first token goes to the step that is written last."""
    enqueue = Settling.enqueue

    def elsewhere(self: Settling, step: str, args: dict[str, Any], **more: Any) -> None:
        enqueue(self, list(self._net.steps)[-1], args, **more)

    monkeypatch.setattr(Settling, "enqueue", elsewhere)


def ctx_begins_full(monkeypatch: pytest.MonkeyPatch) -> None:
    enqueue = Settling.enqueue

    def patch_first(self: Settling, step: str, args: dict[str, Any], **more: Any) -> None:
        self.patch_ctx({"unwanted": 1})
        enqueue(self, step, args, **more)

    monkeypatch.setattr(Settling, "enqueue", patch_first)


def jumps_start_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker's `jump` puts a token before the step that has the name of a task."""
    record = Journal.record

    def start(journal: Journal, event: Event) -> None:
        record(journal, event)
        if event.name == "task.done" and event.data.get("do") == "jump":
            number = journal.state.last_token + 1
            record(journal, Event("token.enqueued", {"token": number, "step": "b", "args": {}}, event.run))

    monkeypatch.setattr(Journal, "record", start)


def all_that_hold(self: Routing) -> list[int]:
    return [index for index in range(len(self.step.arcs)) if self._holds(index, Fuel())]


def first_that_holds(self: Routing) -> list[int]:
    return all_that_hold(self)[:1]


def only_guarded_hold(self: Routing, index: int, fuel: Fuel) -> bool:
    guard = self.step.arcs[index].guard
    return guard is not None and bool(guard(self.names, fuel))


def tokens_without_arguments(self: Routing, index: int) -> dict[str, Any]:
    return self.args


def only_gates_admit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step without admission rules lets no token in."""
    admit = Settling._admit

    def deny(self: Settling, number: int, token: Any) -> None:
        step: LoadedStep = self._net.steps[token.step]
        if step.admit is None:
            self._reject(number, step, reason="denied")
        else:
            admit(self, number, token)

    monkeypatch.setattr(Settling, "_admit", deny)


def every_failure_is_handled(monkeypatch: pytest.MonkeyPatch) -> None:
    route = Routing.route

    def handled(self: Routing) -> Any:
        data, tokens = route(self)
        return (data | {"handled": True} if self.failed else data), tokens

    monkeypatch.setattr(Routing, "route", handled)


def gate_by_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Admission is tried for the first token of a step only."""
    tried: set[int] = set()
    judge = settling.judge

    def once(gate: Any, names: dict[str, Any]) -> bool:
        if id(gate) in tried:
            return True
        tried.add(id(gate))
        return judge(gate, names)

    monkeypatch.setattr(settling, "judge", once)


# ---- pipelines


def guards(decide_guard: Callable[[bool], bool]) -> Break:
    """Break: what a rule's guard says is taken for something else."""

    def breaks(monkeypatch: pytest.MonkeyPatch) -> None:
        unless = instructions.BINDERS["UNLESS"]

        def bound(pipeline: Any, at: int, guard: object, target: int) -> Any:
            perform = unless(pipeline, at, guard, target)

            def other(current: Frame) -> Any:
                effect = perform(current)
                if effect is None:
                    current.pc = at + 1 if decide_guard(current.pc != target) else target
                return effect

            return other

        monkeypatch.setitem(instructions.BINDERS, "UNLESS", bound)

    return breaks


def guards_by_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same outcome and state give one directive, then another."""
    turn = iter(range(1_000_000))
    guards(lambda holds: bool(next(turn) % 2))(monkeypatch)


def rules_from_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = pipeline_code._TaskCode._policy

    def reverse(self: Any, rules: list[Any], call: Any) -> None:
        guarded = [rule for rule in rules if rule.when is not None]
        policy(self, [*reversed(guarded), *(rule for rule in rules if rule.when is None)], call)

    monkeypatch.setattr(pipeline_code._TaskCode, "_policy", reverse)


def unmatched_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """A policy in which nothing matches ends the pipeline as failed."""
    policy = pipeline_code._TaskCode._policy

    def with_failure(self: Any, rules: list[Any], call: Any) -> None:
        span = Span(0, 0)
        fail = ast.Then(span=span, do=nodes.Scalar(span, "fail", "fail", ""))
        last = ast.PolicyRule(span=span, else_=ast.RuleElse(span=span, then=fail))
        policy(self, [*rules, last], call)

    monkeypatch.setattr(pipeline_code._TaskCode, "_policy", with_failure)


def errors_continue(_pipeline: Any, at: int, _target: int) -> Any:
    def on_error(current: Frame) -> None:
        current.pc = at + 1

    return on_error


def errors_always(_pipeline: Any, _at: int, target: int) -> Any:
    def on_error(current: Frame) -> None:
        current.pc = target

    return on_error


def instruction(name: str, binder: Any) -> Break:
    """Break: an instruction of a pipeline is bound to something else."""
    return lambda monkeypatch: monkeypatch.setitem(instructions.BINDERS, name, binder)


def ends_as_done(_pipeline: Any, _at: int, *_operands: object) -> Any:
    def end(current: Frame) -> Any:
        current.end_task("break", instructions.DONE)
        current.hand_on()
        return current.finish()

    return end


def ends_as_failed(_pipeline: Any, at: int, *_operands: object) -> Any:
    return lambda current: current.fail(at)


def task_names(other: Callable[[str], str]) -> Break:
    """Break: `_task` is not the label of the task."""

    def breaks(monkeypatch: pytest.MonkeyPatch) -> None:
        enter = Frame.enter

        def rename(self: Frame, label: str) -> None:
            enter(self, label)
            self.names["_task"] = other(label)

        monkeypatch.setattr(Frame, "enter", rename)

    return breaks


def attempts_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """A task that is entered again does not begin at attempt 1."""
    enter = Frame.enter

    def enter_again(self: Frame, label: str) -> None:
        before = self.attempt
        enter(self, label)
        self._begin_attempt(before + 1)

    monkeypatch.setattr(Frame, "enter", enter_again)


def growth(backoff: str, factor: Callable[[int], int]) -> Break:
    """Break: the waits of a retry grow in another way."""
    return lambda monkeypatch: monkeypatch.setitem(instructions._GROWTH, backoff, factor)


def never_again(_pipeline: Any, at: int, *_operands: object) -> Any:
    def retry(current: Frame) -> None:
        current.pc = at + 1

    return retry


def attempts_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every attempt is the first."""
    begin = Frame._begin_attempt
    monkeypatch.setattr(Frame, "_begin_attempt", lambda self, _number: begin(self, 1))


def iter_is_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    """What one iteration writes to `iter`, all others see."""
    shared: dict[str, Any] = {}
    write, names = Frame.write, frame.pipeline_names

    def write_for_all(self: Frame, patches: dict[str, dict[str, Any]]) -> None:
        write(self, patches)
        shared.update(patches.get("iter", {}))

    monkeypatch.setattr(Frame, "write", write_for_all)
    monkeypatch.setattr(frame, "pipeline_names", lambda scope, prev, written: names(scope, prev, {**shared, **written}))


def iter_without(*missing: str) -> Break:
    """Break: the `iter` of an iteration lacks the element, its index or its parent."""

    def breaks(monkeypatch: pytest.MonkeyPatch) -> None:
        made = decide.iter_of

        def less(run: Any, step: Any, path: str, offload: Any) -> dict[str, Any] | None:
            found = made(run, step, path, offload)
            wanted = {step.loops[-1].iterator if name == "element" else name for name in missing}
            return found and {name: value for name, value in found.items() if name not in wanted}

        for module in (decide, settling):
            monkeypatch.setattr(module, "iter_of", less)

    return breaks


def names_with(**other: Any) -> Break:
    """Break: templates of a pipeline see other values."""

    def breaks(monkeypatch: pytest.MonkeyPatch) -> None:
        made = frame.pipeline_names
        monkeypatch.setattr(frame, "pipeline_names", lambda *given: {**made(*given), **other})

    return breaks


def names_without(name: str) -> Break:
    """Break: a namespace of a pipeline is empty."""
    return names_with(**{name: {}})


def results_reversed(monkeypatch: pytest.MonkeyPatch) -> None:
    results = settling.all_results
    monkeypatch.setattr(settling, "all_results", lambda loop, offload: results(loop, offload)[::-1])


def outcome(change: Callable[[dict[str, Any]], Any]) -> Break:
    """Break: a tool's outcome is changed before the pipeline takes it."""

    def breaks(monkeypatch: pytest.MonkeyPatch) -> None:
        complete = Frame.complete

        def changed(self: Frame, given: dict[str, Any], **more: Any) -> None:
            found = {**given}
            change(found)
            complete(self, found, **more)

        monkeypatch.setattr(Frame, "complete", changed)

    return breaks


def without_error_kind(found: dict[str, Any]) -> None:
    if found.get("error"):
        found["error"] = {**found["error"], "kind": ""}


def without_meta(monkeypatch: pytest.MonkeyPatch) -> None:
    complete = Frame.complete

    def forget(self: Frame, given: dict[str, Any], **more: Any) -> None:
        complete(self, given, **more)
        self.outcome = self.names["outcome"] = MappingProxyType({**self.outcome, "meta": {}})  # type: ignore[assignment]
        self._recorded = {**self._recorded, "meta": {}}

    monkeypatch.setattr(Frame, "complete", forget)


def outcomes_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each attempt of a task ends twice."""
    record = Journal.record

    def again(journal: Journal, event: Event) -> None:
        record(journal, event)
        if event.name == "task.done":
            journal.events.append(event)

    monkeypatch.setattr(Journal, "record", again)


def writes_are_lost(scope: str) -> Break:
    """Break: what a rule writes to `iter` or to `ctx` is forgotten."""

    def breaks(monkeypatch: pytest.MonkeyPatch) -> None:
        write = Frame.write

        def less(self: Frame, patches: dict[str, dict[str, Any]]) -> None:
            write(self, {name: patch for name, patch in patches.items() if name != scope})

        monkeypatch.setattr(Frame, "write", less)

    return breaks


def last_write_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parallel iterations that disagree about a key of `ctx` are not refused."""

    def merged(patches: Any, _reducers: Any, _read: Any, _start: Any) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for index in sorted(patches):
            found |= patches[index]
        return found

    monkeypatch.setattr(settling, "merge_patches", merged)


def failed_iterations_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(fold.HANDLERS, "loop.iteration.failed", fold.HANDLERS["loop.iteration.done"])


# ---- loops, results, credentials


def width_is(number: int) -> Break:
    return lambda monkeypatch: monkeypatch.setattr(LoadedLoop, "width", property(lambda _: lambda _names: number))


def never_offloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Large values stay in the log."""
    monkeypatch.setattr(Offload, "fit", lambda _, mapping, *more: mapping)
    monkeypatch.setattr(Offload, "shrink", lambda _, value: value)


def missing_credentials_are_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = sys.modules["noetlvm.testing.run_playbook"]
    resolver_of = runs.resolver_of

    class Everything(dict[str, Any]):
        def __contains__(self, _name: object) -> bool:
            return True

        def __missing__(self, _name: str) -> str:
            return ""

    monkeypatch.setattr(runs, "resolver_of", lambda _keychain: resolver_of(Everything))


def more_fuel(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pipeline may run more tasks than its limit says."""
    of = loaded.Limits.of

    class Limits:
        @staticmethod
        def of(executor: Any) -> Any:
            limits = of(executor)
            return limits._replace(max_transitions=limits.max_transitions + 5)

    monkeypatch.setattr(loaded, "Limits", Limits)


def unbounded_is_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    """An evaluation that costs too much gives an empty text."""
    compiled = loaded.compile_expression

    def compile_expression(expression: Any, **more: Any) -> Any:
        evaluate = compiled(expression, **more)

        def run(names: Any, fuel: Any) -> Any:
            try:
                return evaluate(names, fuel)
            except ExpressionError:
                return {}

        return run

    monkeypatch.setattr(loaded, "compile_expression", compile_expression)
