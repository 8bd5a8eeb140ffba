"""Which break shows that the case of a requirement can fail, in all stages but `run`.

A lint case that refuses something needs no entry: there the break is a rule without findings.
"""

from __future__ import annotations

from typing import NamedTuple

from noetlc.canon import canonicalize, spelling
from noetlc.codegen import program as program_code
from noetlc.finding import Severity
from noetlc.net import net, source
from noetlc.net.net import NetStep, PipelineEnds, StepSummary, build_net
from noetlc.net.tokens import Completion
from noetlc.rules import p216_unknown_field
from noetlc.syntax import ast, yaml_reader
from noetlc.syntax.span import ProblemKind
from noetlvm.bytecode.verify import expressions as verify_expressions
from noetlvm.language.scopes import given_fields
from tests.whole.conformance import breaks as b
from tests.whole.conformance import run_breaks


class Broken(NamedTuple):
    """A case, what it checks, and what makes it fail."""

    stage: str
    case: str
    break_: b.Break
    requirements: str


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
        "formal-5-07 brief-5.2-04",
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
    Broken("replay", "log-of-ctx", run_breaks.unapplied("ctx.patched"), "formal-12-04"),
    Broken("replay", "log-of-ctx", run_breaks.unapplied("ctx.patched"), "formal-1.1-02"),
    Broken("replay", "log-with-waiting-tokens", run_breaks.unapplied("token.enqueued"), "formal-10.3-01"),
    Broken("replay", "log-of-ctx-merged", run_breaks.unapplied("ctx.patched"), "formal-10.3-02"),
    Broken("replay", "log-within-nested-loops", run_breaks.unapplied("loop.iteration.done"), "formal-10.3-03"),
    Broken("replay", "log-of-tokens-used-once", run_breaks.unapplied("step.scheduled"), "S35-1"),
    Broken("replay", "log-of-a-retry", run_breaks.unapplied("execution.retried"), "S56-1"),
    Broken("canon", "workbook-list", b.other_labels, "S42-4"),
    # what lint accepts, more
    Broken("lint", "executor-hints-ok", b.refuses_executors(lambda found: found.profile), "brief-2.2-03"),
    Broken("lint", "executor-hints-ok", b.refuses_executors(b.extra_of("result")), "brief-2.2-04"),
    Broken("lint", "executor-hints-ok", b.refuses_executors(b.extra_of("sandbox")), "brief-2.2-05"),
    Broken("lint", "executor-hints-ok", b.refuses_executors(b.extra_of("telemetry")), "brief-2.2-06"),
    Broken("lint", "example-brief-2.A-executor", b.refuses_executors(lambda found: found.version), "brief-2.A-01"),
    Broken("lint", "executor-policy-ok", b.refuses_executors(lambda found: found.spec), "step-5.1-01"),
    Broken("lint", "step-hints-ok", b.refuses_steps(lambda step: step.policy is not None), "step-5.2.2-01"),
    Broken("lint", "loop-ok", b.refuses_steps(lambda step: step.loops[0].spec is not None), "step-5.3-01"),
    Broken("lint", "task-shape-single-ok", b.refuses_entries(ast.Task), "brief-3.1-01 S5-1"),
    Broken("lint", "sugar-ok", b.refuses_entries(ast.Repeat), "S39-1"),
    Broken("lint", "sugar-ok", b.refuses_directive("break"), "S41-2"),
    Broken("lint", "ctx-default-ok", b.defaults_do_not_count, "S10-4"),
    # what findings say
    Broken("lint", "unknown-key-near-miss", b.finds("P020", help=""), "S6-4"),
    Broken("lint", "set-ctx-on-step", b.finds("P324", fix=None), "S49-1"),
    Broken("lint", "set-ctx-on-step", b.finds("P324", help=""), "S49-1"),
    Broken("lint", "set-ctx-on-arc", b.finds("P324", fix=None), "S50-1"),
    Broken("lint", "spec-key-near-miss", b.finds("P323", severity=Severity.WARNING), "S63-4"),
    Broken("lint", "spec-key-unread", b.finds("P323", severity=Severity.ERROR), "S63-2"),
    # YAML
    Broken("parse", "yaml-words-are-text", b.words_are_booleans, "S7-1"),
    Broken("parse", "yaml-duplicate-key", b.unreported(ProblemKind.DUPLICATE_KEY), "S7-2"),
    Broken("parse", "yaml-anchors-ok", b.aliases_are_null, "S7-3"),
    Broken("parse", "yaml-merge-list-ok", b.replaced(yaml_reader, "_is_merge", lambda _: False), "S7-3"),
    Broken("parse", "yaml-alias-expansion-just-over", b.more_aliases, "S7-4"),
    Broken("parse", "yaml-two-documents", b.unreported(ProblemKind.MANY_DOCUMENTS), "S7-5"),
    Broken("parse", "yaml-complex-key", b.unreported(ProblemKind.COMPLEX_KEY), "S7-6"),
    Broken("parse", "yaml-tag", b.unreported(ProblemKind.TAG), "S7-6"),
    # more of the compiler
    Broken("canon", "other-spellings", b.replaced(spelling, "_target", lambda _, name: name), "S6-3"),
    Broken("compile", "empty-step", b.empty_steps_work, "S3-2"),
    Broken("compile", "loop-defaults", b.parallel_loops_stay, "S22-2"),
    Broken("compile", "sugar-labels", b.without_constructs, "S40-2"),
    # nets
    Broken("graph", "entry-first-step", b.nets(source, "_entry", lambda model, _: model.steps[-1].step.text), "S4-5"),
    Broken(
        "graph",
        "final-step-after-all",
        b.nets(source, "build_net", lambda *given: build_net(*given[:-1], None)),
        "S4-6",
    ),
    Broken("graph", "final-step-never", b.nets(Completion, "can_end", lambda *_: True), "S4-6"),
    Broken("graph", "constant-guard-false", b.nets(source, "guard_formula", lambda *_: True), "S9-4"),
    Broken("graph", "loop-ends-once", b.nets(net._Builder, "_router", b.all_events_at_once), "S21-3"),
    Broken("graph", "best-effort-never-fails", b.nets(StepSummary, "events", property(b.failures_count)), "S27-3"),
    Broken("graph", "gate-never-opens", b.nets(source, "_admission", lambda *_: True), "S30-5"),
    Broken("graph", "gate-may-hold-for-good", b.nets(NetStep, "may_hold", property(lambda _: False)), "S30-6"),
    Broken("graph", "exclusive-takes-one", b.nets(source, "_is_inclusive", lambda _: True), "S31-4"),
    Broken("graph", "inclusive-takes-all", b.nets(source, "_is_inclusive", lambda _: False), "S31-5"),
    Broken(
        "graph",
        "unguarded-arc-takes-failures",
        b.nets(net._Builder, "_formulas", b.unguarded_arcs_need_success),
        "S31-6",
    ),
    Broken("graph", "no-arc-ends-the-branch", b.nets(net._Builder, "_router", b.something_fires), "S31-7"),
    Broken(
        "graph",
        "pure-routing-cannot-fail",
        b.nets(source, "NO_PIPELINE", PipelineEnds(done=True, failed=True)),
        "S33-2",
    ),
    Broken("graph", "cycle-without-end", b.nets(Completion, "can_end", lambda *_: True), "S34-2"),
    # the verifier
    Broken("verify", "gate-reads-iter", b.replaced(verify_expressions, "_check_names", lambda *_: None), "S11-10"),
    Broken("verify", "method-off-the-list", b.replaced(verify_expressions, "_check_call", lambda *_: None), "S12-8"),
    Broken("verify", "bundle-with-more-behind", b.bytes_behind_do_not_matter, "S12-8"),
    Broken("verify", "endless-expression", b.jumps_lead_anywhere, "S12-9"),
    Broken("verify", "guard-reads-secret", b.replaced(verify_expressions, "_SERVER_SIDE", frozenset()), "S45-3"),
)
