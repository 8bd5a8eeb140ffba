"""What compiled playbooks do where a shorter lowering would do something else: run with scripted tools."""

from __future__ import annotations

from typing import Any

import pytest

from noetlvm.testing import RunResult, run_playbook

FAILS = "error {kind: shell, retryable: true, message: no}"


def run(tool: str, more: str = "", loop: str = "", **given: Any) -> RunResult:
    """Run a step with these tasks; `more` is the rest of the playbook."""
    head = f"apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {{name: k, path: t/k}}\n{more}"
    return run_playbook(f"{head}workflow:\n  - step: start\n{loop}    tool:\n{tool}", **given)


def written(value: str) -> str:
    return (
        f"{{kind: noop, spec: {{policy: {{rules: [{{else: {{then: {{do: continue, set_ctx: {{n: {value}}}}}}}}}]}}}}}}"
    )


def judged(*rules: str, kind: str = "kind: shell, command: [run]") -> str:
    return f"{{{kind}, spec: {{policy: {{rules: [{', '.join(rules)}]}}}}}}"


FAILED = "{when: \"{{ outcome.status == 'error' }}\", then: {do: retry, %s}}"


@pytest.mark.parametrize(("then", "times"), [("attempts: 2, delay: '{{ ctx.n }}', set_ctx: {n: 3}", [0, 1])])
def test_a_delay_is_computed_before_its_own_then_writes(then: str, times: list[int]) -> None:
    tool = f"      - one: {written('1')}\n      - a: {judged(FAILED % then)}\n"
    assert [call.at for call in run(tool, scripts={"a": "error"}).calls if call.task == "a"] == times


def test_attempts_are_computed_before_their_own_then_writes() -> None:
    rule = FAILED % "attempts: '{{ ctx.n }}', set_ctx: {n: 3}"
    tool = f"      - one: {written('1')}\n      - a: {judged(rule)}\n"
    ran = run(tool, scripts={"a": "error"})
    assert len([call for call in ran.calls if call.task == "a"]) == 1
    assert ran.ctx == {"n": 3}


def test_numbers_of_a_retry_that_fail_leave_nothing_written() -> None:
    rule = FAILED % "attempts: '{{ ctx.none }}', set_ctx: {n: 3}"
    ran = run(f"      - a: {judged(rule)}\n", scripts={"a": "error"})
    assert (ran.status, ran.ctx) == ("failed", {})


@pytest.mark.parametrize("guard", ["_attempt >= 2", "ctx.n == 2"])
@pytest.mark.parametrize("delay", ["0", "100"])
def test_leading_skip_rules_are_tested_before_every_attempt(guard: str, delay: str) -> None:
    skip = f'{{when: "{{{{ {guard} }}}}", then: {{do: skip}}}}'
    again = FAILED % f"attempts: 4, delay: {delay}, set_ctx: {{n: 2}}"
    ran = run(f"      - a: {judged(skip, again, '{else: {then: {do: continue}}}')}\n", scripts={"a": "error"})
    assert ran.status == "success"
    assert len(ran.calls) == 1


UNDEFINED = '{kind: workbook, task: w, args: {x: "a{{ ctx.nope }}b"}}'


@pytest.mark.parametrize("read", ["{{ args.x }}", "{{ args.x }} z", "{{ args.x ~ 'z' }} {{ args.x }}"])
@pytest.mark.parametrize("is_list", [True, False])
def test_what_is_undefined_in_the_text_of_an_argument_fails_the_task(read: str, is_list: bool) -> None:
    task = f'{{kind: python, args: {{v: "{read}"}}, code: result = v}}'
    many = f"[{task}, {{kind: noop}}]"
    shared = f"workbook: {{tasks: {{w: {many if is_list else task}}}}}\n"
    ran = run(f"      - c: {UNDEFINED}\n", shared)
    assert ran.status == "failed"
    assert ran.failures[0]["error"]["kind"] == "template"
    assert "nope" in ran.failures[0]["error"]["message"]


def test_a_default_applies_to_a_text_with_something_undefined() -> None:
    shared = "workbook: {tasks: {w: {kind: python, args: {v: \"{{ args.x | default('z') }}\"}, code: result = v}}}\n"
    ran = run(f"      - c: {UNDEFINED}\n", shared, scripts={"c": "echo"})
    assert ran.calls[0].inputs["args"] == {"v": "z"}


STORE = "workbook: {tasks: {store: [{rows: {kind: python, code: result = 9}}, {mark: {kind: noop}}]}}\n"
TELL = '      - tell: {kind: python, args: {v: "{{ save.rows }}"}, code: result = v}\n'


@pytest.mark.parametrize(
    ("more", "before", "loop"),
    [
        ("workload: {save: {rows: 5}}\n", "", ""),
        ("", "set_ctx: {save: {rows: 5}}", ""),
        ("", "", "    loop: {in: [{rows: 5}], iterator: save}\n"),
    ],
)  # fmt: skip
def test_a_value_wins_over_the_path_of_a_label(more: str, before: str, loop: str) -> None:
    writer = judged(f"{{else: {{then: {{do: continue, {before}}}}}}}", kind="kind: noop") if before else "{kind: noop}"
    tool = f"      - w: {writer}\n      - save: {{kind: workbook, task: store}}\n{TELL}"
    ran = run(tool, more + STORE, loop, scripts={"rows": "ok 9", "save.rows": "ok 9", "tell": "echo"})
    assert [call.inputs["args"] for call in ran.calls if call.task == "tell"] == [{"v": 5}]


def test_a_label_of_a_call_is_read_where_no_value_has_its_name() -> None:
    ran = run(
        f"      - save: {{kind: workbook, task: store}}\n{TELL}", STORE, scripts={"save.rows": "ok 9", "tell": "echo"}
    )
    assert [call.inputs["args"] for call in ran.calls if call.task == "tell"] == [{"v": 9}]


ROUNDS = {
    "until": '      - until: {when: "{{ ctx.n == 3 }}", %s do: [{count: %s}]}\n',
    "while": '      - while: {when: "{{ ctx.n | default(0) < 3 }}", %s do: [{count: %s}]}\n',
}
COUNT = written("'{{ ctx.n | default(0) + 1 }}'")


@pytest.mark.parametrize("delay", ["", "delay: 1,", "delay: 1000,", "delay: '{{ ctx.n }}',"])
@pytest.mark.parametrize("word", ["until", "while"])
def test_a_wait_between_rounds_is_no_task(word: str, delay: str) -> None:
    limits = "executor: {spec: {limits: {max_transitions: %s}}}\n"
    assert run(ROUNDS[word] % (delay, COUNT), limits % 3).ctx == {"n": 3}
    failed = run(ROUNDS[word] % (delay, COUNT), limits % 2)
    assert failed.failures[0]["error"]["kind"] == "fuel"


@pytest.mark.parametrize("delay", ["", "delay: 1,", "delay: 1000,", "delay: '{{ _attempt }}',"])
def test_names_do_not_show_a_wait_between_rounds(delay: str) -> None:
    tool = """      - while:
          when: "{{ _attempt | default(1) == 1 and _task | default('count') == 'count' }}"
          max: 3
          %s
          do: [{count: {kind: noop}}]
"""
    ran = run(tool % delay.rstrip(","))
    assert len([event for event in ran.events if event.name == "task.done" and event.label == "count"]) == 3
    assert ran.failures[0]["error"]["message"].endswith("went round 3 times, as often as `max` allows")


@pytest.mark.parametrize("delay", ["1", "1000"])
def test_a_task_after_a_wait_reads_the_result_and_the_label_before_it(delay: str) -> None:
    tool = (
        f"      - until: {{when: '{{{{ ctx.n == 2 }}}}', delay: {delay}, do: [{{count: {COUNT}}}, "
        "{show: {kind: python, args: {before: '{{ _prev }}'}, code: result = 7}}]}\n"
    )
    ran = run(tool, scripts={"show": "ok 7"})
    assert ran.seconds == int(delay)
    assert ran.result == 7
