"""An argument of a workbook call has the value of the call wherever it is read, or the call is refused (P118, S42)."""

from __future__ import annotations

import pytest

from tests.noetlc.canon.canonical import refused, tasks
from tests.noetlc.canon.test_workbook import playbook

WRITE = "{kind: noop, spec: {policy: {rules: [{else: {then: {do: continue, set_ctx: {n: 2}}}}]}}}"
CALL = '      - save: {kind: workbook, task: outer, args: {n: "{{ ctx.n }}"}}\n'
READ = '{kind: noop, text: "{{ args.n }}"}'
AGAIN = '{when: "{{ _attempt == 1 }}", then: {do: retry, attempts: 2%s}}'


def unsteady(shared: str) -> None:
    """Check that the call is refused at the place that reads the argument."""
    message, at = refused(playbook(CALL, shared))
    assert message.startswith("`args.n` is `ctx.n` here")
    assert "args.n" in at


@pytest.mark.parametrize("inner", [READ, f"[{READ}, {{kind: noop}}]", "{kind: workbook, task: innermost}"])
@pytest.mark.parametrize("list_form", [True, False])
def test_an_inner_call_reads_the_arguments_of_the_outer_one(inner: str, list_form: bool) -> None:
    call = "{kind: workbook, task: inner}"
    tasks = f"      - two: {WRITE}\n      - b: {call}\n" if list_form else "      - {kind: workbook, task: both}\n"
    both = f"    both: [two: {WRITE}, b: {call}]\n"
    unsteady(f"    outer:\n{tasks}{both}    inner: {inner}\n    innermost: {READ}\n")


def test_an_argument_that_an_inner_call_replaces_is_not_the_outer_one() -> None:
    call = "{kind: workbook, task: inner, args: {n: 7}}"
    inner = f"    outer:\n      - two: {WRITE}\n      - b: {call}\n    inner: {READ}\n"
    assert tasks(playbook(CALL, inner))["save.b"]["text"] == 7


def test_an_inner_call_that_comes_first_reads_what_the_call_gave() -> None:
    inner = f"    outer:\n      - b: {{kind: workbook, task: inner}}\n      - two: {WRITE}\n    inner: {READ}\n"
    assert tasks(playbook(CALL, inner))["save.b"]["text"] == "{{ ctx.n }}"


@pytest.mark.parametrize("word", ["while", "until"])
def test_the_most_rounds_of_a_block_are_read_in_each_round(word: str) -> None:
    rounds = f'{word}: {{when: "{{{{ ctx.n == 9 }}}}", max: "{{{{ args.n }}}}", do: [{{b: {WRITE}}}]}}'
    unsteady(f"    outer:\n      - {rounds}\n      - c: {{kind: noop}}\n")
    unsteady(f"    outer:\n      - two: {WRITE}\n      - {rounds}\n")


@pytest.mark.parametrize("key", ["attempts", "delay"])
def test_numbers_of_a_retry_are_read_after_the_task(key: str) -> None:
    others = "" if key == "attempts" else "attempts: 2, "
    rule = f'{{else: {{then: {{do: retry, {others}{key}: "{{{{ args.n }}}}"}}}}}}'
    unsteady(f"    outer:\n      - two: {WRITE}\n      - b: {{kind: noop, spec: {{policy: {{rules: [{rule}]}}}}}}\n")


@pytest.mark.parametrize(
    "reading",
    [
        '{kind: noop, text: "{{ args.n }}", spec: {policy: {rules: [%s, {else: {then: {do: continue}}}]}}}',
        '{kind: noop, spec: {policy: {rules: [%s, {when: "{{ args.n }}", then: {do: break}}]}}}',
        '{kind: noop, spec: {policy: {rules: [%s, {else: {then: {do: continue, set_ctx: {m: "{{ args.n }}"}}}}]}}}',
    ],
)
def test_a_retry_that_writes_changes_what_the_next_attempt_reads(reading: str) -> None:
    first = reading % (AGAIN % ", set_ctx: {n: 2}")
    unsteady(f"    outer:\n      - a: {first}\n      - z: {{kind: noop}}\n")
    steady = reading % (AGAIN % ", set_ctx: {m: 2}")
    assert tasks(playbook(CALL, f"    outer:\n      - a: {steady}\n      - z: {{kind: noop}}\n"))


def test_in_a_call_of_a_single_task_a_retry_may_write() -> None:
    shared = (
        "    outer: {kind: noop, text: '{{ args.n }}', spec: {policy: {rules: [%s, {else: {then: {do: skip}}}]}}}\n"
    )
    assert tasks(playbook(CALL, shared % (AGAIN % ", set_ctx: {n: 2}")))["save"]["text"] == "{{ ctx.n }}"
