"""Policies and control: what each rule of family P3 finds, exactly where, and where it stays silent."""

from __future__ import annotations

import pytest

from noetlc.finding import Severity
from tests.noetlc.rules.lint_text import fixed, lint
from tests.noetlc.rules.marked_text import found_at_marks, policy, task

LOOP = "{in: [1, 2], iterator: item}"
ERROR = "\"{{ outcome.status == 'error' }}\""

HEAD = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: a, path: a/b}
"""


def limited(lifecycle: str) -> str:
    """Return a step with these time limits."""
    return f"- step: a\n  spec: {{policy: {{lifecycle: {lifecycle}}}}}\n  tool: {{kind: noop}}\n"


def executor(limits: str) -> str:
    """Return a playbook with these limits."""
    return (
        HEAD
        + f"executor: {{spec: {{policy: {{limits: {limits}}}}}}}\nworkflow:\n  - {{step: a, tool: {{kind: noop}}}}\n"
    )


@pytest.mark.parametrize(
    ("code", "text", "message"),
    [
        (
            "P301",
            "- step: a\n  tool: {kind: noop, spec: {policy: «retry}}\n",
            "must be a mapping, not the string `retry`",
        ),
        ("P301", "- step: a\n  tool: {kind: noop, spec: {policy: «[]}}\n", "not a list"),
        ("P301", "- step: a\n  tool: {kind: noop, spec: {policy: «{mode: exclusive}}}\n", "has no `rules`"),
        ("P301", "- step: a\n  tool: {kind: noop, spec: {policy: {rules: «{do: fail}}}}\n", "`rules` must be a list"),
        ("P302", task("{set_ctx: {a: 1}}").replace("then", "«then"), "`then` without `do`"),
        ("P302", policy("- «when: '{{ args.a }}'\n- else: {then: {do: fail}}"), "has no `then`"),
        ("P303", task("{do: «contineu}"), "no directive `contineu`"),
        ("P303", task("{do: «[retry]}"), "must be"),
        ("P304", "- step: a\n  spec: {policy: {«rules: []}}\n  tool: {kind: noop}\n", "a step's `spec.policy`"),
        (
            "P304",
            "- step: a\n  loop: {in: [1], iterator: i, spec: {policy: {«do: fail}}}\n  tool: {kind: noop}\n",
            "a loop's `spec.policy`",
        ),
        ("P304", "- step: a\n  next: {spec: {policy: {«retry: 3}}, arcs: [{step: a}]}\n", "`next.spec.policy`"),
        (
            "P304",
            "- step: a\n  spec: {policy: {admit: {rules: [{else: {then: {allow: true, «do: fail}}}]}}}\n"
            "  tool: {kind: noop}\n",
            "the `then` of an admission rule",
        ),
        (
            "P304",
            HEAD + "executor: {spec: {policy: {«attempts: 3}}}\nworkflow:\n  - {step: a, tool: {kind: noop}}\n",
            "`executor.spec.policy`",
        ),
        (
            "P304",
            "- step: a\n  tool: {kind: noop, spec: {policy: {before: [{then: {«do: retry}}, {do: it}], rules: []}}}\n",
            "a hook of `task_1`",
        ),
        ("P305", task("{do: fail, «set_iter: {a: 1}}"), "`get` writes `set_iter`, but step `fetch` has no loop"),
        ("P306", task("{do: «jump}"), "has no target"),
        ("P307", task("{do: «retry}"), "at most 3 times"),
        ("P308", task("{do: retry, attempts: «0}"), "allows no run"),
        ("P308", task("{do: retry, attempts: «often}"), "must be a whole number"),
        ("P308", task("{do: retry, attempts: 2, delay: «-1}"), "not a time to wait"),
        ("P308", task("{do: retry, attempts: 2, delay: «.nan}"), "not a time to wait"),
        ("P308", task("{do: retry, attempts: 2, delay: «soon}"), "must be"),
        (
            "P309",
            policy("- «when: '{{ args.a }}'\n  then: {do: fail}\n  else: {then: {do: fail}}"),
            "`when` and `else`",
        ),
        ("P309", policy("- «then: {do: fail}\n  else: {then: {do: fail}}"), "both `then` and `else`"),
        ("P309", policy("- «then: {do: fail}"), "neither `when` nor `else`"),
        ("P309", policy("- when: '{{ args.a }}'\n  «do: fail"), "one level too high"),
        ("P309", "- step: a\n  tool:\n    - choose:\n        - «when: '{{ args.a }}'\n", "this branch has no `then`"),
        ("P310", policy("- «else: {then: {do: fail}}\n- else: {then: {do: fail}}"), "not the last policy rule"),
        (
            "P311",
            policy("- when: '{{ outcome.error }}'\n  then: {do: fail}").replace("rules", "«rules"),
            "has no `else`",
        ),
        ("P315", task("{do: «retry, attempts: 11, delay: 61}"), "can wait 10 min 10 s in all"),
        ("P316", task('{do: fail, set_ctx: {«"{{ args.key }}": 1}}'), "not a plain name"),
        (
            "P316",
            task("{do: fail, set_iter: {«index: 1, «item: 2, «parent: 3, page: 1}}", loop=LOOP),
            "belongs to the loop",
        ),
        (
            "P318",
            "- step: a\n  loop: {in: [1], iterator: «parent}\n  tool: {kind: noop}\n",
            "an iterator cannot have that name",
        ),
        (
            "P318",
            "- step: a\n  loop: {in: [1], iterator: x, loop: {in: [1], iterator: «x}}\n  tool: {kind: noop}\n",
            "the name of an outer loop's iterator",
        ),
        (
            "P318",
            "- step: a\n  loop: {in: [1], iterator: x, spec: {mode: parallel, policy: {mode: «sequential}}}\n"
            "  tool: {kind: noop}\n",
            "`mode` is `sequential` here and `parallel`",
        ),
        ("P321", limited("{timeout_s: «0, deadline_s: «-1.5}"), "is not a limit"),
        ("P321", limited("{timeout_s: «.inf, deadline_s: «.nan}"), "is not a limit"),
        (
            "P321",
            executor("{max_payload_bytes: «0, max_transitions: «-1}"),
            "is not a limit",
        ),
    ],
)
def test_error_is_found_at_its_place(code: str, text: str, message: str) -> None:
    findings = found_at_marks(text, code)
    assert findings
    assert all(message in finding.message for finding in findings)


@pytest.mark.parametrize(
    ("code", "text", "message"),
    [
        ("P306", task("{do: continue, «attempts: 3}", "noop"), "`do: continue` does not read it"),
        ("P306", task("{do: retry, attempts: 3, «to: get}"), "`to` belongs to `do: jump`"),
        ("P308", task("{do: retry, attempts: 3, delay: «3601}"), "before retry 1 would exceed an hour"),
        ("P308", task("{do: retry, attempts: 9, backoff: exponential, delay: «60}"), "before retry 7"),
        ("P308", task("{do: retry, attempts: 9, backoff: linear, delay: «1000}"), "before retry 4"),
        (
            "P318",
            "- step: a\n  loop: {in: [1], iterator: x, spec: {max_in_flight: «2}}\n  tool: {kind: noop}\n",
            "has no effect",
        ),
        ("P321", limited("{timeout_s: «60, deadline_s: 59.9}"), "`deadline_s: 59.9` ends earlier"),
    ],
)
def test_lesser_mistake_is_a_warning(code: str, text: str, message: str) -> None:
    (finding,) = found_at_marks(text, code)
    assert finding.severity is Severity.WARNING
    assert message in finding.message


@pytest.mark.parametrize(
    "text",
    [
        HEAD
        + "executor: {spec: {policy: {defaults: {«timeouts: {http: 3}, «resources: {cpu: 1}}, «cost: low, "
        + "«placement: here, «backends: [a], results: {«reference_first: true}}}}\n"
        + "workflow:\n  - {step: a, tool: {kind: noop}}\n",
        "- step: a\n  spec: {policy: {emit: {«events: [x]}, «tracing: 1, «quotas: {n: 1}, «compensation: b}}\n"
        "  tool: {kind: noop}\n",
        "- step: a\n  loop:\n    in: [1]\n    iterator: i\n"
        "    spec: {policy: {«ordering: any, «backpressure: {n: 1}, «partitioning: 2}}\n  tool: {kind: noop}\n",
        "- step: a\n  tool: {kind: noop, spec: {policy: {«before: [x], «after: [x], «finally: [x], rules: []}}}\n",
        "- step: a\n  next:\n    spec: {policy: {«priority: 1, «dedupe: true, «partitioning: 1}}\n"
        "    arcs: [{step: a, «spec: {x: 1}}]\n",
    ],
)
def test_a_key_that_nothing_obeys_is_noted(text: str) -> None:
    findings = found_at_marks(text, "P322")
    assert {finding.severity for finding in findings} == {Severity.NOTE}


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("P322", "- step: a\n  tool: {kind: noop, spec: {policy: {before: [], after: [], finally: [], rules: []}}}\n"),
        ("P322", "- step: a\n  next: {spec: {mode: exclusive, policy: {priority: }}, arcs: [{step: a, spec: {}}]}\n"),
        ("P302", task("{do: contineu}")),
        ("P302", policy("- else: {do: fail}")),
        ("P302", policy("- when: '{{ args.a }}'\n  then: fail\n- else: {then: {do: fail}}")),
        ("P303", task("{do: skip}")),
        ("P305", task("{do: fail, set_iter: {a: 1}}", loop=LOOP)),
        ("P305", task("{do: fail, set_iter: {a: 1}}", loop="often")),
        ("P306", task("{do: jump, to: [get]}")),
        ("P307", task("{do: retry, attempts: many}")),
        ("P308", task('{do: retry, attempts: 9, delay: "{{ ctx.wait }}"}')),
        ("P308", task("{do: retry, attempts: 7, backoff: exponential, delay: 60}")),
        ("P309", policy("- expr: '{{ args.a }}'\n  then: {do: fail}")),
        ("P311", policy("- when: true\n  then: {do: fail}")),
        ("P312", "- step: a\n  spec: {policy: {admit: {rules: []}}}\n  tool: {kind: noop}\n"),
        ("P316", task("{do: fail, set_ctx: {index: 1, größe: 2}}")),
        (
            "P318",
            "- step: a\n  loop: {in: [1], iterator: x, spec: {mode: both, max_in_flight: 2}}\n  tool: {kind: noop}\n",
        ),
        ("P321", limited("{timeout_s: 60, deadline_s: 60}")),
        ("P321", limited("{timeout_s: soon, deadline_s: '{{ workload.late }}'}")),
        ("P321", executor("{max_payload_bytes: 4096, max_transitions: 1}")),
    ],
)
def test_silent_where_it_is_right_or_reported_elsewhere(code: str, text: str) -> None:
    assert lint(text, code) == []


def test_words_that_people_try_get_the_directive_that_does_it() -> None:
    (finding,) = found_at_marks(task("{do: «'stop'}"), "P303")
    assert finding.help == "did you mean `break`?"
    assert "then: {do: break}" in fixed(task("{do: 'stop'}"), finding)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (task("{do: retry, delay: 1}  # why"), "then: {do: retry, attempts: 3, delay: 1}  # why\n"),
        (
            task("\n      do: retry  # why\n      delay: 1"),
            "                    attempts: 3\n                    do: retry  # why\n                    delay: 1\n",
        ),
    ],
)
def test_attempts_are_added_without_touching_comments(text: str, expected: str) -> None:
    (finding,) = lint(text, "P307")
    assert finding.fix is not None
    assert finding.fix.safe
    result = fixed(text, finding)
    assert expected in result
    assert lint(result, "P307") == []
    assert {found.code for found in lint(result)} == {found.code for found in lint(text)} - {"P307"}


def test_attempts_merged_in_from_an_anchor_are_not_edited() -> None:
    text = """\
- step: a
  tool:
    - kind: http
      url: https://example.org
      x: &again {do: retry}
      spec: {policy: {rules: [{else: {then: {<<: *again}}}]}}
"""
    (finding,) = lint(text, "P307")
    assert finding.fix is None


SWALLOWED = [
    "- else: {then: {do: «continue}}",
    "- else: {then: {do: «break}}",
    "- when: \"{{ outcome.status == 'ok' }}\"\n  then: {do: continue}\n- else: {then: {do: «continue}}",
    '- when: "{{ ctx.fast | default(false) }}"\n  then: {do: skip}\n- else: {then: {do: «continue}}',
    "- when: true\n  then: {do: «continue}",
]


@pytest.mark.parametrize("rules", SWALLOWED)
def test_an_error_that_no_rule_tests_for_is_found(rules: str) -> None:
    (finding,) = found_at_marks(policy(rules), "P314")
    assert "no rule tests for it" in finding.message


@pytest.mark.parametrize(
    "rules",
    [
        "- when: \"{{ outcome.status == 'error' and outcome.http.status == 429 }}\"\n  then: {do: retry, attempts: 3}",
        "- when: '{{ outcome.error.retryable }}'\n  then: {do: retry, attempts: 3}",
        "- when: \"{{ outcome.status == 'ok' }}\"\n  then: {do: continue}",
    ],
)
def test_error_that_no_rule_matches_is_found(rules: str) -> None:
    (finding,) = found_at_marks(policy(rules).replace("rules:", "«rules:"), "P314")
    assert "no rule matches" in finding.message


@pytest.mark.parametrize(
    "rules",
    [
        f"- when: {ERROR}\n  then: {{do: continue}}",
        "- when: \"{{ outcome.status != 'ok' }}\"\n  then: {do: fail}\n- else: {then: {do: continue}}",
        "- when: \"{{ 'error' == outcome['status'] }}\"\n  then: {do: fail}\n- else: {then: {do: continue}}",
        "- when: '{{ outcome.error is defined }}'\n  then: {do: fail}\n- else: {then: {do: continue}}",
        "- when: \"{{ outcome.status in ['error'] or ctx.a }}\"\n  then: {do: fail}\n- else: {then: {do: continue}}",
        "- when: '{{ outcome.http.status == 404 }}'\n  then: {do: break}\n- else: {then: {do: continue}}",
        "- else: {then: {do: fail}}",
        "- else: {then: {do: skip}}",
        "- else: {then: {do: continue, set_ctx: {code: '{{ outcome.http.status }}'}}}",
    ],
)
def test_error_that_a_rule_sees_is_not_swallowed(rules: str) -> None:
    assert lint(policy(rules), "P314") == []


def test_what_cannot_fail_swallows_nothing() -> None:
    assert lint(task("{do: continue}", "noop"), "P314") == []
    assert lint(task("{do: continue}", "kind_of_a_plugin"), "P314") == []


REDUCERS = """\
- step: a
  loop:
    in: [1]
    iterator: item
    spec: {mode: MODE, policy: {reducers: {«total: sum}}}
  tool: [{kind: noop, spec: {policy: {rules: [{else: {then: {do: continue, set_ctx: {KEY: 1}}}}]}}}TASK]
"""


def reducers(mode: str = "parallel", key: str = "total", more: str = "") -> str:
    return REDUCERS.replace("MODE", mode).replace("KEY", key).replace("TASK", more)


def test_reducer_of_a_sequential_loop_has_nothing_to_do() -> None:
    (finding,) = found_at_marks(reducers("sequential"), "P317")
    assert "the loop is sequential" in finding.message


def test_reducer_of_a_key_that_is_not_written_suggests_the_written_one() -> None:
    (finding,) = found_at_marks(reducers(key="totals"), "P317")
    assert finding.help == "did you mean `totals`?"


def test_reducer_may_be_for_what_a_workbook_task_writes() -> None:
    text = reducers(key="other", more=", {kind: workbook, task: save}").replace("«", "")
    assert lint(text, "P317") == []


def test_related_places_show_the_other_definition() -> None:
    text = "- step: a\n  loop: {in: [1], iterator: x, loop: {in: [1], iterator: x}}\n  tool: {kind: noop}\n"
    (finding,) = lint(text, "P318")
    (related,) = finding.related
    assert related.span.start < finding.span.start
