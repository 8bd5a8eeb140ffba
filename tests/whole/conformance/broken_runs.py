"""Which break shows that a run case can fail, for requirements that mutants of `noetlvm/machine` do not reach."""

from __future__ import annotations

from noetlc.canon import flow as canon_flow
from noetlc.codegen import pipeline as pipeline_code
from noetlc.codegen import program as program_code
from noetlc.syntax import template_ast as t
from noetlvm.data import event as envelopes
from noetlvm.expr import numbers
from noetlvm.expr.values import Undefined
from noetlvm.rounds import children
from noetlvm.rounds.credentials import UnresolvedError
from noetlvm.testing import __main__ as protocol
from tests.whole.conformance import log_rules
from tests.whole.conformance import run_breaks as b
from tests.whole.conformance.breaks import (
    LAST_RULE_ADMITS,
    PLAIN_TEXTS_CHANGE,
    Break,
    around,
    bare_names_in,
    one_template_is_text,
    replaced,
    returning,
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


RUNS = (
    # what is refused
    _run("request-refused", silent("P102"), "formal-4.1-03 formal-11.1-01"),
    _run("request-refused", returning(protocol, "invalid_playbook", {"kind": "validation"}), "S61-4"),
    _run("child-of-another-version", returning(children, "_refusal", {}), "formal-4.1-02"),
    # the code of gates, policies and loops
    _run("admit-mode-changes-nothing", LAST_RULE_ADMITS, "step-5.2.1-05"),
    _run("admit-rules-in-order", b.admission(lambda rules: rules[::-1]), "S30-7"),
    _run("admit-rules-in-order", b.admission(lambda rules: (*rules, (None, True))), "S30-7"),
    _run("policy-first-match", b.policies(b.rules_from_the_last), "formal-6.3-01 formal-6.3-02 brief-5.2-05"),
    _run(
        "policy-without-match-continues",
        b.policies(b.unmatched_fails),
        "formal-6.3-05 brief-5.2-08 step-5.4-05 S13-1",
    ),
    _run(
        "skip-before-the-tool",
        around(pipeline_code._TaskCode, "_skip_beforehand", lambda _made, _task, rules: rules),
        "brief-6-11 S17-2",
    ),
    _run("patches-all-at-once", around(pipeline_code._TaskCode, "_then", b.one_by_one), "S18-1"),
    _run("retry-attempts-omitted", replaced(pipeline_code, "DEFAULT_ATTEMPTS", 5), "S14-2"),
    _run("loop-mode-omitted", returning(program_code, "loop_mode", "parallel"), "S25-1"),
    _run("executor-profile-local", replaced(program_code, "LOCAL", "distributed"), "brief-2.2-09"),
    # sugar
    _run("choose-branches-meet", sugar_without("choose", ".done"), "S39-3"),
    _run("choose-no-branch-holds", sugar_untested("choose", ".when_2"), "S39-6"),
    _run("sugar-nests", sugar_without("choose", ".done"), "S39-7"),
    _run("while-tests-before-each-round", sugar_as("while", "until"), "S39-4"),
    _run("until-tests-after-each-round", sugar_as("until", "while"), "S39-4"),
    _run("while-rounds-bounded", returning(canon_flow, "rounds_of", 7), "S39-5"),
    # templates and expressions
    _run("template-values", templates(one_template_is_text), "S8-1"),
    _run("template-values", templates(text_around_is_dropped), "S8-2"),
    _run("template-values", PLAIN_TEXTS_CHANGE, "S8-3"),
    _run("statements-give-text", statement_is_nothing(t.For), "S12-11"),
    _run("statements-give-text", statement_is_nothing(t.If), "S12-11"),
    _run("names-bare", bare_names_in("ctx", "args", "iter", "workload"), "formal-3.3-01"),
    _run("names-bare", bare_names_in("args", "iter", "ctx", "workload"), "formal-3.3-01"),
    _run("names-bare", bare_names_in("args", "ctx", "workload", "iter"), "formal-3.3-01"),
    _run("guard-truth", b.expressions_call("guard", bool), "S9-3"),
    _run("guard-truth", b.expressions_call("guard", lambda value: value in (True, "true")), "S9-3"),
    _run("undefined-in-args", b.expressions_call("require", lambda value, *_: value), "S10-2"),
    _run("undefined-in-a-delay", b.expressions_call("require", lambda *_: 0), "S10-2"),
    _run("undefined-in-an-input", b.FUEL, "S10-2"),
    _run("undefined-in-loop-in", b.FUEL, "S10-2"),
    _run("evaluation-is-bounded", b.FUEL, "S12-6"),
    _run("undefined-stays-undefined", returning(Undefined, "__bool__", True), "S10-1"),
    _run("undefined-stays-undefined", returning(Undefined, "__eq__", True), "S10-1"),
    _run("undefined-stays-undefined", b.filters_call("default", lambda _, value, *more: value), "S10-1"),
    _run("dots-read-data-only", b.expressions_call("attr", getattr), "S12-10"),
    _run("expressions-of-jinja", b.filters_call("join", lambda *_: ""), "S12-12"),
    _run("expressions-of-jinja", b.filters_call("sort", lambda _, value, *more: value), "S12-12"),
    # numbers
    _run("numbers-as-text", around(numbers, "number_of", lambda _made, value, *_: value), "S52-1"),
    _run("number-that-is-none", returning(numbers, "number_of", 0), "S52-2"),
    *(
        _run(case, returning(numbers, "_shown", "that"), "S52-2")
        for case in (
            "number-that-is-none",
            "rate-that-is-no-number",
            "width-that-is-no-number",
            "attempts-that-are-no-number",
            "rounds-that-are-no-number",
        )
    ),
    # credentials and references
    _run("keychain-before-the-first-token", b.missing_credentials_are_empty, "brief-2.1-01 step-2.1-02 S44-1"),
    _run("keychain-before-the-first-token", returning(UnresolvedError, "__str__", "a credential is missing"), "S44-1"),
    _run("child-masks-secrets-of-its-parent", b.SECRETS_OF_ONE_EXECUTION, "S64-4 S45-1"),
    _run("parent-masks-secrets-of-its-child", b.SECRETS_OF_ONE_EXECUTION, "S64-4"),
    _run("large-result-by-reference", b.references_without("checksum"), "brief-10-03"),
    _run("large-result-by-reference", b.references_without("key"), "brief-10-03"),
    _run("large-result-by-reference", b.references_without("schema_hint"), "brief-10-03"),
)

ENVELOPES: dict[str, tuple[str, Break]] = {
    "formal-10.1-01": ("without step.started", b.unrecorded("step.started")),
    "formal-10.1-02": ("entity_id", returning(envelopes, "_entity_id", "")),
    "formal-10.1-03 source": ("source foreign", b.kind("step.done", plane=b.Foreign)),
    "formal-10.1-03 entity": ("entity foreign", b.kind("step.done", entity=b.Foreign)),
    "formal-10.1-03 status": ("status foreign", b.kind("step.done", status=b.Foreign)),
    "brief-11-01": ("the end has no workflow.finished", b.unrecorded("workflow.finished")),
    "brief-11-02": ("has not begun", b.unrecorded("task.started")),
    "brief-11-03 task": ("lacks task_run_id", b.identifiers_without("task_run_id")),
    "brief-11-03 step": ("lacks step_run_id", b.identifiers_without("step_run_id")),
    "brief-11-03 attempt": ("lacks attempt", b.identifiers_without("attempt")),
    "step-8-02": ("has not begun", b.unrecorded("loop.iteration.started")),
    "S61-6": ("lacks ['trace_id']", around(log_rules, "envelope", b.envelope_without_trace)),
    "S61-7": ("not of a step", b.kind("token.enqueued", entity=b.Other)),
    "formal-11.1-03": ("seq is not dense", b.WITHOUT_FIRST_EVENT),
    "step-1-02": ("seq is not dense", b.WITHOUT_FIRST_EVENT),
}
"""By requirement: what is then wrong with the log, and how the sentence is broken."""
