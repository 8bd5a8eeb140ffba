"""Which break shows that a run case of a requirement can fail."""

from __future__ import annotations

from noetlc.canon import flow as canon_flow
from noetlc.codegen import pipeline as pipeline_code
from noetlc.codegen import program as program_code
from noetlc.syntax import template_ast as t
from noetlvm.data import event as envelopes
from noetlvm.expr import numbers
from noetlvm.expr.values import Undefined
from noetlvm.limits import Limits
from noetlvm.machine import decide, fold, frame, instructions, loaded, loops, routing, settling
from noetlvm.machine.frame import Frame
from noetlvm.machine.payload import Offload
from noetlvm.machine.routing import Routing
from noetlvm.machine.settling import Settling
from noetlvm.server import children
from noetlvm.testing import __main__ as protocol
from tests.whole.conformance import run_breaks as b
from tests.whole.conformance.breaks import (
    Break,
    bare_names_in,
    last_rule_admits,
    one_template_is_text,
    plain_texts_change,
    replaced,
    silent,
    statement_is_nothing,
    sugar_as,
    sugar_untested,
    sugar_without,
    templates,
    text_around_is_dropped,
)
from tests.whole.conformance.broken import Broken


def _run(case: str, break_: Break, requirements: str) -> Broken:
    return Broken("run", case, break_, requirements)


_WHOLE = "step-gate-pipeline-router"
_ONLY_ARCS = "formal-4.2-01 formal-11.1-02 brief-0-04 brief-0-06 brief-5.1-10 brief-14-01 step-1-01 step-1-05"
_OWN_ITER = "formal-1.1-03 formal-4.3-03 formal-7.1-01 brief-7.3-01 brief-13-05 step-6.3-01 step-8-03"
_LARGE = "formal-9.1-01 brief-10-02 brief-13-08 step-1-03 step-10-02 S46-1"

RUNS = (
    # requests and tokens
    _run("request-recorded", b.unrecorded("playbook.execution.requested"), "formal-4.1-01"),
    _run("request-recorded", b.unrecorded("playbook.request.evaluated"), "formal-4.1-04"),
    _run("request-recorded", b.ctx_begins_full, "formal-4.1-06"),
    _run("request-refused", silent("P102"), "formal-4.1-03 formal-11.1-01"),
    _run("entry-step-first", b.first_step_is_the_last, "formal-4.1-07 S4-3"),
    _run(
        "workload-merged-once",
        replaced(decide, "deep_merge", lambda defaults, _: defaults),
        "formal-1.1-01 formal-4.1-05 step-6.1-01",
    ),
    _run(
        "workload-merged-once",
        replaced(decide, "deep_merge", lambda defaults, given: {**defaults, **given}),
        "brief-7.1-01 S37-1",
    ),
    _run("token-args", replaced(Routing, "_token_args", lambda *_: {}), "formal-1.1-04 formal-3.2-07"),
    _run("token-args", replaced(Routing, "_token_args", b.tokens_without_arguments), "brief-5.1-09 S32-1"),
    _run("execution-id-everywhere", b.names_with(execution_id="other"), "formal-3.2-06"),
    _run("only-arcs-start-steps", b.jumps_start_steps, _ONLY_ARCS),
    _run(_WHOLE, replaced(settling, "judge", lambda *_: False), "formal-intro-01"),
    _run(_WHOLE, replaced(Routing, "_holds", lambda *_: False), "formal-1.1-05"),
    _run(_WHOLE, b.instruction("CONTINUE", b.ends_as_done), "brief-5.2-01"),
    _run(_WHOLE, b.hidden("next.evaluated"), "formal-8.3-01"),
    _run(_WHOLE, b.unrecorded("step.done"), "brief-5.1-06"),
    _run(_WHOLE, b.instruction("ON_ERROR", b.errors_always), "formal-11.2-01"),
    _run(_WHOLE, b.unrecorded("task.done"), "brief-0-05 brief-14-02 step-1-04"),
    # admission
    _run(
        "admit-gate-waits",
        replaced(settling, "judge", lambda *_: True),
        "formal-11.1-04 brief-1.3-01 brief-5.1-02 step-5.2.1-02 S30-3",
    ),
    _run("admit-gate-waits", b.gate_by_turns, "formal-4.2-02"),
    _run("admit-never-is-rejected", replaced(settling, "judge", lambda *_: True), "brief-5.1-04 S30-4"),
    _run("admit-omitted-allows", b.only_gates_admit, "brief-5.1-05"),
    _run("admit-mode-changes-nothing", last_rule_admits, "step-5.2.1-05"),
    # routing and the end
    _run("route-without-guard", replaced(Routing, "_holds", b.only_guarded_hold), "formal-8.1-02 brief-5.1-07"),
    _run(
        "route-exclusive",
        replaced(Routing, "_firing", b.all_that_hold),
        "formal-8.2-02 formal-11.1-05 brief-5.1-08 brief-13-07 step-1-01",
    ),
    _run("route-inclusive", replaced(Routing, "_firing", b.first_that_holds), "formal-8.2-03"),
    _run("route-failure-unguarded", b.every_failure_is_handled, "S31-2"),
    _run("unguarded-arcs-success", replaced(Routing, "_holds", lambda *_: True), "S55-1"),
    _run("completion-once", b.unrecorded("workflow.finished"), "formal-4.4-01 S34-1"),
    _run("completion-once", b.unrecorded("playbook.processed"), "formal-4.4-02"),
    _run("control-pause-and-resume", b.unrecorded("execution.resumed"), "formal-11.1-06"),
    _run("control-cancel", b.unrecorded("execution.cancelled"), "S36-1"),
    _run("final-step-summary", replaced(settling, "summary", lambda _: {}), "S4-4"),
    _run("result-of-several-branches", replaced(Settling, "_place", lambda *_: {}), "S34-3"),
    # policies
    _run("policy-deterministic", b.guards_by_chance, "formal-4.3-02 formal-6.1-01 formal-11.2-02"),
    _run("policy-first-match", b.rules_from_the_last, "formal-6.3-01 formal-6.3-02 brief-5.2-05"),
    _run("policy-else", b.guards(lambda _: True), "formal-6.3-03 brief-5.2-06"),
    _run("policy-omitted-error-fails", b.instruction("ON_ERROR", b.errors_continue), "formal-6.3-04 brief-5.2-07"),
    _run("policy-without-match-continues", b.unmatched_fails, "formal-6.3-05 brief-5.2-08 step-5.4-05 S13-1"),
    _run("policy-omitted-ok-continues", b.instruction("CONTINUE", b.ends_as_done), "formal-6.4-01"),
    _run("retry-then-ok", b.instruction("RETRY", b.never_again), "formal-6.4-02"),
    _run("retry-counts-per-iteration", b.attempts_do_not_count, "brief-6-04"),
    _run("retry-used-up", b.instruction("FAIL", b.ends_as_done), "brief-6-05 brief-13-02"),
    _run("retry-backoff-exponential", b.growth("exponential", lambda attempt: attempt), "brief-6-06"),
    _run("retry-backoff-linear", replaced(instructions, "waiting_time", lambda *_: 0), "S14-3"),
    _run("jump-to-a-task", b.instruction("JUMP_TO", b.ends_as_done), "formal-6.4-03"),
    _run("break-ends-the-pipeline", b.instruction("BREAK", b.ends_as_failed), "formal-6.4-04 brief-6-09"),
    _run("fail-ends-the-pipeline", b.instruction("FAIL", b.ends_as_done), "formal-6.4-05 brief-6-10"),
    _run("skip-after-the-tool", b.performs("SKIP", "CONTINUE"), "brief-6-03 S17-3"),
    _run(
        "skip-before-the-tool",
        replaced(pipeline_code._TaskCode, "_skip_beforehand", lambda _, rules: rules),
        "brief-6-11 S17-2",
    ),
    _run("prev-follows-continue-and-jump", replaced(Frame, "hand_on", lambda _: None), "brief-6-01 S16-1"),
    _run("patches-scopes", b.writes_are_lost("ctx"), "step-5.4-06"),
    _run("labels-are-names", replaced(frame, "labels_first", lambda labels, steps, offload: steps), "S48-1"),
    _run("retry-attempts-omitted", replaced(pipeline_code, "DEFAULT_ATTEMPTS", 5), "S14-2"),
    _run("jump-counts-anew", b.attempts_go_on, "S15-1"),
    _run("names-bare", b.names_without("args"), "S11-8"),
    _run("names-bare", bare_names_in("ctx", "args", "iter", "workload"), "formal-3.3-01"),
    _run("names-bare", bare_names_in("args", "iter", "ctx", "workload"), "formal-3.3-01"),
    _run("names-bare", bare_names_in("args", "ctx", "workload", "iter"), "formal-3.3-01"),
    _run("undefined-in-an-input", b.unbounded_is_empty, "S10-2"),
    _run("choose-branches-meet", sugar_without("choose", ".done"), "S39-3"),
    # outcomes
    _run("outcome-of-what-is-no-data", replaced(Frame, "_small", lambda _, found: found), "S19-1"),
    _run("outcome-ok", b.outcomes_twice, "formal-5-01"),
    _run("outcome-ok", b.outcome(lambda found: found.update(result=None)), "formal-5-03"),
    _run("outcome-error", b.outcome(b.without_error_kind), "formal-5-04"),
    _run("outcome-error", b.outcome(lambda found: found.pop("http", None)), "brief-5.2-04"),
    _run("outcome-ok", b.without_meta, "formal-5-06 brief-5.2-03"),
    _run("fuel-runs-out", b.more_fuel, "S20-1"),
    _run("evaluation-is-bounded", b.unbounded_is_empty, "S12-6"),
    # loops
    _run("loop-iter-isolated", b.iter_is_shared, _OWN_ITER),
    _run("lease-lost-keeps-iter", b.writes_are_lost("iter"), "formal-7.1-04 brief-14-03"),
    _run("iter-names", b.iter_without("element"), "formal-7.1-02"),
    _run("iter-names", b.iter_without("index"), "formal-7.1-03"),
    _run("loop-done-once", b.hidden("loop.done"), "formal-7.3-01 S21-1"),
    _run("loop-nested-paging", b.iter_without("parent"), "brief-7.4-01 brief-9-02 brief-13-06 step-6.4-01"),
    _run("paging-ends-with-break", b.instruction("JUMP_TO", b.ends_as_done), "brief-9-01 brief-13-04 step-11-01"),
    _run("storage-by-status-404", b.instruction("JUMP_TO", b.ends_as_done), "brief-13-03 step-10-03"),
    _run("loop-parallel-ctx-conflict", b.last_write_wins, "brief-7.2-03 S26-3"),
    _run("loop-width-omitted", b.width_is(1), "S24-1"),
    _run("loop-best-effort", b.failed_iterations_do_not_count, "S27-1"),
    _run("loop-over-a-number", replaced(settling, "collection", lambda *_: [1]), "S23-3"),
    _run("loop-mode-omitted", replaced(program_code, "loop_mode", lambda _: "parallel"), "S25-1"),
    _run("loop-results-in-order", b.results_reversed, "S29-1"),
    _run("child-of-itself", replaced(decide, "CHILD_DEPTH_MAX", 3), "S43-2"),
    _run("routing-step-is-the-servers", b.unrecorded("step.done"), "S33-1"),
    # results and credentials
    _run("large-result-by-reference", b.never_offloaded, _LARGE),
    _run("keychain-before-the-first-token", b.missing_credentials_are_empty, "brief-2.1-01 step-2.1-02 S44-1"),
    # what one sentence of the documents says about a whole run
    _run("child-of-another-version", replaced(children, "_refusal", lambda *_: {}), "formal-4.1-02"),
    _run("step-gate-pipeline-router", replaced(decide, "_needed", lambda *_: ()), "formal-4.2-03"),
    _run("denial-is-recorded-once", replaced(settling, "denial", lambda *_: {}), "formal-4.2-04"),
    _run("lease-late-report", b.late_reports_count, "formal-4.3-01"),
    _run("log-of-a-whole-run", b.unrecorded("task.started"), "formal-4.3-04"),
    _run("log-of-a-whole-run", b.unrecorded("workflow.finished"), "formal-10.2-01"),
    _run("tokens-enqueued-and-claimed", replaced(routing.Routing, "_token_args", lambda *_: {}), "formal-10.2-02"),
    _run("job-submitted-and-polled", replaced(frame.Frame, "retry", lambda self, *_: self.fail(0)), "formal-12-01"),
    _run("job-submitted-and-polled", replaced(fold, "_open_iterations", lambda *_: None), "formal-12-02"),
    _run("job-submitted-and-polled", replaced(Offload, "fit", lambda _, mapping, *more: mapping), "formal-12-03"),
    _run("log-of-a-whole-run", b.unrecorded("task.done"), "brief-5.2-02"),
    _run("loop-results-in-order", replaced(fold, "_open_iterations", lambda *_: None), "brief-8-02"),
    _run("loop-distributed-leases", replaced(loaded.LoadedStep, "unit", lambda *_: ""), "brief-8-03"),
    _run("loop-distributed-leases", replaced(loaded.LoadedStep, "unit", lambda *_: ""), "brief-8-04"),
    _run("tool-retries-before-policy", b.specs_are_lost, "step-9.1-01 step-9.1-03"),
    _run("log-of-a-whole-run", b.unrecorded("ctx.patched"), "brief-7.2-01"),
    _run("log-of-a-whole-run", b.unrecorded("task.started"), "formal-11.2-03"),
    _run("outcome-error", b.outcome(b.without_retryable), "formal-5-05"),
    _run("large-result-by-reference", b.never_offloaded, "formal-9.1-02 formal-9.1-03"),
    _run("large-result-by-reference", replaced(Offload, "fit", lambda _, mapping, *more: mapping), "formal-9.2-01"),
    _run("large-result-by-reference", b.references_without("checksum"), "brief-10-03"),
    _run("large-result-by-reference", b.references_without("key"), "brief-10-03"),
    _run("large-result-by-reference", b.references_without("schema_hint"), "brief-10-03"),
    _run("time-timeout-is-a-failure", b.without_limit("timeout_s"), "step-5.2.2-04"),
    _run("time-deadline-ends-a-run", b.without_limit("deadline_s"), "step-5.2.2-05"),
    _run("time-deadline-keeps-a-step-from-starting", b.without_limit("deadline_s"), "step-5.2.2-05"),
    _run("loop-distributed-leases", replaced(loaded.LoadedStep, "unit", lambda *_: ""), "step-11-02"),
)

DECISIONS = (
    _run("undefined-in-args", b.expressions_call("require", lambda value, *_: value), "S10-2"),
    _run("undefined-in-loop-in", b.unbounded_is_empty, "S10-2"),
    _run("undefined-in-a-delay", b.expressions_call("require", lambda *_: 0), "S10-2"),
    _run(
        "undefined-is-an-outcome",
        replaced(Frame, "not_rendered", lambda self, error: self.complete({"status": "ok"})),
        "S10-5",
    ),
    _run("step-name-reads-the-last-run", b.first_result_counts, "S11-11"),
    _run("dots-read-data-only", b.expressions_call("attr", getattr), "S12-10"),
    _run("statements-give-text", statement_is_nothing(t.For), "S12-11"),
    _run("statements-give-text", statement_is_nothing(t.If), "S12-11"),
    _run("error-has-four-fields", b.outcome(lambda found: found["error"].pop("details")), "S19-3"),
    _run("error-has-four-fields", b.outcome(lambda found: found["error"].pop("message")), "S19-3"),
    _run("loop-over-a-mapping", replaced(loops, "_element", lambda items, index: list(items)[index]), "S23-4"),
    *(_run("reducers-each", b.reducer(name), "S26-4") for name in loops.REDUCERS),
    _run("loop-parallel-ctx-of-its-start", replaced(fold, "visible", b.sees_the_state), "S26-5"),
    _run("loop-parallel-own-writes", b.without_field("task.done", "ctx"), "S26-5"),
    _run("loop-best-effort", replaced(settling, "_counts", lambda loop: {"total": loop.ok}), "S27-4"),
    _run("loop-levels-have-their-own-spec", b.headers_with(width=2), "S28-3"),
    _run("loop-levels-have-their-own-spec", b.headers_with(width=1), "S28-3"),
    _run("admit-rules-in-order", b.admission(lambda rules: rules[::-1]), "S30-7"),
    _run("admit-rules-in-order", b.admission(lambda rules: (*rules, (None, True))), "S30-7"),
    _run("admit-gate-waits", replaced(Settling, "_admit", b.tried_once), "S30-8"),
    _run("admit-gate-waits-for-a-step", replaced(Settling, "_admit", b.tried_once), "S30-8"),
    _run("admit-on-deny-drops", b.never_drops, "S30-9"),
    _run("no-next-is-error", b.routing_never_fails, "S31-8"),
    _run("route-no-arc-holds", replaced(Routing, "_firing", b.something_fires), "S31-9"),
    _run("lease-late-report", b.late_reports_count, "S35-2"),
    _run("route-exclusive", b.routes_twice, "S35-3"),
    _run("control-pause-and-resume", b.unrecorded("execution.paused"), "S36-1"),
    _run("while-tests-before-each-round", sugar_as("while", "until"), "S39-4"),
    _run("until-tests-after-each-round", sugar_as("until", "while"), "S39-4"),
    _run("while-rounds-bounded", replaced(canon_flow, "rounds_of", lambda _: 7), "S39-5"),
    _run("choose-no-branch-holds", sugar_untested("choose", ".when_2"), "S39-6"),
    _run("sugar-nests", sugar_without("choose", ".done"), "S39-7"),
    _run("break-inside-a-block", b.instruction("BREAK", b.never_again), "S41-3"),
    _run("template-values", templates(one_template_is_text), "S8-1"),
    _run("template-values", templates(text_around_is_dropped), "S8-2"),
    _run("template-values", plain_texts_change, "S8-3"),
    _run("guard-truth", b.expressions_call("guard", bool), "S9-3"),
    _run("guard-truth", b.expressions_call("guard", lambda value: value in (True, "true")), "S9-3"),
    _run("undefined-stays-undefined", replaced(Undefined, "__bool__", lambda _: True), "S10-1"),
    _run("undefined-stays-undefined", replaced(Undefined, "__eq__", lambda *_: True), "S10-1"),
    _run("undefined-stays-undefined", b.filters_call("default", lambda _, value, *more: value), "S10-1"),
    _run("undefined-stays-undefined", b.expressions_call("attr", lambda value, name: {}[name]), "S10-1"),
    _run("patches-all-at-once", b.one_by_one, "S18-1"),
    _run("loop-nested-paging", b.headers_with(leaf=True), "S28-2"),
    _run("child-returns-a-step", b.without_field("playbook.execution.requested", "returns"), "S43-3"),
    _run("loop-rate-after-a-pause", b.first_offer_only, "S53-3"),
    _run("reports-decided-one-by-one", b.settled_last, "S51-1"),
    _run("number-that-is-none", replaced(numbers, "number_of", lambda value: 0), "S52-2"),
    _run("delay-between-rounds", replaced(instructions, "waiting_time", lambda delay, factor: 0), "S53-1"),
    _run("loop-rate", replaced(fold, "_next_start", lambda state, loop: 0.0), "S53-2"),
    _run("loop-writes-of-failed-iterations", b.sequential_writes_are_lost, "S60-2"),
    _run("events-of-their-own", b.unrecorded("task.started"), "S61-1"),
    _run("denial-is-recorded-once", replaced(settling, "denial", lambda *_: {}), "S61-2"),
    _run("outer-iterations-begin", b.outer_beginnings_are_lost, "S61-3"),
    _run("request-refused", replaced(protocol, "invalid_playbook", lambda *_: {"kind": "validation"}), "S61-4"),
    _run("net-fuel-runs-out", replaced(loaded, "Limits", type("NoLimits", (), {"of": lambda _: Limits()})), "S62-1"),
    _run("loop-distributed-leases", replaced(loaded.LoadedStep, "unit", lambda *_: ""), "S22-1"),
    _run("keychain-stays-out-of-the-log", replaced(Offload, "redacted", lambda _, value: value), "S45-1"),
    _run("numbers-as-text", replaced(numbers, "number_of", lambda value: value), "S52-1"),
    _run("step-sees-ctx-of-its-scheduling", b.newest_ctx, "S57-1"),
    _run("reducers-continue-from-ctx", b.reducers_from_nothing, "S58-1"),
    _run("admit-entry-never", replaced(Settling, "_never_admitted", lambda *_: {}), "S59-1"),
    _run("loop-writes-of-failed-iterations", b.failed_writes_count, "S60-1"),
    _run("secret-in-a-result-is-lost-with-its-lease", b.masks_are_values, "S45-4"),
    _run("mask-in-ctx-is-refused", b.masks_are_values, "S64-1"),
    _run("failures-in-the-order-of-the-log", replaced(fold, "_failure_position", lambda _: (0, ())), "S65-1"),
)

ENVELOPES: dict[str, tuple[str, Break]] = {
    "formal-10.1-01": ("without step.started", b.unrecorded("step.started")),
    "formal-10.1-02": ("entity_id", replaced(envelopes, "_entity_id", lambda *_: "")),
    "formal-10.1-03 source": ("source foreign", b.kind("step.done", plane=b.Foreign)),
    "formal-10.1-03 entity": ("entity foreign", b.kind("step.done", entity=b.Foreign)),
    "formal-10.1-03 status": ("status foreign", b.kind("step.done", status=b.Foreign)),
    "brief-11-01": ("the end is not recorded last", b.unrecorded("workflow.finished")),
    "brief-11-02": ("without task.started", b.unrecorded("task.started")),
    "brief-11-03 task": ("lacks task_run_id", b.identifiers_without("task_run_id")),
    "brief-11-03 step": ("lacks step_run_id", b.identifiers_without("step_run_id")),
    "brief-11-03 attempt": ("lacks attempt", b.identifiers_without("attempt")),
    "step-8-02": ("without loop.iteration.started", b.unrecorded("loop.iteration.started")),
    "formal-11.1-03": ("seq is not dense", b.without_first_event),
    "step-1-02": ("seq is not dense", b.without_first_event),
}
"""By requirement: what is then wrong with the log, and how the sentence is broken."""
