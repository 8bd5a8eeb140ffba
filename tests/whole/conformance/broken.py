"""Which break shows that the case of a requirement can fail, in all stages but `run`.

A lint case that refuses something needs no entry: there the break is a rule without findings.
"""

from __future__ import annotations

from typing import NamedTuple

from noetlc.canon import canonicalize, spelling
from noetlc.codegen import program as program_code
from noetlc.finding import Severity
from noetlc.net import net, source
from noetlc.net.net import UNKNOWN_PIPELINE, NetStep, StepSummary
from noetlc.net.tokens import Completion
from noetlc.rules import p216_unknown_field
from noetlc.syntax import ast, yaml_reader
from noetlc.syntax.span import ProblemKind
from noetlvm.bytecode.verify import expressions as verify_expressions
from noetlvm.language.scopes import given_fields
from tests.whole.conformance import breaks as b


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
        b.around(p216_unknown_field, "_given", lambda _made, path: given_fields(path) - {"sqlstate"}),
        "formal-5-07 brief-5.2-04",
    ),
    Broken("lint", "jump-generated-label-ok", b.NUMBERS_OF_UNNAMED_TASKS, "S5-3"),
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
    Broken("parse", "parse-root-list", b.NO_PROBLEM_IS_REPORTED, "formal-2.1-01"),
    Broken("parse", "parse-root-unknown-key", b.NO_PROBLEM_IS_REPORTED, "formal-A-01"),
    Broken("parse", "parse-step-unknown-key", b.NO_PROBLEM_IS_REPORTED, "formal-A-02"),
    Broken("parse", "parse-loop-unknown-key", b.NO_PROBLEM_IS_REPORTED, "formal-A-03"),
    Broken("parse", "parse-arc-unknown-key", b.NO_PROBLEM_IS_REPORTED, "formal-A-04"),
    Broken("parse", "parse-task-not-mapping", b.NO_PROBLEM_IS_REPORTED, "formal-A-05"),
    Broken("parse", "parse-rule-unknown-key", b.NO_PROBLEM_IS_REPORTED, "formal-A-06"),
    # the canonical form
    Broken("canon", "labels-shapes", b.OTHER_LABELS, _LABELS),
    Broken("canon", "sugar-nested", b.OTHER_LABELS, "step-14-02 S40-1"),
    Broken("canon", "choose-merge", b.sugar_without("choose", ".done"), "step-14-03"),
    Broken("canon", "while-rounds", b.sugar_without("while", ".again"), "step-14-01"),
    Broken("canon", "until-rounds", b.sugar_without("until", ".test"), "step-4-05"),
    Broken("canon", "choose-merge", b.sugar_without("choose", ".end"), "step-14-04"),
    # specs and defaults
    Broken("compile", "spec-layers", b.specs_merge(lambda outer, _: outer), _LAYERS),
    Broken("compile", "spec-layers", b.specs_merge(lambda _, inner: inner), "step-3.1-03"),
    Broken("canon", "layered-specs", b.specs_merge(b.joined_lists), "brief-4.1-02 step-3.1-04"),
    Broken("compile", "spec-layers", b.returning(canonicalize, "outer_layers", ()), "S38-1"),
    Broken("compile", "loop-defaults", b.returning(program_code, "loop_mode", "parallel"), "formal-2.3-02"),
    Broken("canon", "workbook-list", b.OTHER_LABELS, "S42-4"),
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
    Broken("parse", "yaml-words-are-text", b.WORDS_ARE_BOOLEANS, "S7-1"),
    Broken("parse", "yaml-duplicate-key", b.unreported(ProblemKind.DUPLICATE_KEY), "S7-2"),
    Broken("parse", "yaml-anchors-ok", b.ALIASES_ARE_NULL, "S7-3"),
    Broken("parse", "yaml-merge-list-ok", b.returning(yaml_reader, "_is_merge", False), "S7-3"),
    Broken("parse", "yaml-alias-expansion-just-over", b.MORE_ALIASES, "S7-4"),
    Broken("parse", "yaml-two-documents", b.unreported(ProblemKind.MANY_DOCUMENTS), "S7-5"),
    Broken("parse", "yaml-complex-key", b.unreported(ProblemKind.COMPLEX_KEY), "S7-6"),
    Broken("parse", "yaml-tag", b.unreported(ProblemKind.TAG), "S7-6"),
    # more of the compiler
    Broken("canon", "other-spellings", b.around(spelling, "_target", lambda _made, _, name: name), "S6-3"),
    Broken("compile", "empty-step", b.EMPTY_STEPS_WORK, "S3-2"),
    Broken("compile", "loop-defaults", b.PARALLEL_LOOPS_STAY, "S22-2"),
    Broken("compile", "sugar-labels", b.WITHOUT_CONSTRUCTS, "S40-2"),
    # nets
    Broken(
        "graph",
        "entry-first-step",
        b.nets(b.around(source, "_entry", b.last_step)),
        "S4-5",
    ),
    Broken(
        "graph",
        "final-step-after-all",
        b.nets(b.around(source, "build_net", lambda made, *given: made(*given[:-1], None))),
        "S4-6",
    ),
    Broken("graph", "final-step-never", b.nets(b.returning(Completion, "can_end", True)), "S4-6"),
    Broken("graph", "constant-guard-false", b.nets(b.returning(source, "guard_formula", True)), "S9-4"),
    Broken("graph", "loop-ends-once", b.nets(b.around(net._Builder, "_router", b.all_events_at_once)), "S21-3"),
    Broken("graph", "best-effort-never-fails", b.nets(b.around(StepSummary, "events", b.failures_count)), "S27-3"),
    Broken("graph", "gate-never-opens", b.nets(b.returning(source, "_admission", True)), "S30-5"),
    Broken("graph", "gate-may-hold-for-good", b.nets(b.returning(NetStep, "may_hold", False)), "S30-6"),
    Broken("graph", "exclusive-takes-one", b.nets(b.returning(source, "_is_inclusive", True)), "S31-4"),
    Broken("graph", "inclusive-takes-all", b.nets(b.returning(source, "_is_inclusive", False)), "S31-5"),
    Broken(
        "graph",
        "unguarded-arc-takes-failures",
        b.nets(b.around(net._Builder, "_formulas", b.unguarded_arcs_need_success)),
        "S31-6",
    ),
    Broken("graph", "no-arc-ends-the-branch", b.nets(b.around(net._Builder, "_router", b.something_fires)), "S31-7"),
    Broken(
        "graph",
        "pure-routing-cannot-fail",
        b.nets(b.replaced(source, "NO_PIPELINE", UNKNOWN_PIPELINE)),
        "S33-2",
    ),
    Broken("graph", "cycle-without-end", b.nets(b.returning(Completion, "can_end", True)), "S34-2"),
    # the verifier
    Broken("verify", "gate-reads-iter", b.returning(verify_expressions, "_check_names", None), "S11-10"),
    Broken("verify", "method-off-the-list", b.returning(verify_expressions, "_check_call", None), "S12-8"),
    Broken("verify", "bundle-with-more-behind", b.BYTES_BEHIND_DO_NOT_MATTER, "S12-8"),
    Broken("verify", "endless-expression", b.JUMPS_LEAD_ANYWHERE, "S12-9"),
    Broken("verify", "guard-reads-secret", b.replaced(verify_expressions, "_SERVER_SIDE", frozenset()), "S45-3"),
)
