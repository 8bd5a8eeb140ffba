"""Tasks to pipeline code."""

from __future__ import annotations

import pytest

from noetlc.canon.errors import ExpansionError
from tests.noetlc.codegen.listing import listing
from tests.noetlc.codegen.steps import code_of, pipeline_of

SAVE = "- save: { kind: noop }\n"
SAVE_CODE = ["ENTER 'save'", "CALL 'noop'"]


def rules(*rows: str) -> str:
    """Return a task `fetch` with these rules."""
    listed = "".join(f"        - {row}\n" for row in rows)
    return f"- fetch:\n    kind: http\n    spec:\n      policy:\n        rules:\n{listed}"


def test_without_a_policy_ok_goes_on_and_an_error_fails() -> None:
    assert code_of(SAVE) == [*SAVE_CODE, "ON_ERROR 4", "CONTINUE 5", "FAIL", "END"]


def test_only_a_label_that_is_read_is_bound() -> None:
    reads = '- save: { kind: noop }\n- other: { kind: noop }\n- show: { kind: noop, text: "{{ save.id }}" }\n'
    code = code_of(reads)
    assert code.count("BIND") == 1
    assert code.index("ENTER 'save'") < code.index("BIND") < code.index("ENTER 'other'")


def test_a_label_is_bound_on_continue_and_jump_but_not_on_skip() -> None:
    tasks = rules(
        'when: "{{ outcome.result.a }}"\n          then: { do: skip }',
        'when: "{{ outcome.result.b }}"\n          then: { do: jump, to: show }',
        "else: { then: { do: continue } }",
    )
    code = code_of(tasks + '- show: { kind: noop, text: "{{ fetch }}" }\n')
    before = [code[index - 1].split()[0] for index, line in enumerate(code) if line.startswith(("SKIP", "JUMP_TO"))]
    assert before == ["UNLESS", "BIND"]
    assert code.count("BIND") == 2


def test_inputs_and_spec_are_one_expression_each() -> None:
    pipeline = pipeline_of('- fetch: { kind: http, url: "{{ ctx.url }}", params: { a: 1 }, spec: { timeout: 5 } }')
    assert listing(pipeline)[1] == (
        "CALL 'http' [NAME 'ctx'; ATTR 'url'; REQUIRE 'url'; "
        "CONST {'a': 1}; RECORD ['url', 'params']; RETURN] [CONST {'timeout': 5}; RETURN]"
    )


def test_the_policy_is_no_part_of_the_spec_that_the_tool_gets() -> None:
    assert listing(pipeline_of(rules("else: { then: { do: break } }")))[1].endswith("[CONST {}; RETURN]")


def retry(attempts: str, backoff: str = "'none'", delay: str = "None") -> str:
    """Return a RETRY of the call before it, as `listing` shows it."""
    return f"RETRY {attempts} {backoff} {delay} 1"


@pytest.mark.parametrize(
    ("rule", "code"),
    [
        ("else: { then: { do: continue } }", ["CONTINUE 3"]),
        ("else: { then: { do: break } }", ["BREAK"]),
        ("else: { then: { do: fail } }", ["FAIL"]),
        ("else: { then: { do: jump, to: fetch } }", ["JUMP_TO 0"]),
        ("else: { then: { do: retry } }", [retry("3"), "FAIL"]),
        (
            "else: { then: { do: retry, attempts: 5, backoff: linear, delay: 1.5 } }",
            [retry("5", "'linear'", "[CONST 1.5; RETURN]"), "FAIL"],
        ),
        (
            'else: { then: { do: retry, attempts: 5, delay: "{{ ctx.wait }}" } }',
            [retry("5", delay="[NAME 'ctx'; ATTR 'wait'; REQUIRE 'delay'; RETURN]"), "FAIL"],
        ),
        (
            'else: { then: { do: break, set_ctx: { a: "{{ outcome.result }}" } } }',
            ["PATCH None [NAME 'outcome'; ATTR 'result'; REQUIRE 'set_ctx.a'; RECORD ['a']; RETURN]", "BREAK"],
        ),
        (
            "else: { then: { do: break, set_iter: { a: 1 }, set_ctx: { b: 2 } } }",
            ["PATCH [CONST {'a': 1}; RETURN] [CONST {'b': 2}; RETURN]", "BREAK"],
        ),
        ("else: { then: { do: break, set_ctx: {} } }", ["BREAK"]),
    ],
)
def test_a_directive_is_code(rule: str, code: list[str]) -> None:
    lines = code_of(rules(rule))
    assert lines[:2] == ["ENTER 'fetch'", "CALL 'http'"]
    assert [line for line in lines[2:] if line != "END"] == code


def test_rules_are_tried_in_order_and_without_a_match_the_pipeline_goes_on() -> None:
    tasks = rules(
        "{ when: \"{{ outcome.status == 'error' }}\", then: { do: fail } }", "{ when: true, then: { do: break } }"
    )
    assert code_of(tasks)[2:] == [
        "UNLESS [NAME 'outcome'; ATTR 'status'; CONST 'error'; COMPARE '=='; TRUTH; RETURN] 4",
        "FAIL",
        "UNLESS [CONST True; TRUTH; RETURN] 6",
        "BREAK",
        "CONTINUE 7",
        "END",
    ]


def test_a_leading_skip_that_reads_no_outcome_is_tested_before_the_call() -> None:
    tasks = rules(
        '{ when: "{{ ctx.done }}", then: { do: skip } }',
        '{ when: "{{ outcome.result }}", then: { do: skip } }',
        '{ when: "{{ ctx.late }}", then: { do: skip } }',
    )
    assert [line.partition(" ")[0] for line in code_of(tasks)] == [
        "ENTER", "UNLESS", "SKIP", "CALL", "UNLESS", "SKIP", "UNLESS", "SKIP", "CONTINUE", "END",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("value", "code"),
    [
        ("1", ["ENTER", "UNLESS", "PATCH", "SKIP", "CALL"]),
        ('"{{ outcome.result }}"', ["ENTER", "CALL", "UNLESS", "PATCH", "SKIP"]),
    ],
)
def test_a_skip_waits_for_the_outcome_only_if_it_reads_it(value: str, code: list[str]) -> None:
    tasks = rules(f'{{ when: "{{{{ ctx.done }}}}", then: {{ do: skip, set_ctx: {{ a: {value} }} }} }}')
    assert [line.partition(" ")[0] for line in code_of(tasks)][:5] == code


def test_a_task_that_is_always_skipped_is_never_called() -> None:
    assert code_of(rules("else: { then: { do: skip } }")) == ["ENTER 'fetch'", "SKIP 2", "END"]


def test_tasks_that_nothing_leads_to_have_no_code() -> None:
    code = code_of(rules("else: { then: { do: jump, to: last } }") + SAVE + "- last: { kind: noop }\n")
    assert [line for line in code if line.startswith("ENTER")] == ["ENTER 'fetch'", "ENTER 'last'"]


def test_a_pipeline_that_never_comes_to_its_end_has_no_end() -> None:
    assert code_of(rules("else: { then: { do: jump, to: fetch } }"))[-1] == "JUMP_TO 0"


def flow(label: str, setting: str, *rows: str) -> str:
    listed = f", policy: {{ rules: [{', '.join(rows)}] }}" if rows else ""
    return f"- {label}: {{ kind: noop, spec: {{ flow: {setting}{listed} }} }}\n"


def go_on(when: str) -> str:
    return f'{{ when: "{{{{ {when} }}}}", then: {{ do: continue }} }}'


def jump(to: str) -> str:
    return f"{{ else: {{ then: {{ do: jump, to: {to} }} }} }}"


CTX_A = "[NAME 'ctx'; ATTR 'a'; TRUTH; RETURN]"


def test_choose_is_marks_and_branches_without_tool_calls() -> None:
    tasks = (
        flow("choose_1.when_1", "{}", go_on("ctx.a"), jump("choose_1.else"))
        + SAVE
        + flow("choose_1.when_1.done", "{}", jump("choose_1.end"))
        + flow("choose_1.else", "{}")
        + flow("choose_1.end", "{}")
    )
    assert code_of(tasks) == [
        "MARK 'choose_1.when_1'",
        f"UNLESS {CTX_A} 9",
        *SAVE_CODE,
        "ON_ERROR 6",
        "CONTINUE 7",
        "FAIL",
        "MARK 'choose_1.when_1.done'",
        "GOTO 10",
        "MARK 'choose_1.else'",
        "MARK 'choose_1.end'",
        "END",
    ]


def test_while_tests_before_it_counts_a_round() -> None:
    tasks = (
        flow("while_1", "{ reset: while_1 }")
        + flow("while_1.test", "{ round: while_1, max: 7 }", go_on("ctx.a"), jump("while_1.end"))
        + flow("while_1.again", "{}", jump("while_1.test"))
        + flow("while_1.end", "{}")
    )
    assert code_of(tasks) == [
        "MARK 'while_1'",
        "RESET 0",
        "MARK 'while_1.test'",
        f"UNLESS {CTX_A} 7",
        "ROUND 0 7",
        "MARK 'while_1.again'",
        "GOTO 2",
        "MARK 'while_1.end'",
        "END",
    ]


def test_until_counts_a_round_before_it_tests() -> None:
    tasks = (
        flow("until_1", "{ reset: until_1 }")
        + flow("until_1.do", "{ round: until_1, max: 7 }")
        + flow("until_1.test", "{}", go_on("ctx.a"), jump("until_1.do"))
        + flow("until_1.end", "{}")
    )
    assert code_of(tasks) == [
        "MARK 'until_1'",
        "RESET 0",
        "MARK 'until_1.do'",
        "ROUND 0 7",
        "MARK 'until_1.test'",
        f"UNLESS {CTX_A} 2",
        "MARK 'until_1.end'",
        "END",
    ]


def test_every_block_counts_its_own_rounds() -> None:
    pipeline = pipeline_of(flow("while_1", "{ reset: while_1 }") + flow("while_2", "{ reset: while_2 }"))
    assert pipeline.counters == 2


def test_an_outcome_is_not_visible_before_the_task_has_one() -> None:
    tasks = '- fetch: { kind: http, url: "{{ outcome.result }}" }'
    assert "BARE 'outcome'" in listing(pipeline_of(tasks))[1]


def test_iter_is_a_namespace_only_inside_a_loop() -> None:
    tasks = '- fetch: { kind: http, url: "{{ iter.url }}" }'
    assert "NAME 'iter'" in listing(pipeline_of(tasks, loop=True))[1]
    assert "BARE 'iter'" in listing(pipeline_of(tasks))[1]


def test_a_flow_task_that_nobody_could_have_generated_is_refused() -> None:
    with pytest.raises(ExpansionError):
        code_of(flow("x", "{ surprise: 1 }"))
