"""Deliberate bugs, one at a time: where each is planted, and what catches it.

A mutant replaces a piece of source text. It is planted in a forked process.
"""

from __future__ import annotations

from importlib import import_module
from typing import NamedTuple

from tests.whole.mutation.planting import plant_source, source_of


class Mutant(NamedTuple):
    """One bug."""

    name: str
    module: str
    old: str
    new: str
    caught_by: str
    """`case NAME`: the conformance case of the stage `run`; `test MODULE NAME`: that test."""


FOLD, DECIDE, SETTLING = "noetlvm.machine.fold", "noetlvm.machine.decide", "noetlvm.machine.settling"
ROUTING, LOOPS, FRAME = "noetlvm.machine.routing", "noetlvm.machine.loops", "noetlvm.machine.frame"
INSTRUCTIONS, ROUNDS, DRIVER = "noetlvm.machine.instructions", "noetlvm.rounds.rounds", "noetlvm.service.driver"
HUB, COMMANDS = "noetlvm.service.hub", "noetlvm.worker.commands"
MEMORY, PIPELINE, ACTIVE = "noetlvm.store.memory", "noetlvm.worker.pipeline_run", "noetlvm.rounds.active"
INTAKE, ADMISSION = "noetlvm.rounds.intake", "noetlvm.rounds.admission"
RECOVERY, STATE, RETRY = "noetlvm.rounds.recovery", "noetlvm.machine.state", "noetlvm.machine.retry"
REQUESTS, PLACEMENT = "test tests.noetlvm.rounds.test_requests", "test tests.noetlvm.service.test_placement"
STORE = "test tests.noetlvm.store.test_store_contract"
RETRIES = "test tests.noetlvm.engine.test_retry"
VIRTUAL, CONTROL = "test tests.noetlvm.service.test_virtual_time", "test tests.noetlvm.machine.control"

# fmt: off
MUTANTS = [
    Mutant("fence_lost", DECIDE, "if thread is None or thread.lease != given.lease:", "if thread is None:", "case lease-late-report"),
    Mutant("repeated_report_counts", DECIDE, "            if is_news(event, thread):", "            if True:", f"{CONTROL}.test_reports test_a_repeated_part_of_a_report_is_left_out"),
    Mutant("double_route", FOLD, "    del state.ended[event.run]\n", "", "case admit-omitted-allows"),
    Mutant("run_stays_open_after_routing", FOLD, "run = state.runs.pop(event.run)", "run = state.runs[event.run]", "case admit-omitted-allows"),
    Mutant("unsorted_merge", LOOPS, "for index in sorted(patches):", "for index in sorted(patches, reverse=True):", "case loop-parallel-ctx-merged"),
    Mutant("one_retry_too_many", INSTRUCTIONS, "if frame.attempt >= self._attempts(frame.names):", "if frame.attempt > self._attempts(frame.names):", "case retry-attempts-omitted"),
    Mutant("gate_ignored", SETTLING, "        if is_admitted:", "        if True:", "case admit-gate-waits"),
    Mutant("gate_never_tested_again", FOLD, "state.untested = dict.fromkeys(state.tokens)", "pass", "case denial-is-recorded-once"),
    Mutant("denied_token_dropped", SETTLING, "elif step.drops_denied:", "elif True:", "case admit-gate-waits"),
    Mutant("lease_does_not_grow", DECIDE, "{\"lease\": latest + 1}", "{\"lease\": latest}", "case lease-late-report"),
    Mutant("lease_of_a_unit_shrinks", DECIDE, "{\"lease\": latest + 1}", "{\"lease\": given.lease + 1}", f"{CONTROL}.test_children test_a_lost_lease_of_a_unit_takes_no_lease_back_that_a_waiting_thread_has_already"),
    Mutant("assignment_of_a_failed_write_stays", HUB, "            self._drop(part, work.lease)  # a write that failed may have assigned it\n", "", f"{PLACEMENT} test_an_assignment_of_a_write_that_failed_is_dropped_when_the_work_is_offered_again"),
    Mutant("older_lease_goes_on", COMMANDS, "            known.stop(now=True)\n", "            pass\n", f"{VIRTUAL} test_a_worker_stops_a_pipeline_whose_command_comes_again_under_a_new_lease"),
    Mutant("leaving_worker_keeps_its_lease", FOLD, "    thread.lease += 1\n", "", "case child-of-itself"),
    Mutant("one_iteration_too_many", FOLD, "loop.next - loop.ended < loop.width", "loop.next - loop.ended <= loop.width", "case loop-fail-fast"),
    Mutant("result_of_another_iteration", FOLD, "loop.results[index] = data.get(\"result\")", "loop.results[-1 - index] = data.get(\"result\")", "case iter-names"),
    Mutant("failed_iteration_counts_as_ok", FOLD, "    loop.failed += 1\n", "    loop.ok += 1\n", "case loop-best-effort"),
    Mutant("writes_of_a_failed_iteration_count", FOLD, "loop.patches.pop(index, None)  # what", "None  # what", "case loop-writes-of-failed-iterations"),
    Mutant("loop_never_complete", FOLD, "if loop.ended == loop.total and", "if loop.ended > loop.total and", "case iter-names"),
    Mutant("empty_loop_hangs", FOLD, "    if not loop.total:\n", "    if False:\n", "case loop-of-nothing"),
    Mutant("best_effort_ignored", FOLD, "is_fatal = not loop.tolerant or", "is_fatal = True or", "case log-of-a-whole-run"),
    Mutant("fail_fast_ignored", FOLD, "is_fatal = not loop.tolerant or", "is_fatal = False and", "case loop-fail-fast"),
    Mutant("ctx_patch_lost", FOLD, "    ctx = {**before.ctx, **patch}\n", "    ctx = {**patch, **before.ctx}\n", "case patches-all-at-once"),
    Mutant("thread_does_not_see_its_write", FOLD, "        _overlay(thread, before, state.view, patch)\n", "        pass\n", "case child-by-path-and-version"),
    Mutant("failure_counts_though_handled", FOLD, "if event.data.get(\"handled\"):\n        return", "if False:\n        return", "case route-failure-handled"),
    Mutant("failure_does_not_count", FOLD, "    state.failure_count += 1\n", "", "case admit-entry-never"),
    Mutant("cancel_leaves_runs", SETTLING, "            if not state.runs:\n                self._finish()", "            if True:\n                self._finish()", "case cancelled-work-ends"),
    Mutant("stopped_task_has_no_outcome", SETTLING, "            if not thread.reported.has_ended:\n", "            if False:\n", "case cancelled-work-ends"),
    Mutant("stopped_iteration_has_no_end", SETTLING, "            if thread.started:\n", "            if False:\n", "case cancelled-work-ends"),
    Mutant("stopped_outer_iteration_has_no_end", SETTLING, "        for path in _open_loops(run):\n            self.journal.emit(\"loop.iteration.failed\", ended,", "        for path in ():\n            self.journal.emit(\"loop.iteration.failed\", ended,", "case cancelled-work-ends"),
    Mutant("cancelled_run_is_routed", FOLD, "    if state.status == \"cancelling\":\n", "    if False:\n", "case cancelled-work-ends"),
    Mutant("cancelled_execution_accepts_reports", STATE, "if found and self.status != \"cancelling\" else None", "if found else None", f"{CONTROL}.test_stopped_work test_the_decision_to_cancel_much_is_cut_and_nothing_is_accepted_in_between"),
    Mutant("cut_decision_has_no_timer", DECIDE, "self.journal.now + TAKE_OVER_SECONDS if self.is_cut else inf", "inf", f"{CONTROL}.test_stopped_work test_the_decision_to_cancel_much_is_cut_and_nothing_is_accepted_in_between"),
    Mutant("child_of_a_stopped_task_goes_on", FOLD, "    if \"cancelled\" in data:  # it may", "    if False:  # it may", f"{CONTROL}.test_children test_cancelling_the_parent_cancels_the_child"),
    Mutant("pause_does_not_hold", FOLD, "    state.paused = True\n", "    state.paused = False\n", "case control-pause-holds"),
    Mutant("resume_does_nothing", FOLD, "def _resumed(state: State, _event: Event) -> None:\n    state.paused = False", "def _resumed(state: State, _event: Event) -> None:\n    state.paused = True", "case control-pause-and-resume"),
    Mutant("child_answer_lost", FOLD, "    thread.answer = event.data[\"outcome\"] | ", "    thread.answer = None and ", "case child-by-path-and-version"),
    Mutant("child_forgotten", FOLD, "        state.children[event.run, event.iteration] = None\n", "", f"{CONTROL}.test_children test_children_are_cancelled_in_the_order_of_their_iterations"),
    Mutant("iter_writes_lost", FOLD, "frame.iter = {**frame.iter, **data[\"iter\"]}", "frame.iter = frame.iter", "case lease-lost-keeps-iter"),
    Mutant("patch_of_an_iteration_lost", FOLD, "        _store_patch(run, event.iteration, data[\"ctx\"])\n        thread.view", "        thread.view", "case loop-parallel-ctx-agreed"),
    Mutant("inclusive_is_exclusive", ROUTING, "if not self.step.inclusive:", "if True:", "case completion-once"),
    Mutant("exclusive_is_inclusive", ROUTING, "if not self.step.inclusive:", "if False:", "case route-exclusive"),
    Mutant("guard_negated", ROUTING, "return bool(guard(self.guarded, fuel))", "return not guard(self.guarded, fuel)", "case guard-truth"),
    Mutant("args_of_the_arc_lost", ROUTING, "args = {**self.args, **self._written(arc.args)} if arc.args else self.args", "args = self.args", "case execution-id-everywhere"),
    Mutant("args_of_the_step_lost", ROUTING, "args = {**self.args, **self._written(arc.args)} if arc.args else self.args", "args = self._written(arc.args) if arc.args else {}", "case token-args"),
    Mutant("success_though_failed", ROUTING, "return \"failed\" if state.failure_count else \"success\"", "return \"success\"", "case admit-entry-never"),
    Mutant("final_step_skipped", SETTLING, "if self._net.final_step and not state.final_given:", "if False:", "case final-step-leads-nowhere"),
    Mutant("final_step_for_ever", SETTLING, "if self._net.final_step and not state.final_given:", "if self._net.final_step:", "case final-step-leads-nowhere"),
    Mutant("finished_too_early", SETTLING, "        if state.runs:\n            return False\n", "", "case admit-gate-waits"),
    Mutant("waiting_tokens_lost", SETTLING, "for number, token in list(state.tokens.items()):", "for number, token in ():", "case admit-never-is-rejected"),
    Mutant("timer_ignored", DECIDE, "if self.time_out(overdue(self._net, state, now)):", "if self.time_out([]):", "case time-deadline-ends-a-run"),
    Mutant("timer_forgotten", DECIDE, "return [*withdrawn, *needed, *_wake(self._net, state, latest)]", "return [*withdrawn, *needed]", "case time-timeout-while-paused"),
    Mutant("resume_offers_nothing", DECIDE, "            needed = offers(self._net, state)\n", "            needed = []\n", "case control-pause-and-resume"),
    Mutant("withdrawn_work_stays", DECIDE, "return [*withdrawn, *needed, *_wake(", "return [*needed, *_wake(", "test tests.noetlvm.machine.test_decide test_a_resumed_execution_stops_the_work_that_a_failure_during_the_pause_made_obsolete"),
    Mutant("no_wait_before_a_retry", FRAME, "return Wait(wait) if wait else None", "return None", "case retry-backoff-linear"),
    Mutant("long_wait_holds_the_worker", FRAME, "is_long = wait > WAIT_HELD_SECONDS", "is_long = False", "case delay-between-rounds"),
    Mutant("attempt_not_counted", FRAME, "self._begin_attempt(self.attempt + 1)", "self._begin_attempt(self.attempt)", "case jump-counts-anew"),
    Mutant("conflict_taken_for_success", ROUNDS, "            if active.execution_id in lost:", "            if False:", f"{REQUESTS} test_inputs_of_an_execution_that_lost_a_race_are_decided_even_if_it_cannot_be_read_again_at_once"),
    Mutant("parent_not_informed", ROUNDS, "        if active.state.is_over and not was_over and active.row.parent:", "        if False:", "case child-by-path-and-version"),
    Mutant("second_writer_wins", MEMORY, "!= append.known_seq or (stored and not append.known_seq):", "> append.known_seq + 1_000:", f"{STORE} test_a_conflict_concerns_one_execution_and_neither_its_neighbours_nor_later_writes"),
    Mutant("claimed_twice", MEMORY, "if not command.worker and command.pool in wanted", "if command.pool in wanted", f"{PLACEMENT} test_what_runs_is_not_handed_out_again_after_a_pause"),
    Mutant("start_key_ignored", MEMORY, "if append.start_key and self._start_keys", "if False and self._start_keys", f"{STORE} test_one_start_key_starts_one_execution"),
    Mutant("doubled_command_runs_twice", COMMANDS, "if known is not None and known.work.lease >= work.lease:", "if False:", f"{VIRTUAL} test_a_command_that_comes_twice_runs_once"),
    Mutant("slot_never_free", HUB, "if not is_open and self.held.get(part) == lease:", "if False:", f"{VIRTUAL} test_a_slot_is_free_again_when_the_server_fails_the_step_of_a_report"),
    Mutant("timers_of_others_not_looked_for", DRIVER, "for row in due:", "for row in ():", f"{VIRTUAL} test_the_timer_of_a_server_that_died_rings_at_another"),
    Mutant("stale_child_answers", DECIDE, "if given.key and self._waits_for(given.run, given.iteration) == given.key:", "if given.key and self._waits_for(given.run, given.iteration):", f"{CONTROL}.test_children test_an_outcome_that_nobody_waits_for_changes_nothing"),
    Mutant("started_iterations_cancelled", SETTLING, " if not thread.started and not goes_on(run, path)]", "]", f"{CONTROL}.test_loops test_fail_fast_cancels_what_has_not_started_and_waits_for_what_has"),
    Mutant("lost_lease_goes_on", COMMANDS, "late = [self._runs[part].work for part in self._leases.late()]", "late = []", f"{VIRTUAL} test_a_worker_stops_its_tools_before_a_lease_ends_that_is_not_renewed"),
    Mutant("request_to_a_child_that_never_was_stays", INTAKE, "            self._give_to_parent(request, request.data)", "            pass", f"{REQUESTS} test_a_request_to_cancel_a_child_that_never_was_is_acknowledged_though_its_parent_goes_on"),
    Mutant("deferred_command_in_a_pool_of_nobody", ACTIVE, "and not worker and work.not_before <= now:", "and not worker:", f"{PLACEMENT} test_iterations_of_a_local_loop_that_wait_for_its_rate_run_though_its_worker_has_ended_the_others"),
    Mutant("rate_ignored", FOLD, "return starts[-1]", "return 0.0", "case loop-rate"),
    Mutant("snapshot_forgets_a_lease", STATE, "made = cls(_view(view, mappings), lease, opens)", "made = cls(_view(view, mappings), 1, opens)", "case lease-late-report"),
    Mutant("handled_failure_is_retried", RETRY, "(failed and not data.get(\"handled\"))", "failed", f"{RETRIES} test_a_failure_that_an_arc_handled_is_not_retried"),
    Mutant("retry_counts_the_failed_run", RETRY, "self._undone[count] += 1", "pass", f"{RETRIES} test_the_new_log_begins_with_the_old_one_and_names_it"),
    Mutant("retry_of_a_retry_repeats_the_first", RETRY, "self._lost, self._undone = {}, [0, 0, 0]", "pass", f"{RETRIES} test_a_retry_that_fails_is_retried_again"),
    Mutant("retry_without_the_log", ADMISSION, "active.snapshot_seq, active.pending = 0, Pending(start_key, log)", "active.snapshot_seq, active.pending = 0, Pending(start_key, log[:0])", f"{RETRIES} test_the_new_log_begins_with_the_old_one_and_names_it"),
    Mutant("retry_without_its_key", ADMISSION, "active.snapshot_seq, active.pending = 0, Pending(start_key, log)", "active.snapshot_seq, active.pending = 0, Pending('', log)", f"{REQUESTS} test_retries_with_one_key_on_two_servers_are_one"),
    Mutant("snapshot_forgets_ctx", STATE, "made.view = _view(data[\"view\"], mappings)\n        made.tokens", "made.tokens", "case fan-out-fan-in"),
]
# fmt: on
"""Bugs, and who catches each."""


def plant(mutant: Mutant) -> None:
    """Give this process the bug. Raises ValueError if its text is not in the source exactly once."""
    module = import_module(mutant.module)
    source = source_of(module)
    if source.count(mutant.old) != 1:
        raise ValueError(f"{mutant.name}: {mutant.module} has {source.count(mutant.old)} times: {mutant.old}")
    plant_source(module, source.replace(mutant.old, mutant.new))
