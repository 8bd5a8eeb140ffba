"""What happens by itself once something has happened: tokens enter, loops begin and end, arcs fire, all comes to rest.

It goes by the lists of what waits in the state, so a call costs what there is to do and no more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from noetlvm.limits import ARGS_BYTES_MAX
from noetlvm.machine.admission import CannotJudge, Verdict, judge
from noetlvm.machine.completion import final_status, summary
from noetlvm.machine.effects import failure
from noetlvm.machine.fold import parallel_around
from noetlvm.machine.journal import Journal
from noetlvm.machine.loaded import LoadedPlaybook, LoadedStep
from noetlvm.machine.loop_results import LoopResults
from noetlvm.machine.loops import Elements, NoCollection, collection, level_of, stored_items, visible_ctx
from noetlvm.machine.payload import CtxSize, Offload, TooLarge
from noetlvm.machine.reducers import CannotMerge, merge_patches
from noetlvm.machine.routing import Routing
from noetlvm.machine.scope import server_names
from noetlvm.machine.state import Loop, Run, Token


class Settling:
    """Lets everything happen that needs no input."""

    def __init__(self, net: LoadedPlaybook, journal: Journal, offload: Offload) -> None:
        self.net = net
        self.elements = Elements(offload)
        self.results = LoopResults(offload)
        self._places = {name: place for place, name in enumerate(net.steps, 1)}
        self._journal = journal
        self._state = journal.state
        self._offload = offload
        self._denied: dict[int, int] = {}
        """Tokens that were not let in, and how much had changed by then."""
        self._ctx_size: CtxSize | None = None
        """Of the state's `ctx`, which is written here only; None before the first write."""

    def settle(self) -> None:
        """Go on until nothing moves."""
        state = self._state
        while state.status == "running" and not state.paused and (self._move() or self._come_to_rest()):
            pass
        if state.status == "cancelling":
            self._finish()

    def enqueue(self, step: str, args: dict[str, Any], **more: Any) -> None:
        """Put a token in front of a step that no arc led to."""
        data = {"token": self._state.last_token + 1, "step": step, "args": args}
        self._journal.emit("token.enqueued", data | more)

    def patch_ctx(self, patch: dict[str, Any]) -> dict[str, Any] | None:
        """Write to `ctx`; return the error if that would make it too large."""
        if not patch:
            return None
        if self._ctx_size is None:
            self._ctx_size = CtxSize(self._state.ctx)
        try:
            self._ctx_size.write(patch)
        except TooLarge as error:
            return failure("limit", f"`ctx` would be too large: {error}", keys=sorted(patch))
        self._journal.emit("ctx.patched", {"patch": patch})
        return None

    def _move(self) -> bool:
        """Do what can be done now; tell whether anything was."""
        state = self._state
        before = state.seq
        # Mostly one of these waits and the others are empty: to ask first costs a tenth of copying nothing.
        if state.ended:
            for run in list(state.ended):
                self._route(run)
        if state.unstarted:
            for run, iteration in list(state.unstarted):
                self._start_loop(run, iteration)
        if state.complete:
            for run, iteration in list(state.complete):
                self._end_loop(run, iteration)
        if state.tokens:
            for number, token in list(state.tokens.items()):
                self._admit(number, token)
        return state.seq > before

    def _names(self, args: dict[str, Any], ctx: dict[str, Any], **more: Any) -> dict[str, Any]:
        """Return what a template sees here."""
        state = self._state
        return server_names(
            self._offload,
            results=state.results,
            workload=state.workload,
            ctx=ctx,
            args=args,
            execution_id=state.execution_id,
            **more,
        )

    # ---- tokens

    def _admit(self, number: int, token: Token) -> None:
        if self._denied.get(number) == self._journal.changes:
            return
        step = self.net.steps[token.step]
        if step.admit is None:
            self._enter(number, step)
            return
        try:
            names = self._names(token.args, self._state.ctx, event=token.event)
            verdict = judge(step.admit, step.drops_denied, names)
        except CannotJudge as problem:
            self._reject(number, step, reason="template", error=problem.error)
            return
        _VERDICTS[verdict](self, number, step)

    def _enter(self, number: int, step: LoadedStep) -> None:
        run = self._state.last_run + 1
        self._denied.pop(number, None)
        form = "loop" if step.loops else "" if step.pipeline else "routing"
        data = {"token": number, "step": step.name} | ({"form": form} if form else {})
        self._journal.emit("step.scheduled", data, run)
        if self._state.since + step.limits.deadline_s <= self._journal.now:
            self.time_out(run)
        elif form == "routing":
            self._journal.emit("step.done", {"result": None}, run)

    def _wait(self, number: int, _step: LoadedStep) -> None:
        self._denied[number] = self._journal.changes

    def _drop(self, number: int, step: LoadedStep) -> None:
        self._reject(number, step, reason="denied")

    def _reject(self, number: int, step: LoadedStep, **why: Any) -> None:
        self._denied.pop(number, None)
        self._journal.emit("token.rejected", {"token": number, "step": step.name} | why)

    def _route(self, number: int) -> None:
        run = self._state.runs[number]
        step = self.net.steps[run.step]
        if run.final or not step.arcs:
            self._journal.emit("next.evaluated", {"arcs": [], "tokens": []} | self._place(run), number)
            return
        # Making the names costs more than all the rest, and most arcs have no template.
        reads = any(arc.guard or arc.args for arc in step.arcs)
        names = self._names(run.args, self._state.ctx, event=run.boundary) if reads else {}
        failed = run.boundary is not None and run.boundary["status"] == "error"
        routing = Routing(self.net, step, names, run.args, failed, self._offload.fit)
        data = routing.route(self._state.last_token)
        self._journal.emit("next.evaluated", data if data["tokens"] else data | self._place(run), number)

    def _place(self, run: Run) -> dict[str, int]:
        """Return where the step of a run that leads nowhere stands in the workflow, to choose one result of several."""
        return {} if run.final else {"place": self._places[run.step]}

    # ---- loops

    def _start_loop(self, number: int, path: str) -> None:
        run = self._state.runs[number]
        if run.failure is not None:
            return  # it ends when nothing of it runs any more
        step, level = self.net.steps[run.step], level_of(path)
        names = self._names(
            run.args, visible_ctx(self._state, run, path), iter=self.elements.iter(number, run, step, path)
        )
        try:
            items = collection(step, level, names)
            header = self._header(step, level, items)
        except NoCollection as problem:
            self._fail_loop(number, path, problem.error)
            return
        self._journal.emit("loop.started", header, number, path)
        if step.pipeline is None:
            nothing = self._offload.shrink([None] * len(items))
            counts = {"total": len(items), "ok": len(items), "failed": 0}
            self._journal.emit("loop.done", {"result": nothing, "loop": counts}, number)

    def _header(self, step: LoadedStep, level: int, items: Any) -> dict[str, Any]:
        loop = step.loops[level]
        return {
            "items": stored_items(items, step, self._offload),
            "total": len(items),
            "width": loop.width if step.pipeline else 0,
            "parallel": loop.parallel,
            "leaf": level + 1 == len(step.loops),
            "best_effort": step.best_effort,
        }

    def _end_loop(self, number: int, path: str) -> None:
        run = self._state.runs.get(number)
        if run is None or (number, path) not in self._state.complete:
            return  # what was done before has settled it
        if run.failure is not None:
            self._fail_run(number, run)
            return
        self.elements.forget(number, path)
        loop = run.loops[path]
        data: dict[str, Any] = {"result": self._offload.shrink(self.results.whole(loop))}
        self.results.forget(number, path)
        try:
            data |= self._write(run, path, loop)
        except CannotMerge as problem:
            self._fail_loop(number, path, problem.error, fatal=True)
            return
        if path:
            self._journal.emit("loop.iteration.done", self.results.take(number, run, path, data), number, path)
        else:
            self._journal.emit("loop.done", data | {"loop": _counts(loop)}, number)

    def _write(self, run: Run, path: str, loop: Loop) -> dict[str, Any]:
        """Write what a parallel loop's iterations wrote to `ctx`, or return it for the parallel iteration around it.

        What an iteration wrote before it failed counts too, as it does in a sequential loop.
        """
        patches = self.results.patches(loop)
        if not patches:
            return {}
        reducers = self.net.steps[run.step].loops[level_of(path)].reducers
        merged = merge_patches(patches, reducers, self._offload.read)
        try:
            patch = self._offload.fit(merged, ARGS_BYTES_MAX)
        except TooLarge as error:
            raise CannotMerge(failure("limit", f"the loop writes too much to `ctx`: {error}")) from None
        if parallel_around(run, path):
            return {"ctx": patch}
        problem = self.patch_ctx(patch)
        if problem:
            raise CannotMerge(problem)
        return {}

    def _fail_loop(self, number: int, path: str, error: dict[str, Any], **more: Any) -> None:
        if path:
            self._journal.emit("loop.iteration.failed", {"error": error} | more, number, path)
        else:
            self._journal.emit("step.failed", {"error": error}, number)

    def _fail_run(self, number: int, run: Run) -> None:
        """Fail a loop step: what nobody has taken yet is cancelled, what runs is waited for (S27)."""
        for path in [path for path in run.threads if (number, path) in self._state.opened]:
            if not run.threads[path].started:
                error = failure("cancelled", "another iteration failed before this one began")
                self._journal.emit("loop.iteration.failed", {"error": error, "cancelled": True}, number, path)
        if run.threads or run.failure is None:
            return
        iteration, error = run.failure
        self.elements.forget(number, "")
        self.results.forget(number, "")
        data = {"error": error, "failed_iteration": iteration, "loop": _counts_so_far(run)}
        self._journal.emit("step.failed", data, number)

    def time_out(self, number: int) -> None:
        """Fail a run that takes too long: what is open of it is cancelled, and what is heard of that is too late."""
        run = self._state.runs[number]
        limits = self.net.steps[run.step].limits
        data: dict[str, Any] = {
            "error": limits.error(self._state, run),
            "cancelled": [path for path in run.threads if path],
        }
        if run.loops:
            data["loop"] = _counts_so_far(run)
        self.elements.forget(number, "")
        self._journal.emit("step.failed", data, number)

    # ---- the end

    def _come_to_rest(self) -> bool:
        """Do what is left when nothing moves; tell whether something moves again."""
        state = self._state
        if state.runs:
            return False
        for number, token in list(state.tokens.items()):
            self._reject(number, self.net.steps[token.step], reason="at_rest")
        if self.net.final_step and not state.final_given:
            self.enqueue(self.net.final_step, self._offload.fit(summary(state), ARGS_BYTES_MAX), final=True)
            return True
        self._finish()
        return False

    def _finish(self) -> None:
        status = final_status(self._state)
        self._journal.emit("workflow.finished", {"status": status})
        self._journal.emit("playbook.processed", {"status": status, "failures": self._state.failure_count})


def _counts(loop: Loop) -> dict[str, int]:
    return {"total": loop.ok + loop.failed, "ok": loop.ok, "failed": loop.failed}


def _counts_so_far(run: Run) -> dict[str, int]:
    """Count over the loops that are still open: each holds what has ended in it."""
    ok = sum(loop.ok for loop in run.loops.values())
    failed = sum(loop.failed for loop in run.loops.values())
    return {"total": ok + failed, "ok": ok, "failed": failed}


_VERDICTS: dict[Verdict, Callable[[Settling, int, LoadedStep], None]] = {
    Verdict.ENTER: Settling._enter,
    Verdict.WAIT: Settling._wait,
    Verdict.DROP: Settling._drop,
}
