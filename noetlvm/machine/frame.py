"""A pipeline while it runs: program counter, `_prev`, `iter`, attempts, and the events it reports.

It is pure. It requests effects and takes their outcomes; clocks, tools and identifiers are its driver's business. The
driver calls `advance`, performs the effect, gives a call's outcome to `complete`, and reports `events` as they come.
Whatever comes after a `task.done` depends on that event and on what the scope gives, so a frame that is restored from
the log continues as the first one would have.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from noetlvm.data.encoding import UnencodableError
from noetlvm.data.event import Event, task_run_id
from noetlvm.data.references import overlaid, readable
from noetlvm.limits import IDLE_INSTRUCTIONS_MAX, INPUTS_BYTES, WAIT_HELD_SECONDS
from noetlvm.machine.instructions import DONE, FAILED, Effect, Ended, Wait, failure, shortened
from noetlvm.machine.payload import TooLargeError
from noetlvm.machine.scope import (
    HANDS_ON,
    Remedy,
    Scope,
    labels_first,
    pipeline_names,
    remedy_in,
    run_again,
    unmasked,
    unmasked_data,
)

if TYPE_CHECKING:
    from noetlvm.language.events import EventName
    from noetlvm.machine.loaded import LoadedPipeline, LoadedPlaybook
    from noetlvm.machine.messages import Work
    from noetlvm.machine.payload import Offload
    from noetlvm.machine.state import FrameState

_INSTRUCTIONS_IN_A_ROW = 4
"""Instructions between two checks of the time: each may evaluate an expensive template."""


class Frame:
    """One pipeline, from where its saved state stands. It never changes what it was given."""

    __slots__ = (
        "_answered", "_idle", "_masked", "_patches", "_pipeline", "_recorded", "_repeatable", "_result", "_resumes",
        "_rounds_moved", "_scope", "_wait", "_waits",
        "attempt", "binds", "events", "exhausted", "has_called", "in_task", "inputs", "label", "labels", "names",
        "outcome", "pc", "rounds", "task",
    )  # fmt: skip

    def __init__(self, pipeline: LoadedPipeline, scope: Scope, saved: FrameState) -> None:
        self._pipeline = pipeline
        self._scope = scope
        self.events: list[Event] = []
        """What happened since the driver last took it."""
        self.pc = saved.pc
        self.task = saved.task
        self.label = saved.label
        self.attempt = saved.attempt
        self.rounds = [*saved.rounds, *[0] * (pipeline.counters - len(saved.rounds))]
        self.in_task = saved.waiting is not None
        prev = unmasked(scope.offload.read(saved.prev), "_prev", _rerun(saved.label)) if saved.masked else saved.prev
        self.names = pipeline_names(scope, prev, saved.iter)
        self.labels = {
            label: unmasked(scope.offload.read(result), label, _rerun(label)) if is_masked else result
            for label, (result, is_masked) in saved.labels.items()
        }
        """Results by label, of labels that some task reads (S48)."""
        self.names["steps"] = labels_first(self.labels, self.names["steps"], scope.offload)
        self.binds = False
        """The result of the current task becomes readable under its label."""
        self.has_called = False
        """The driver was given the call of the current attempt, and reports its start."""
        if self.in_task:
            self.attempt += 1
        self._waits = saved.waits
        self._resumes = saved.resumes
        if self.task:
            self.names["_task"], self.names["_attempt"] = (
                (self._resumes["task"], self._resumes["attempt"]) if self._resumes else (self.label, self.attempt)
            )
        self.exhausted = False
        """A rule decided `retry`, and there are no attempts left."""
        self.inputs: dict[str, Any] | None = None
        self.outcome: dict[str, Any] = {}
        """Of the current attempt; empty before the tool has run."""
        self._recorded: dict[str, Any] = {}
        """The outcome as the event carries it."""
        self._masked = False
        """The outcome's result holds a secret, which the event does not carry."""
        self._answered: dict[str, Any] = {}
        """What the tool returned, if the event's outcome is another: a replay decides on this one."""
        self._repeatable = False
        """Its tool changed nothing, and can be run again for that."""
        self._result = saved.prev
        """`_prev` as the event carries it."""
        self._patches: dict[str, dict[str, Any]] = {}
        self._rounds_moved = False
        self._idle = 0
        """Instructions since the last effect."""
        self._wait = Wait(saved.waiting) if saved.waiting else None

    # ---- for the driver

    def advance(self, is_due: Callable[[], bool] | None = None) -> Effect:
        """Run up to the next effect. Where a call has no outcome yet, it is requested again.

        `is_due` is true when others need a turn: then the effect is an empty wait, and the next call continues.
        """
        if self._wait is not None:
            wait, self._wait = self._wait, None
            return wait
        if self.pc < 0:
            return self._ended_before()
        performs = self._pipeline.performs
        while self._idle < IDLE_INSTRUCTIONS_MAX:
            self._idle += 1
            effect = performs[self.pc](self)
            if effect is not None:
                self._idle = 0
                return effect
            if is_due is not None and not self._idle % _INSTRUCTIONS_IN_A_ROW and is_due():
                return Wait(0)
        message = f"{IDLE_INSTRUCTIONS_MAX:,} instructions ran without a tool: does a jump form an endless cycle?"
        return self.give_up(failure("fuel", message), self.pc)

    def complete(self, outcome: dict[str, Any], *, repeatable: bool = False) -> None:
        """Take the outcome of the call that was requested: `{status, result, error, meta, …}`.

        `repeatable`: the tool changed nothing, so the task may run again for a result that could not be recorded.
        """
        meta = {**outcome.get("meta", {}), "attempt": self.attempt}
        reported = {"result": None, **outcome, "meta": meta}
        error = reported.get("error")
        if error:
            # Redact before cutting: the remainder of a secret that was cut would not be recognised.
            reported["error"] = error | {"message": shortened(self._scope.offload.redacted(error["message"]))}
        try:
            recorded = self._small(reported)
        except (UnencodableError, TooLargeError) as problem:
            error = failure("encoding", f"the result cannot be recorded: {problem}")
            reported = recorded = {
                "status": "error",
                "result": None,
                "error": error,
                "meta": meta,
                **self._recordable_parts(outcome),
            }
        # The first event of the log has the trace, so only templates get it again.
        seen = {**reported, "meta": {**meta, "trace_id": self._scope.trace_id}}
        self.outcome = self.names["outcome"] = readable(seen, self._scope.offload.load)
        self._recorded = recorded
        offload, result = self._scope.offload, reported["result"]
        self._masked, self._repeatable = offload.redacted(result) is not result, repeatable
        self.pc += 1

    def take_answer(self, answer: dict[str, Any], meta: dict[str, Any]) -> None:
        """Take the outcome of a child for the call's: it comes from a log, so masked parts cannot be read (S64)."""
        offload = self._scope.offload
        self.complete({**offload.readable(answer), "meta": meta})
        if self._scope.has_secrets or offload.redacts:
            shown = unmasked_data(answer, "outcome", _rerun(self.label), offload)
            self._masked = self._masked or shown is not answer
            self.outcome.update((name, shown[name]) for name in answer if name != "meta")

    def not_rendered(self, problem: dict[str, Any]) -> None:
        """Take a failure to render the inputs for the call's outcome: the task's rules decide (S10)."""
        self.not_called({"status": "error", "error": problem})

    def not_called(self, outcome: dict[str, Any]) -> None:
        """Take an outcome for a call that is not made."""
        self.has_called = False
        self.complete({**outcome, "meta": self.uncalled_meta()})

    def uncalled_meta(self) -> dict[str, Any]:
        """Return `meta` of the outcome of an attempt whose tool is not called."""
        return {"attempt": self.attempt, "duration_ms": 0, "ts": self._scope.now()}

    def _recordable_parts(self, outcome: dict[str, Any]) -> dict[str, Any]:
        """Return the tool's own part of an outcome whose result cannot be recorded: rules read `http.status`."""
        parts = {name: value for name, value in outcome.items() if name not in ("status", "result", "error", "meta")}
        try:
            return self._scope.offload.fit(parts)
        except (UnencodableError, TooLargeError):
            return {}

    def take_events(self) -> list[Event]:
        """Return what happened since the last time."""
        events, self.events = self.events, []
        return events

    def started(self, **data: Any) -> Event:
        """Return the event of the current attempt's beginning, for a call that a report cannot wait for."""
        return self._event("task.started", data)

    def uncalled(self) -> Event:
        """Return the event of the beginning of an attempt that ends before its tool is called."""
        return self.started()

    def context(self) -> dict[str, Any]:
        """Return what templates see here, without secrets: namespaces, and results of steps by name."""
        results = self._scope.results
        steps = {} if callable(results) else {name: self.names["steps"](name) for name in results}
        return steps | {name: value for name, value in self.names.items() if name not in ("keychain", "steps")}

    @property
    def key(self) -> str:
        """Identifier of the current task run."""
        scope = self._scope
        return task_run_id(scope.execution_id, scope.run, scope.iteration, self.task)

    # ---- for instructions

    @property
    def tasks_counted(self) -> int:
        """How many task runs there were, without waits between rounds."""
        return self.task - self._waits

    def enter(self, label: str, *, waits: bool = False) -> None:
        """Begin a task run: a new number, attempt 1 (S15). One that waits between rounds does not show in names."""
        self._resumes = {"task": self.label, "attempt": self.attempt} if waits else None
        self.task += 1
        self.label = label
        self.in_task = True
        self.exhausted = False
        if not waits:
            self.names["_task"] = label
        self._begin_attempt(1)

    def _begin_attempt(self, number: int) -> None:
        self.attempt = number
        if self._resumes is None:
            self.names["_attempt"] = number
        self.binds = self.has_called = False
        self.outcome = self._recorded = {}
        self.inputs = None

    def write(self, patches: dict[str, dict[str, Any]]) -> None:
        """Write to `iter` and `ctx`. Raises UnencodableError or TooLargeError, and then writes nothing."""
        small = {name: self._scope.offload.fit(patch) for name, patch in patches.items()}
        for name, patch in patches.items():
            self.names[name] = overlaid(self.names[name], patch)
            self._patches[name] = self._patches.get(name, {}) | small[name]

    def count(self, slot: int, rounds: int) -> None:
        """Set a round counter."""
        self.rounds[slot] = rounds
        self._rounds_moved = True

    def forget_outcome(self) -> None:
        """Treat the task as a success without a result, whatever its tool returned (S17)."""
        self._answered = _without_meta(self._recorded)
        meta = self._recorded.get("meta") or self.uncalled_meta()
        self._recorded = {"status": "ok", "meta": meta} if meta else {"status": "ok"}

    def end_task(self, do: str, target: int, **more: Any) -> None:
        """Record how the attempt ended and where the pipeline continues."""
        data: dict[str, Any] = {"outcome": self._recorded, "do": do, "pc": target, **self._patches, **more}
        if self._rounds_moved:
            data["rounds"] = list(self.rounds)
            self._rounds_moved = False
        if self._masked and do in HANDS_ON:
            data["masked"] = True
            if self._repeatable and "ctx" not in data:  # what was written to `ctx` must not be written again
                data["again"] = True
        if self.binds:
            data["bound"] = True
        if self._answered:
            data["answered"], self._answered = self._answered, {}
        if self._resumes is not None:
            data["resumes"] = self._resumes
        if not self.has_called:  # an attempt that ends has begun, whatever came before its tool (S61)
            self.events.append(self.uncalled())
        self.events.append(self._event("task.done", data))
        if self._patches:
            self._patches = {}
        self.pc = target
        self.in_task = False
        if self._resumes is not None and do != "retry":
            self._waits += 1
            self.label, self.attempt = self._resumes["task"], self._resumes["attempt"]
            self._resumes = None

    def hand_on(self) -> None:
        """Make the task's result the next one's `_prev` (S16)."""
        self.names["_prev"] = result = self.outcome["result"]
        self._result = self._recorded["result"]
        if self.binds:
            self.labels[self.label] = result

    def retry(self, target: int, wait: float) -> Effect | None:
        """End the attempt and begin the next one of the same task run; a long wait is the server's."""
        is_long = wait > WAIT_HELD_SECONDS
        more: dict[str, Any] = {"wait_s": wait} if wait else {}
        self.end_task("retry", target, **more, **({"suspended": True} if is_long else {}))
        if is_long:
            return Ended("suspended")
        self.in_task = True
        self._begin_attempt(self.attempt + 1)
        return Wait(wait) if wait else None

    def finish(self) -> Ended:
        """End as done; the last `_prev` is the result (S16)."""
        self._end("step.done", "loop.iteration.done", {"result": self._result})
        return Ended("done", self._result)

    def fail(self, at: int) -> Ended:
        """End the task and the pipeline as failed, with the outcome's error or that of the rule that decided it."""
        error = self._recorded.get("error")
        if not error:
            error = failure("policy", f"a rule of the task `{self.label}` says `fail`")
            if not self.outcome:
                self._set_error(error)
        if self.exhausted:
            error = self._gave_up(error)
        place = self._pipeline.locate(at)
        self.end_task("fail", FAILED, at=place, **self.shown_inputs())
        return self._failed(error, place)

    def _gave_up(self, error: dict[str, Any]) -> dict[str, Any]:
        """Return an error with the number of attempts and the last outcome."""
        last = (
            error["message"] if self._recorded.get("error") else "the last outcome is `ok`, and its rule says `retry`"
        )
        message = f"gave up after {self.attempt} attempts: {last}"
        return {**error, "message": shortened(message)} if isinstance(last, str) else error

    def give_up(self, error: dict[str, Any], at: int) -> Ended:
        """Fail because no rule can decide: the error becomes that of the task, or of the pipeline between tasks."""
        error = self._scope.offload.redacted(error)
        if self.in_task:
            self._answered = _without_meta(self._recorded)
            self._set_error(error)
            return self.fail(at)
        self.pc = FAILED
        return self._failed(error, self._pipeline.locate(at))

    def _set_error(self, error: dict[str, Any]) -> None:
        """Make an error the recorded outcome, also where the tool was not called."""
        meta = self._recorded.get("meta") or self.uncalled_meta()
        self._recorded = {**self._recorded, "status": "error", "error": error, **({"meta": meta} if meta else {})}

    # ---- events

    def _event(self, name: EventName, data: dict[str, Any]) -> Event:
        scope = self._scope
        return Event(name, data, scope.run, scope.iteration, self.task, self.label, self.attempt)

    def _end(self, of_run: EventName, of_iteration: EventName, data: dict[str, Any]) -> None:
        scope = self._scope
        self.events.append(Event(of_iteration if scope.iteration else of_run, data, scope.run, scope.iteration))

    def _failed(self, error: dict[str, Any], place: str) -> Ended:
        task = {"task": self.label} if self.label else {}
        self._end("step.failed", "loop.iteration.failed", {"error": error, "at": place, **task})
        return Ended("failed", None, error)

    def _small(self, outcome: dict[str, Any]) -> dict[str, Any]:
        """Return an outcome as its event carries it: what is large in it is stored elsewhere (S46)."""
        offload = self._scope.offload
        error = outcome.get("error")
        if not error:
            large = {name: value for name, value in outcome.items() if name not in ("status", "meta")}
            small = offload.fit(large)
            return outcome if small is large else {**outcome, **small}
        large = {name: value for name, value in outcome.items() if name not in ("status", "meta", "error")}
        small = offload.fit({**large, "details": error.get("details"), "message": error["message"]})
        reported = {**error, "details": small.pop("details"), "message": small.pop("message")}
        return {**outcome, **small, "error": reported}

    def shown_inputs(self) -> dict[str, Any]:
        """Return the rendered inputs, which explain a failure, as far as they can be recorded."""
        if not self.inputs or (self._scope.keychain and not self._scope.offload.redacts):
            return {}
        try:
            return {"inputs": self._scope.offload.fit(self.inputs, INPUTS_BYTES)}
        except (UnencodableError, TooLargeError):
            return {}

    def _ended_before(self) -> Ended:
        """End as the last event did: the log has the task's end but not the pipeline's."""
        if self.pc == DONE:
            return self.finish()
        return self._failed(failure("policy", f"the task `{self.label}` failed"), "")


def _rerun(label: str) -> Remedy:
    return lambda _path: run_again((f"the task `{label}`",))


def _without_meta(outcome: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in outcome.items() if name != "meta"}


def frame_for(
    playbook: LoadedPlaybook,
    work: Work,
    secrets: dict[str, Any],
    offload: Offload,
    now: Callable[[], float],
    kind: type[Frame] = Frame,
) -> Frame:
    """Return the frame in which the pipeline of a command continues, wherever it runs."""
    pipeline = playbook.steps[work.step].pipeline
    assert pipeline is not None  # a step without one never becomes a command (S33)
    scope = Scope(
        offload,
        work.execution_id,
        work.run,
        work.iteration,
        work.workload,
        secrets,
        work.ctx,
        work.args,
        work.iter,
        work.trace,
        work.results,
        # The parent of a child may come from another bundle, and hand masks to it.
        playbook.has_secrets or work.trace != work.execution_id,
        remedy_in(playbook, work.step),
        now,
    )
    return kind(pipeline, scope, work.frame)
