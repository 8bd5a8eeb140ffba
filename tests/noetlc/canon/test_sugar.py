"""`choose`, `while` and `until` as flow tasks: who goes where, and that nothing falls through (S39 to S41)."""

from __future__ import annotations

from typing import Any

import pytest

from noetlc.canon.errors import ExpansionError
from noetlc.canon.flow import FlowTask, closure, flow_of
from noetlc.syntax import ast
from tests.noetlc.canon.canonical import canonical, labels, refused, tasks

BREAKS = "spec: {policy: {rules: [{else: {then: {do: break}}}]}}"


def pipeline(text: str) -> list[ast.Task]:
    step = (canonical(text).playbook.workflow or ())[0]
    return [task for task in step.tool or () if isinstance(task, ast.Task)]


def flows(text: str) -> dict[str, FlowTask]:
    found = {task.label.text: flow_of(task) for task in pipeline(text) if task.label}
    return {label: flow for label, flow in found.items() if flow is not None}


def path(text: str, **truths: bool) -> list[str]:
    """Follow control through a pipeline whose tasks all continue; each guard is named by the word in it."""
    places = pipeline(text)
    numbers = {task.label.text: number for number, task in enumerate(places) if task.label}
    at, seen = 0, []
    while at < len(places) and len(seen) < 50:
        task = places[at]
        flow = flow_of(task)
        if flow is None:
            seen.append(task.label.text if task.label else "")
        holds = flow is None or (flow.to is None if flow.test is None else _truth(flow.test.text, truths, len(seen)))
        at = at + 1 if holds or flow is None or flow.to is None else numbers[flow.to]
    return seen


def _truth(guard: str, truths: dict[str, bool], ran: int) -> bool:
    word = guard.removeprefix("{{ workload.").removesuffix(" }}")
    return ran < 3 if word == "fewer_than_3" else ran >= 3 if word == "at_least_3" else truths[word]


CHOOSE = """
- step: start
  tool:
    - choose:
        - when: "{{ workload.one }}"
          then: [a: {kind: noop}, b: {kind: noop}]
        - when: "{{ workload.two }}"
          then: [c: {kind: noop}]
        - else:
            then: [d: {kind: noop}]
    - after: {kind: noop}
"""


@pytest.mark.parametrize(
    ("one", "two", "expected"),
    [
        (True, True, ["a", "b", "after"]),
        (True, False, ["a", "b", "after"]),
        (False, True, ["c", "after"]),
        (False, False, ["d", "after"]),
    ],
)
def test_choose_takes_one_branch_and_meets_after_it(one: bool, two: bool, expected: list[str]) -> None:
    assert path(CHOOSE, one=one, two=two) == expected


def test_choose_without_else_goes_straight_on() -> None:
    choose = 'choose: [{when: "{{ workload.one }}", then: [a: {kind: noop}]}]'
    text = f"- step: s\n  tool:\n    - {choose}\n    - z: {{kind: noop}}\n"
    assert path(text, one=False) == ["z"]
    assert path(text, one=True) == ["a", "z"]


@pytest.mark.parametrize(
    ("word", "guard", "expected"),
    [
        ("while", "fewer_than_3", ["a", "a", "a", "z"]),
        ("while", "never", ["z"]),
        ("until", "at_least_3", ["a", "a", "a", "z"]),
        ("until", "always", ["a", "z"]),
    ],
)
def test_while_tests_before_each_round_and_until_after(word: str, guard: str, expected: list[str]) -> None:
    text = f"""
- step: start
  tool:
    - {word}:
        when: "{{{{ workload.{guard} }}}}"
        do: [a: {{kind: noop}}]
    - z: {{kind: noop}}
"""
    assert path(text, never=False, always=True) == expected


def test_nested_blocks_keep_to_themselves() -> None:
    text = """
- step: start
  tool:
    - while:
        when: "{{ workload.fewer_than_3 }}"
        do:
          - choose:
              - when: "{{ workload.one }}"
                then:
                  - until:
                      when: "{{ workload.always }}"
                      do: [a: {kind: noop}]
              - else:
                  then: [b: {kind: noop}]
          - c: {kind: noop}
    - z: {kind: noop}
"""
    assert path(text, one=True, always=True) == ["a", "c", "a", "c", "z"]
    assert path(text, one=False, always=True) == ["b", "c", "b", "c", "z"]


@pytest.mark.parametrize("body", ["[]", "[a: {kind: noop}]"])
def test_rounds_are_counted_on_a_counter_of_the_block(body: str) -> None:
    text = f'- step: s\n  tool:\n    - while: {{when: "{{{{ workload.x }}}}", max: 7, do: {body}}}\n'
    found = flows(text)
    assert found["while_1"].reset == "while_1"
    assert (found["while_1.test"].round, found["while_1.test"].max) == ("while_1", 7)
    until = flows(text.replace("while:", "until:").replace(" max: 7,", ""))
    assert until["until_1"].reset == "until_1"
    assert (until["until_1.do"].round, until["until_1.do"].max) == ("until_1", 10_000)
    assert until["until_1.test"].round is None


@pytest.mark.parametrize("rounds", ["-1", "2147483648"])
def test_a_number_of_rounds_that_no_counter_holds_is_refused(rounds: str) -> None:
    text = f'- step: s\n  tool:\n    - while: {{when: "{{{{ workload.x }}}}", max: {rounds}, do: []}}\n'
    assert refused(text) == ("`max` is a number of rounds, from 0 to 2,147,483,647", rounds)


def test_what_no_way_leads_to_is_not_generated() -> None:
    text = CHOOSE.replace("b: {kind: noop}", f"b: {{kind: noop, {BREAKS}}}")
    assert "choose_1.when_1.done" in labels(CHOOSE)
    assert "choose_1.when_1.done" not in labels(text)
    places = pipeline(text)
    assert closure(places, [0]) == frozenset(range(len(places)))


def test_an_unreachable_task_of_the_author_stays() -> None:
    text = f"- step: s\n  tool:\n    - a: {{kind: noop, {BREAKS}}}\n    - b: {{kind: noop}}\n"
    assert labels(text) == ["a", "b"]


def test_jump_and_break_inside_blocks_stay_what_they_are() -> None:
    text = """
- step: start
  tool:
    - first: {kind: noop}
    - while:
        when: "{{ workload.x }}"
        do:
          - a:
              kind: noop
              spec:
                policy:
                  rules: [{when: "{{ ctx.again }}", then: {do: jump, to: first}}, {else: {then: {do: break}}}]
"""
    rules = tasks(text)["a"]["spec"]["policy"]["rules"]
    assert [rules[0]["then"], rules[1]["else"]["then"]] == [{"do": "jump", "to": "first"}, {"do": "break"}]
    assert labels(text) == ["first", "while_1", "while_1.test", "a", "while_1.end"]


def test_a_written_label_that_a_block_needs_is_refused() -> None:
    message, _ = refused(CHOOSE.replace("after:", "choose_1.end:"))
    assert "`choose_1.end`" in message


def test_every_generated_task_leads_back_to_its_block() -> None:
    form = canonical(CHOOSE)
    origin = form.origin("start", "choose_1.when_2")
    assert origin.construct == "choose"
    assert form.source.text[origin.span.start :].startswith("choose:")
    assert form.origin("start", "a").construct == "task a"


def _task(spec: dict[str, Any]) -> ast.Task:
    import json

    text = f"- step: s\n  tool:\n    - a: {{kind: noop, spec: {json.dumps(spec)}}}\n    - b: {{kind: noop}}\n"
    from noetlc.syntax.playbook_parser import parse_playbook
    from noetlc.syntax.yaml_reader import read_document
    from tests.noetlc.rules.lint_text import whole_playbook

    root = read_document(whole_playbook(text)).root
    assert root is not None
    playbook = parse_playbook(root).playbook
    assert playbook is not None
    task = ((playbook.workflow or ())[0].tool or ())[0]
    assert isinstance(task, ast.Task)
    return task


JUMP = {"else": {"then": {"do": "jump", "to": "b"}}}


@pytest.mark.parametrize(
    "spec",
    [
        {"flow": True},
        {"flow": {"unless": "b"}},
        {"flow": {"round": "x"}},
        {"flow": {"round": "x", "max": "many"}},
        {"flow": {"round": "x", "max": [1]}},
        {"flow": {"reset": 3}},
        {"flow": {}, "policy": {"rules": [{"else": {"then": {"do": "continue"}}}]}},
        {"flow": {}, "policy": {"rules": [{"when": True, "then": {"do": "break"}}, JUMP]}},
        {"flow": {}, "policy": {"rules": [{"when": True, "then": {"do": "continue", "set_ctx": {"a": 1}}}, JUMP]}},
    ],
)
def test_a_flow_task_that_says_more_than_it_may_is_refused(spec: dict[str, Any]) -> None:
    with pytest.raises(ExpansionError):
        flow_of(_task(spec))


def test_a_task_without_flow_is_no_flow_task() -> None:
    assert flow_of(_task({"timeout": 3})) is None
