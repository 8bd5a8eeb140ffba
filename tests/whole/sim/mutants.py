"""Deliberate bugs, one at a time: where each is planted, and what catches it.

A mutant replaces a piece of source text. It is planted in a forked process, by giving functions that are already
imported the code of the changed module; so everybody who imported them runs the bug.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, NamedTuple


class Mutant(NamedTuple):
    """One bug."""

    name: str
    module: str
    old: str
    new: str
    caught_by: str
    """`seed N`: the simulator; `case NAME`: the conformance case of the stage `run`."""


FOLD, DECIDE, SETTLING = "noetlvm.machine.fold", "noetlvm.machine.decide", "noetlvm.machine.settling"
ROUTING, LOOPS, FRAME = "noetlvm.machine.routing", "noetlvm.machine.loops", "noetlvm.machine.frame"
INSTRUCTIONS, SERVER, DRIVER = "noetlvm.machine.instructions", "noetlvm.server.server", "noetlvm.service.driver"
HUB, REMOTE, API = "noetlvm.service.hub", "noetlvm.service.remote_worker", "noetlvm.service.worker_api"
MEMORY, PIPELINE, ACTIVE = "noetlvm.store.memory", "noetlvm.worker.pipeline_run", "noetlvm.server.active"
LIMITS = "noetlvm.machine.time_limits"

# fmt: off
MUTANTS = [
    Mutant("fence_lost", DECIDE, "if thread is None or thread.lease != given.lease:", "if thread is None:", "case lease-late-report"),
    Mutant("repeated_report_counts", DECIDE, "            if is_news(event, thread):", "            if True:", "seed 5"),
    Mutant("double_route", FOLD, "    del state.ended[event.run]\n", "", "seed 0"),
    Mutant("run_stays_open_after_routing", FOLD, "run = state.runs.pop(event.run)", "run = state.runs[event.run]", "seed 0"),
    Mutant("unsorted_merge", LOOPS, "for index in sorted(patches):", "for index in sorted(patches, reverse=True):", "case loop-parallel-ctx-merged"),
    Mutant("one_retry_too_many", INSTRUCTIONS, "if frame.attempt >= attempts:", "if frame.attempt > attempts:", "case retry-attempts-omitted"),
    Mutant("gate_ignored", SETTLING, "        if is_admitted:", "        if True:", "seed 0"),
    Mutant("gate_never_tested_again", FOLD, "state.untested = dict.fromkeys(state.tokens)", "pass", "case denial-is-recorded-once"),
    Mutant("denied_token_dropped", SETTLING, "elif step.drops_denied:", "elif True:", "seed 0"),
    Mutant("lease_does_not_grow", DECIDE, "{\"lease\": given.lease + 1}", "{\"lease\": given.lease}", "case lease-late-report"),
    Mutant("leaving_worker_keeps_its_lease", FOLD, "    thread.lease += 1\n", "", "case child-of-itself"),
    Mutant("one_iteration_too_many", FOLD, "loop.next - loop.ended < loop.width", "loop.next - loop.ended <= loop.width", "seed 0"),
    Mutant("result_of_another_iteration", FOLD, "loop.results[index] = data.get(\"result\")", "loop.results[-1 - index] = data.get(\"result\")", "seed 0"),
    Mutant("failed_iteration_counts_as_ok", FOLD, "    loop.failed += 1\n", "    loop.ok += 1\n", "seed 0"),
    Mutant("writes_of_a_failed_iteration_count", FOLD, "loop.patches.pop(index, None)  # what", "None  # what", "case loop-writes-of-failed-iterations"),
    Mutant("loop_never_complete", FOLD, "if loop.ended == loop.total:", "if loop.ended > loop.total:", "seed 0"),
    Mutant("empty_loop_hangs", FOLD, "    if not loop.total:\n", "    if False:\n", "seed 11"),
    Mutant("best_effort_ignored", FOLD, "is_fatal = not loop.tolerant or", "is_fatal = True or", "case log-of-a-whole-run"),
    Mutant("fail_fast_ignored", FOLD, "is_fatal = not loop.tolerant or", "is_fatal = False and", "case loop-fail-fast"),
    Mutant("ctx_patch_lost", FOLD, "state.view = View({**before.ctx, **patch}, before.results)", "state.view = View({**patch, **before.ctx}, before.results)", "seed 39"),
    Mutant("thread_does_not_see_its_write", FOLD, "        _overlay(thread, before, state.view, patch)\n", "        pass\n", "case child-by-path-and-version"),
    Mutant("failure_counts_though_handled", FOLD, "if event.data.get(\"handled\"):\n        return", "if False:\n        return", "seed 9"),
    Mutant("failure_does_not_count", FOLD, "    state.failure_count += 1\n", "", "seed 0"),
    Mutant("cancel_leaves_runs", FOLD, "for pending in (state.tokens, state.runs, ", "for pending in (state.tokens, ", "seed 6"),
    Mutant("pause_does_not_hold", FOLD, "    state.paused = True\n", "    state.paused = False\n", "seed 19"),
    Mutant("resume_does_nothing", FOLD, "def _resumed(state: State, _event: Event) -> None:\n    state.paused = False", "def _resumed(state: State, _event: Event) -> None:\n    state.paused = True", "seed 4"),
    Mutant("child_answer_lost", FOLD, "    thread.answer = event.data[\"outcome\"]\n", "    thread.answer = None\n", "seed 0"),
    Mutant("child_forgotten", FOLD, "        state.children[event.run, event.iteration] = None\n", "", "seed 0"),
    Mutant("iter_writes_lost", FOLD, "frame.iter = {**frame.iter, **data[\"iter\"]}", "frame.iter = frame.iter", "case lease-lost-keeps-iter"),
    Mutant("patch_of_an_iteration_lost", FOLD, "        _store_patch(run, event.iteration, data[\"ctx\"])\n        thread.view", "        thread.view", "case loop-parallel-ctx-agreed"),
    Mutant("inclusive_is_exclusive", ROUTING, "if not self.step.inclusive:", "if True:", "seed 0"),
    Mutant("exclusive_is_inclusive", ROUTING, "if not self.step.inclusive:", "if False:", "seed 4"),
    Mutant("guard_negated", ROUTING, "return bool(guard(self.names, Fuel()))", "return not guard(self.names, Fuel())", "seed 0"),
    Mutant("args_of_the_arc_lost", ROUTING, "args = {**self.args, **self._written(arc.args)} if arc.args else self.args", "args = self.args", "seed 0"),
    Mutant("args_of_the_step_lost", ROUTING, "args = {**self.args, **self._written(arc.args)} if arc.args else self.args", "args = self._written(arc.args) if arc.args else {}", "seed 1"),
    Mutant("success_though_failed", ROUTING, "return \"failed\" if state.failure_count else \"success\"", "return \"success\"", "seed 0"),
    Mutant("final_step_skipped", SETTLING, "if self._net.final_step and not state.final_given:", "if False:", "case final-step-leads-nowhere"),
    Mutant("final_step_for_ever", SETTLING, "if self._net.final_step and not state.final_given:", "if self._net.final_step:", "seed 0"),
    Mutant("finished_too_early", SETTLING, "        if state.runs:\n            return False\n", "", "seed 0"),
    Mutant("waiting_tokens_lost", SETTLING, "for number, token in list(state.tokens.items()):", "for number, token in ():", "seed 0"),
    Mutant("timer_ignored", DECIDE, "for run in overdue(self._net, state, now):", "for run in ():", "seed 26"),
    Mutant("timer_forgotten_on_resume", DECIDE, "return [*found, *_wake(net, state)]", "return found", "case time-timeout-while-paused"),
    Mutant("resume_offers_nothing", DECIDE, "return [*withdrawn, *offers(self._net, state)]", "return withdrawn", "case control-pause-and-resume"),
    Mutant("withdrawn_work_stays", DECIDE, "return [*withdrawn, *offers(self._net, state)]", "return offers(self._net, state)", "seed 1496"),
    Mutant("no_wait_before_a_retry", FRAME, "return Wait(wait) if wait else None", "return None", "seed 13"),
    Mutant("long_wait_holds_the_worker", FRAME, "is_long = wait > WAIT_HELD_SECONDS", "is_long = False", "case delay-between-rounds"),
    Mutant("attempt_not_counted", FRAME, "self._begin_attempt(self.attempt + 1)", "self._begin_attempt(self.attempt)", "seed 0"),
    Mutant("conflict_taken_for_success", SERVER, "            if id in conflicts:", "            if False:", "seed 6"),
    Mutant("parent_not_informed", SERVER, "        if active.row.parent and active.events:", "        if False:", "seed 0"),
    Mutant("second_writer_wins", MEMORY, "!= append.known_seq or (stored and not append.known_seq):", "> append.known_seq + 1_000:", "seed 4"),
    Mutant("claimed_twice", MEMORY, "if not command.worker and command.pool in wanted", "if command.pool in wanted", "seed 0"),
    Mutant("start_key_ignored", MEMORY, "if append.start_key and self._start_keys", "if False and self._start_keys", "seed 0"),
    Mutant("doubled_command_runs_twice", REMOTE, "if known is not None and known.work.lease >= work.lease:", "if False:", "seed 0"),
]
# fmt: on
"""Bugs, and who catches each."""


def plant(mutant: Mutant) -> None:
    """Give this process the bug. Raises ValueError if its text is not in the source exactly once."""
    module = import_module(mutant.module)
    path = module.__file__ or ""
    source = Path(path).read_text(encoding="utf-8")
    if source.count(mutant.old) != 1:
        raise ValueError(f"{mutant.name}: {mutant.module} has {source.count(mutant.old)} times: {mutant.old}")
    changed = ModuleType(module.__name__)
    changed.__dict__["__file__"] = path
    exec(compile(source.replace(mutant.old, mutant.new), path, "exec"), changed.__dict__)
    _take_code(vars(module), vars(changed))


def _take_code(into: Any, source: dict[str, Any]) -> None:
    for name, made in list(source.items()):
        known = into.get(name)
        if isinstance(made, type) and isinstance(known, type):
            if known.__module__ == made.__module__:
                _take_code(vars(known), dict(vars(made)))
            continue
        for old, new in _functions(known, made):
            if old.__code__.co_freevars == new.__code__.co_freevars:
                old.__code__ = new.__code__
                old.__defaults__ = new.__defaults__


def _functions(known: Any, made: Any) -> list[tuple[FunctionType, FunctionType]]:
    if isinstance(known, property) and isinstance(made, property):
        known, made = known.fget, made.fget
    if isinstance(known, (classmethod, staticmethod)) and isinstance(made, (classmethod, staticmethod)):
        known, made = known.__func__, made.__func__
    is_pair = isinstance(known, FunctionType) and isinstance(made, FunctionType)
    return [(known, made)] if is_pair and known.__module__ == made.__module__ else []
