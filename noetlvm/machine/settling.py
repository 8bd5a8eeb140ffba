"""What follows from an input without another: tokens enter, loops start and end, arcs fire, the execution ends.

It works off the lists of what is pending in the state, so a call costs what there is to do and no more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from noetlvm.data.event import Event
from noetlvm.limits import ARGS_BYTES_MAX, LOOP_FAILURES_LISTED
from noetlvm.machine.fold import Journal, goes_on, indices, parallel_around, split, visible
from noetlvm.machine.instructions import FAILED, LimitError, failure
from noetlvm.machine.loaded import LoadedPlaybook, LoadedStep
from noetlvm.machine.loops import (
    CollectionError,
    MergeError,
    all_patches,
    all_results,
    collection,
    iter_of,
    level_of,
    merge_patches,
    stored_items,
    with_stored,
)
from noetlvm.machine.payload import CtxSize, Offload, TooLargeError
from noetlvm.machine.routing import AdmissionError, Routing, denial, final_status, judge, summary
from noetlvm.machine.scope import remedy_in, server_names
from noetlvm.machine.state import Attempt, LoopRun, Position, Run, Token, View

FIRST_TOKEN = 1
"""Number of the token that starts an execution."""

MOVES_UNCUT = 8
"""A decision is cut only after a multiple of this many moves."""

MOVES_MAX = 1_024
"""Moves of one decision."""

IsSpent = Callable[[int], bool]
"""Whether a decision with this many events must be cut."""

_REQUEST = Event("ctx.patched", {})
"""A request, which writes to `ctx` before any run."""


class Settling:
    """Does everything that needs no input."""

    __slots__ = ("_is_spent", "_moves", "_net", "_state", "is_cut", "journal", "offload")

    def __init__(
        self, net: LoadedPlaybook, journal: Journal, offload: Offload, is_spent: IsSpent | None = None
    ) -> None:
        self.journal = journal
        self.offload = offload
        self.is_cut = False
        """More is left to do, for another decision."""
        self._net = net
        self._state = journal.state
        self._moves = 0
        self._is_spent = is_spent

    def settle(self) -> None:
        """Make moves until there are none, or the decision is cut."""
        state = self._state
        while state.status == "running" and not state.paused and (self._move() or self._come_to_rest()):
            if self._cut():
                return
        while state.status == "cancelling":
            if not state.runs:
                self._finish()
            else:
                self._stop(next(iter(state.runs)), failure("cancelled", "the execution was cancelled"))
                if self._cut():
                    return

    def time_out(self, numbers: Iterable[int]) -> bool:
        """Fail runs that exceeded their time limits; return whether the decision was cut before the last one."""
        for number in numbers:
            if self.is_cut:
                return True
            self._time_out(number)
            self._cut()
        return False

    def _cut(self) -> bool:
        """Count a move; return whether the decision is cut after it."""
        self._moves += 1
        if not self._moves % MOVES_UNCUT:
            is_spent = self._is_spent
            self.is_cut = self._moves >= MOVES_MAX or (is_spent is not None and is_spent(len(self.journal.events)))
        return self.is_cut

    def enqueue(self, step: str, args: dict[str, Any], **more: Any) -> None:
        """Put a token in front of a step that no arc led to."""
        data = {"token": self._state.last_token + 1, "step": step, "args": args}
        self.journal.emit("token.enqueued", data | more)

    def patch_ctx(self, patch: dict[str, Any], by: Event = _REQUEST) -> dict[str, Any] | None:
        """Write to `ctx` on behalf of the task or loop of an event; return the error if that makes it too large."""
        if not patch:
            return None
        if self._state.ctx_size is None:
            self._state.ctx_size = CtxSize(self._state.ctx)
        try:
            self._state.ctx_size.check(patch)
        except TooLargeError as error:
            return failure("limit", f"`ctx` would be too large: {error}", keys=sorted(patch))
        self.journal.record(by._replace(name="ctx.patched", data={"patch": patch}))
        return None

    def _move(self) -> bool:
        """Make the next move, if there is one; which one depends on the state alone."""
        state = self._state
        if state.ended:
            self._route(next(iter(state.ended)))
        elif state.complete and (complete := self._endable()) is not None:
            self._end_loop(*complete)
        elif state.unstarted:
            self._start_loop(*next(iter(state.unstarted)))
        elif state.untested:
            number = next(iter(state.untested))
            self._admit(number, state.tokens[number])
        else:
            return False
        return True

    def _names(self, args: dict[str, Any], view: View, **more: Any) -> dict[str, Any]:
        """Return what a template sees here."""
        state = self._state
        return server_names(
            self.offload,
            results=view.results,
            workload=state.workload,
            ctx=view.ctx,
            args=args,
            execution_id=state.execution_id,
            **more,
        )

    def _condition_names(self, step: LoadedStep, args: dict[str, Any], event: dict[str, Any] | None) -> dict[str, Any]:
        """Return what a gate or a guard sees: masked values cannot be read (S64)."""
        remedy = remedy_in(self._net, step.name) if self._has_masks() else None
        return self._names(args, self._state.view, event=event, remedy=remedy)

    def _has_masks(self) -> bool:
        return self._net.has_secrets or self.offload.redacts

    # ---- tokens

    def _admit(self, number: int, token: Token) -> None:
        step = self._net.steps[token.step]
        limit = self._net.limits.max_step_runs
        if self._state.last_run >= limit:
            message = f"the execution ran {limit:,} steps, as many as `limits.max_step_runs` allows"
            self._reject(number, step, reason="fuel", error=failure("fuel", message))
            return
        if step.admit is None:
            self._enter(number, step)
            return
        names = self._condition_names(step, token.args, token.event)
        try:
            is_admitted = judge(step.admit, names)
        except AdmissionError as problem:
            self._reject(number, step, reason="template", error=problem.error)
            return
        if is_admitted:
            self._enter(number, step)
        elif step.drops_denied:
            why = denial(step.admit, names) | self._never_admitted(number, token)
            self._reject(number, step, reason="denied", **why)
        elif token.is_denied:
            del self._state.untested[number]
        else:
            data = {"token": number, "step": step.name} | denial(step.admit, names)
            self.journal.emit("token.denied", data)

    def _enter(self, number: int, step: LoadedStep) -> None:
        run = self._state.last_run + 1
        form = "loop" if step.loops else "" if step.pipeline else "routing"
        data = {"token": number, "step": step.name} | ({"form": form} if form else {})
        self.journal.emit("step.scheduled", data, run)
        if self._state.since + step.limits.deadline_s <= self.journal.now:
            self._time_out(run)
        elif form == "routing":
            self.journal.emit("step.done", {"result": None}, run)

    def _reject(self, number: int, step: LoadedStep, **why: Any) -> None:
        self.journal.emit("token.rejected", {"token": number, "step": step.name} | why)

    def _route(self, number: int) -> None:
        run = self._state.runs[number]
        step = self._net.steps[run.step]
        if run.final or not step.arcs:
            self.journal.emit("next.evaluated", {"arcs": []} | self._place(run), number)
            return
        # Making the names costs more than all the rest, and most arcs have no template.
        reads = step.routes_by_template
        names = self._names(run.args, self._state.view, event=run.boundary) if reads else {}
        guarded = self._condition_names(step, run.args, run.boundary) if reads and self._has_masks() else names
        failed = run.boundary is not None and run.boundary["status"] == "error"
        data, tokens = Routing(self._net, step, names, guarded, run.args, failed, self.offload.fit).route()
        self.journal.emit("next.evaluated", data if tokens else data | self._place(run), number)
        for token, (target, args) in enumerate(tokens, self._state.last_token + 1):
            self.journal.emit("token.enqueued", {"token": token, "step": target, "args": args}, number)

    def _place(self, run: Run) -> dict[str, int]:
        """Return the position of a step that leads nowhere, to choose one result of several."""
        return {} if run.final else {"place": self._net.steps[run.step].position}

    # ---- loops

    def _start_loop(self, number: int, path: str) -> None:
        run = self._state.runs[number]
        step, level = self._net.steps[run.step], level_of(path)
        seen = visible(self._state, run, path)
        if path:
            self.journal.emit("loop.iteration.started", {}, number, path)
        names = self._names(run.args, seen, iter=iter_of(run, step, path, self.offload))
        try:
            items = collection(step, level, names)
            header = self._header(step, level, items, names)
        except (CollectionError, LimitError) as problem:
            self._fail_loop(number, path, problem.error)
            return
        self.journal.emit("loop.started", header, number, path)
        if step.pipeline is None:
            nothing = self.offload.shrink([None] * len(items))
            counts = {"total": len(items), "ok": len(items), "failed": 0}
            self.journal.emit("loop.done", {"result": nothing, "loop": counts}, number)

    def _header(self, step: LoadedStep, level: int, items: Any, names: dict[str, Any]) -> dict[str, Any]:
        loop = step.loops[level]
        rate = loop.rate_of(names)
        header: dict[str, Any] = {
            "items": stored_items(items, step, self.offload),
            "total": len(items),
            "width": loop.width(names) if step.pipeline else 0,
            "parallel": loop.parallel,
            "leaf": level + 1 == len(step.loops),
            "best_effort": step.best_effort,
        }
        return header | {"rate": rate} if rate else header

    def _endable(self) -> Position | None:
        """Return the first loop that can be ended; of a run that is to fail, what runs is waited for first (S27)."""
        for number, path in self._state.complete:
            run = self._state.runs[number]
            if run.failure is None or path or self._cancellable(run) or self._is_idle(number, run):
                return number, path
        return None

    def _cancellable(self, run: Run) -> list[str]:
        """Return the iterations of a run that is to fail which have not started and come after the failed one."""
        return [path for path, thread in run.threads.items() if not thread.started and not goes_on(run, path)]

    def _is_idle(self, number: int, run: Run) -> bool:
        """Return whether nothing of a run that is to fail is left, of what comes before the failed iteration either."""
        state = self._state
        pending = (*state.unstarted, *state.complete)
        return not run.threads and not any(key[0] == number and key[1] for key in pending)

    def _end_loop(self, number: int, path: str) -> None:
        run = self._state.runs[number]
        if run.failure is not None and not path:
            self._fail_run(number, run)
            return
        loop = run.loops[path]
        data: dict[str, Any] = {"result": self.offload.shrink(all_results(loop, self.offload))}
        try:
            data |= self._write(number, run, path, loop)
        except MergeError as problem:
            self._fail_loop(number, path, problem.error, fatal=True)
            return
        if path:
            self.journal.emit("loop.iteration.done", with_stored(run, path, data, self.offload), number, path)
        else:
            self.journal.emit("loop.done", data | {"loop": self._with_failures(_counts(loop), loop)}, number)

    def _write(self, number: int, run: Run, path: str, loop: LoopRun) -> dict[str, Any]:
        """Write what a parallel loop's iterations wrote to `ctx`, or return it for the parallel iteration around it.

        Reducers of the outermost parallel loop continue from what `ctx` held when it began (S58).
        """
        patches = all_patches(loop, self.offload)
        if not patches:
            return {}
        reducers = self._net.steps[run.step].loops[level_of(path)].reducers
        start = {} if parallel_around(run, path) else self._state.ctx if path else run.view.ctx
        merged = merge_patches(patches, reducers, self.offload.read, start)
        try:
            patch = self.offload.fit(merged, ARGS_BYTES_MAX)
        except TooLargeError as error:
            raise MergeError(failure("limit", f"the loop writes too much to `ctx`: {error}")) from None
        if parallel_around(run, path):
            return {"ctx": patch}
        problem = self.patch_ctx(patch, Event("ctx.patched", {}, number, path))
        if problem:
            raise MergeError(problem)
        return {}

    def _with_failures(self, counts: dict[str, int], loop: LoopRun) -> dict[str, Any]:
        """Add the first failures of a loop, in the order of their indices, and a reference to the rest (S54)."""
        if not loop.failures:
            return counts
        found = [{"index": index, "error": error} for index, error in sorted(loop.failures.items())]
        first, rest = found[:LOOP_FAILURES_LISTED], found[LOOP_FAILURES_LISTED:]
        made: dict[str, Any] = {**counts, "failures": self.offload.shrink(first)}
        return made | {"more_failures": self.offload.store(rest)} if rest else made

    def _fail_loop(self, number: int, path: str, error: dict[str, Any], **more: Any) -> None:
        if path:
            self.journal.emit("loop.iteration.failed", {"error": error} | more, number, path)
        else:
            self.journal.emit("step.failed", {"error": error} | _loop_so_far(self._state.runs[number]), number)

    def _fail_run(self, number: int, run: Run) -> None:
        """Fail a loop step: later iterations that have not started are cancelled, all others are waited for (S27).

        No effect begins before its `task.started` is accepted, so cancelling an iteration that a worker has is safe.
        """
        for path in self._cancellable(run):
            error = failure("cancelled", "another iteration failed before this one started")
            self.journal.emit("loop.iteration.failed", {"error": error, "cancelled": True}, number, path)
        if run.failure is None or not self._is_idle(number, run):
            return
        iteration, error = run.failure
        data = {"error": error, "failed_iteration": iteration} | _loop_so_far(run)
        for path in _open_loops(run):
            stopped = failure("cancelled", f"iteration {iteration} failed before this one ended")
            self.journal.emit("loop.iteration.failed", {"error": stopped, "cancelled": True}, number, path)
        self.journal.emit("step.failed", data, number)

    def _time_out(self, number: int) -> None:
        run = self._state.runs[number]
        self._stop(number, self._net.steps[run.step].limits.error(self._state, run))

    def _stop(self, number: int, error: dict[str, Any]) -> None:
        """Fail a run from outside: what has begun in it ends first, each with an event of its own (S61)."""
        run = self._state.runs[number]
        ended: dict[str, Any] = {"error": error, "cancelled": True}
        for path, thread in list(run.threads.items()):
            if not thread.reported.has_ended:
                self._stop_task(number, path, thread.reported, error)
            if thread.started:
                self.journal.emit("loop.iteration.failed", ended, number, path)
        for path in _open_loops(run):
            self.journal.emit("loop.iteration.failed", ended, number, path)
        self.journal.emit("step.failed", ended | _loop_so_far(run), number)

    def _stop_task(self, number: int, path: str, attempt: Attempt, error: dict[str, Any]) -> None:
        """Record the outcome of a tool that is stopped before it has one (formal §5)."""
        meta = attempt.meta(self.journal.now)
        outcome = {"status": "error", "result": None, "error": error, "meta": meta}
        data = {"outcome": outcome, "do": "fail", "pc": FAILED, "cancelled": True}
        self.journal.record(Event("task.done", data, number, path, attempt.task, attempt.label, attempt.number))

    # ---- the end

    def _come_to_rest(self) -> bool:
        """Do what is left when nothing moves; return whether something moves again."""
        state = self._state
        if state.runs:
            return False
        for number, token in list(state.tokens.items()):
            self._reject(number, self._net.steps[token.step], reason="at_rest", **self._never_admitted(number, token))
        if self._net.final_step and not state.final_given:
            self.enqueue(self._net.final_step, self.offload.fit(summary(state), ARGS_BYTES_MAX), final=True)
            return True
        self._finish()
        return False

    def _never_admitted(self, number: int, token: Token) -> dict[str, Any]:
        """Return the error of an entry token that is never let in (S59); nothing for any other."""
        if number != FIRST_TOKEN or token.final:
            return {}
        gate = self._net.locate(f"{token.step}/admit")
        message = f"the entry step `{token.step}` never admits its token; see the rules of `admit`"
        return {"error": failure("admission", f"{gate}: {message}" if gate else message, step=token.step)}

    def _finish(self) -> None:
        status = final_status(self._state)
        self.journal.emit("workflow.finished", {"status": status})
        self.journal.emit("playbook.processed", {"status": status, "failures": self._state.failure_count})


def _open_loops(run: Run) -> list[str]:
    """Return the iterations that contain a loop and have not ended, inner ones first (S61)."""
    paths = [path for path in run.loops if path and split(path)[1] not in run.loops[split(path)[0]].failures]
    return sorted(paths, key=lambda path: (-level_of(path), indices(path)))


def _counts(loop: LoopRun) -> dict[str, int]:
    return {"total": loop.ok + loop.failed, "ok": loop.ok, "failed": loop.failed}


def _loop_so_far(run: Run) -> dict[str, Any]:
    """Return `loop` of a run that fails: counts over its open loops, each of which holds what has ended in it."""
    if not run.loops:
        return {}
    ok = sum(loop.ok for loop in run.loops.values())
    failed = sum(loop.failed for loop in run.loops.values())
    outermost = run.loops.get("")
    # How many pipelines a nested loop would have run is not known before its inner collections are.
    total = outermost.total if outermost and outermost.leaf else ok + failed
    return {"loop": {"total": total, "ok": ok, "failed": failed}}
