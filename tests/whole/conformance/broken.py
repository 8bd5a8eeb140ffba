"""Which break shows that the case of a requirement can fail. Rows of lint that refuse something need no entry here."""

from __future__ import annotations

from typing import NamedTuple

from noetlc.canon import canonicalize
from noetlc.codegen import program as program_code
from noetlc.rules import p216_unknown_field
from noetlvm.language.scopes import given_fields
from noetlvm.machine import decide, frame, instructions, settling
from noetlvm.machine.frame import Frame
from noetlvm.machine.routing import Routing
from noetlvm.machine.settling import Settling
from tests.whole.conformance import breaks as b


class Broken(NamedTuple):
    """A case, what it checks, and what makes it fail."""

    stage: str
    case: str
    break_: b.Break
    requirements: str


def _run(case: str, break_: b.Break, requirements: str) -> Broken:
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
    _run("request-refused", b.silent("P102"), "formal-4.1-03 formal-11.1-01"),
    _run("entry-step-first", b.first_step_is_the_last, "formal-4.1-07 S4-3"),
    _run(
        "workload-merged-once",
        b.replaced(decide, "deep_merge", lambda defaults, _: defaults),
        "formal-1.1-01 formal-4.1-05 step-6.1-01",
    ),
    _run(
        "workload-merged-once",
        b.replaced(decide, "deep_merge", lambda defaults, given: {**defaults, **given}),
        "brief-7.1-01 S37-1",
    ),
    _run("token-args", b.replaced(Routing, "_token_args", lambda *_: {}), "formal-1.1-04 formal-3.2-07"),
    _run("token-args", b.replaced(Routing, "_token_args", b.tokens_without_arguments), "brief-5.1-09 S32-1"),
    _run("execution-id-everywhere", b.names_with(execution_id="other"), "formal-3.2-06"),
    _run("only-arcs-start-steps", b.jumps_start_steps, _ONLY_ARCS),
    _run(_WHOLE, b.replaced(settling, "judge", lambda *_: False), "formal-intro-01"),
    _run(_WHOLE, b.replaced(Routing, "_holds", lambda *_: False), "formal-1.1-05"),
    _run(_WHOLE, b.instruction("CONTINUE", b.ends_as_done), "brief-5.2-01"),
    _run(_WHOLE, b.hidden("next.evaluated"), "formal-8.3-01"),
    _run(_WHOLE, b.unrecorded("step.done"), "brief-5.1-06"),
    _run(_WHOLE, b.instruction("ON_ERROR", b.errors_always), "formal-11.2-01"),
    _run(_WHOLE, b.unrecorded("task.done"), "brief-0-05 brief-14-02 step-1-04"),
    # admission
    _run(
        "admit-gate-waits",
        b.replaced(settling, "judge", lambda *_: True),
        "formal-11.1-04 brief-1.3-01 brief-5.1-02 step-5.2.1-02 S30-3",
    ),
    _run("admit-gate-waits", b.gate_by_turns, "formal-4.2-02"),
    _run("admit-never-is-rejected", b.replaced(settling, "judge", lambda *_: True), "brief-5.1-04 S30-4"),
    _run("admit-omitted-allows", b.only_gates_admit, "brief-5.1-05"),
    _run("admit-mode-changes-nothing", b.last_rule_admits, "step-5.2.1-05"),
    # routing and the end
    _run("route-without-guard", b.replaced(Routing, "_holds", b.only_guarded_hold), "formal-8.1-02 brief-5.1-07"),
    _run(
        "route-exclusive",
        b.replaced(Routing, "_firing", b.all_that_hold),
        "formal-8.2-02 formal-11.1-05 brief-5.1-08 brief-13-07 step-1-01",
    ),
    _run("route-inclusive", b.replaced(Routing, "_firing", b.first_that_holds), "formal-8.2-03"),
    _run("route-failure-unguarded", b.every_failure_is_handled, "S31-2"),
    _run("unguarded-arcs-success", b.replaced(Routing, "_holds", lambda *_: True), "S55-1"),
    _run("completion-once", b.unrecorded("workflow.finished"), "formal-4.4-01 S34-1"),
    _run("completion-once", b.unrecorded("playbook.processed"), "formal-4.4-02"),
    _run("control-pause-and-resume", b.unrecorded("execution.resumed"), "formal-11.1-06"),
    _run("control-cancel", b.unrecorded("execution.cancelled"), "S36-1"),
    _run("final-step-summary", b.replaced(settling, "summary", lambda _: {}), "S4-4"),
    _run("result-of-several-branches", b.replaced(Settling, "_place", lambda *_: {}), "S34-3"),
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
    _run("retry-backoff-linear", b.replaced(instructions, "waiting_time", lambda *_: 0), "S14-3"),
    _run("jump-to-a-task", b.instruction("JUMP_TO", b.ends_as_done), "formal-6.4-03"),
    _run("break-ends-the-pipeline", b.instruction("BREAK", b.ends_as_failed), "formal-6.4-04 brief-6-09"),
    _run("fail-ends-the-pipeline", b.instruction("FAIL", b.ends_as_done), "formal-6.4-05 brief-6-10"),
    _run("skip-after-the-tool", b.performs("SKIP", "CONTINUE"), "brief-6-03 S17-3"),
    _run(
        "skip-before-the-tool",
        b.replaced(b.pipeline_code._TaskCode, "_skip_beforehand", lambda _, rules: rules),
        "brief-6-11 S17-2",
    ),
    _run("prev-follows-continue-and-jump", b.replaced(Frame, "hand_on", lambda _: None), "brief-6-01 S16-1"),
    _run("patches-scopes", b.writes_are_lost("ctx"), "step-5.4-06"),
    _run("labels-are-names", b.replaced(frame, "labels_first", lambda labels, steps, offload: steps), "S48-1"),
    _run("retry-attempts-omitted", b.replaced(b.pipeline_code, "DEFAULT_ATTEMPTS", 5), "S14-2"),
    _run("jump-counts-anew", b.attempts_go_on, "S15-1"),
    _run("names-bare", b.names_without("args"), "S11-8"),
    _run("names-bare", b.bare_names_in("ctx", "args", "iter", "workload"), "formal-3.3-01"),
    _run("names-bare", b.bare_names_in("args", "iter", "ctx", "workload"), "formal-3.3-01"),
    _run("names-bare", b.bare_names_in("args", "ctx", "workload", "iter"), "formal-3.3-01"),
    _run("undefined-in-an-input", b.unbounded_is_empty, "S10-2"),
    _run("choose-branches-meet", b.sugar_without("choose", ".done"), "S39-3"),
    # outcomes
    _run("outcome-of-what-is-no-data", b.replaced(Frame, "_small", lambda _, found: found), "S19-1"),
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
    _run("loop-over-a-number", b.replaced(settling, "collection", lambda *_: [1]), "S23-3"),
    _run("loop-mode-omitted", b.replaced(program_code, "loop_mode", lambda _: "parallel"), "S25-1"),
    _run("loop-results-in-order", b.results_reversed, "S29-1"),
    _run("child-of-itself", b.replaced(decide, "CHILD_DEPTH_MAX", 3), "S43-2"),
    _run("routing-step-is-the-servers", b.unrecorded("step.done"), "S33-1"),
    # results and credentials
    _run("large-result-by-reference", b.never_offloaded, _LARGE),
    _run("keychain-before-the-first-token", b.missing_credentials_are_empty, "brief-2.1-01 step-2.1-02 S44-1"),
)

_LAYERS = "brief-2.2-02 brief-4.1-01 brief-14-04 step-3.1-01 step-3.1-02"
_LABELS = "brief-3.1-02 brief-3.1-03 step-7-02 step-7.1-02"

OTHERS = (
    # what lint accepts
    Broken("lint", "step-routing-only-ok", b.refuses_steps(lambda step: step.tool is None), "formal-2.2-08"),
    Broken(
        "lint",
        "admit-omitted-ok",
        b.refuses_steps(lambda step: not b.has_admission(step)),
        "formal-4.2-06 step-5.2.1-03",
    ),
    Broken("lint", "parallel-iter-write-ok", b.refuses_rules(lambda then: then.set_iter is not None), "formal-7.2-01"),
    Broken(
        "lint",
        "root-executor-omitted-ok",
        b.refuses(lambda model: () if model.playbook.executor else (model.playbook.span,)),
        "brief-2.2-01",
    ),
    Broken(
        "lint",
        "outcome-fields-ok",
        b.replaced(p216_unknown_field, "_given", lambda path: given_fields(path) - {"sqlstate"}),
        "brief-5.2-04",
    ),
    Broken("lint", "jump-generated-label-ok", b.labels_of_unnamed_tasks, "S5-3"),
    Broken("lint", "rule-skip-ok", b.refuses_directive("skip"), "brief-6-02"),
    Broken(
        "lint",
        "next-arc-spec-ok",
        b.refuses_steps(lambda step: step.next is not None and any(arc.spec for arc in step.next.arcs or ())),
        "step-3-01",
    ),
    Broken("lint", "example-step-12-streaming", b.refuses_directive("jump"), "step-12-01"),
    Broken("lint", "example-brief-9-nested-paging", b.refuses_directive("break"), "step-13-06"),
    # the front end
    Broken("parse", "parse-root-list", b.no_problem_is_reported, "formal-2.1-01"),
    Broken("parse", "parse-root-unknown-key", b.no_problem_is_reported, "formal-A-01"),
    Broken("parse", "parse-step-unknown-key", b.no_problem_is_reported, "formal-A-02"),
    Broken("parse", "parse-loop-unknown-key", b.no_problem_is_reported, "formal-A-03"),
    Broken("parse", "parse-arc-unknown-key", b.no_problem_is_reported, "formal-A-04"),
    Broken("parse", "parse-task-not-mapping", b.no_problem_is_reported, "formal-A-05"),
    Broken("parse", "parse-rule-unknown-key", b.no_problem_is_reported, "formal-A-06"),
    # the canonical form
    Broken("canon", "labels-shapes", b.other_labels, _LABELS),
    Broken("canon", "sugar-nested", b.other_labels, "step-14-02 S40-1"),
    Broken("canon", "choose-merge", b.sugar_without("choose", ".done"), "step-14-03"),
    Broken("canon", "while-rounds", b.sugar_without("while", ".again"), "step-14-01"),
    Broken("canon", "until-rounds", b.sugar_without("until", ".test"), "step-4-05"),
    Broken("canon", "choose-merge", b.sugar_without("choose", ".end"), "step-14-04"),
    # specs and defaults
    Broken("compile", "spec-layers", b.specs_merge(lambda outer, _: outer), _LAYERS),
    Broken("compile", "spec-layers", b.specs_merge(lambda _, inner: inner), "step-3.1-03"),
    Broken("canon", "layered-specs", b.specs_merge(b.joined_lists), "brief-4.1-02 step-3.1-04"),
    Broken("compile", "spec-layers", b.replaced(canonicalize, "outer_layers", lambda *_: ()), "S38-1"),
    Broken("compile", "loop-defaults", b.replaced(program_code, "loop_mode", lambda _: "parallel"), "formal-2.3-02"),
    # logs
    Broken("replay", "log-of-ctx", b.unapplied("ctx.patched"), "formal-1.1-02"),
    Broken("replay", "log-with-waiting-tokens", b.unapplied("token.enqueued"), "formal-10.3-01"),
    Broken("replay", "log-of-ctx-merged", b.unapplied("ctx.patched"), "formal-10.3-02"),
    Broken("replay", "log-within-nested-loops", b.unapplied("loop.iteration.done"), "formal-10.3-03"),
    Broken("replay", "log-of-tokens-used-once", b.unapplied("step.scheduled"), "S35-1"),
    Broken("replay", "log-of-a-retry", b.unapplied("execution.retried"), "S56-1"),
    Broken("canon", "workbook-list", b.other_labels, "S42-4"),
)
