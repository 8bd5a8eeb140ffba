"""The flow of pipelines: which point leads where, what is reached, what can end, and what has happened before."""

from __future__ import annotations

import pytest

from noetlc.analysis.endings import FailureCause
from noetlc.analysis.flow import DONE, FAILED, Flow, tool_can_fail
from noetlc.analysis.model import Model
from noetlc.rules.catalogue import whole_playbook
from noetlc.syntax.playbook_parser import parse_playbook
from noetlc.syntax.span import Source
from noetlc.syntax.yaml_reader import read_document

HTTP = "{kind: http, url: 'https://example.org'}"


def flow_of(*entries: str) -> Flow:
    text = whole_playbook("- step: a\n  tool:\n" + "".join(f"    - {entry}\n" for entry in entries))
    document = read_document(text)
    assert document.root is not None
    parsed = parse_playbook(document.root)
    assert parsed.playbook is not None
    model = Model(Source("a.yaml", text), document, parsed.playbook, parsed.problems)
    (flow,) = model.flows.values()
    return flow


def ways(flow: Flow) -> list[list[int]]:
    return [[way.to for way in point.ways] for point in flow.points]


def acts(label: str, *rules: str) -> str:
    return f"{label}: {{kind: noop, spec: {{policy: {{rules: [{', '.join(rules)}]}}}}}}"


def when(condition: str, then: str) -> str:
    return f"{{when: {condition}, then: {{{then}}}}}"


def otherwise(then: str) -> str:
    return f"{{else: {{then: {{{then}}}}}}}"


MAYBE = "'{{ ctx.a }}'"


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        (["one: {kind: noop}", "two: {kind: noop}"], [[1], [DONE]]),
        ([f"one: {HTTP}"], [[DONE, FAILED]]),
        ([acts("one", otherwise("do: break")), "two: {kind: noop}"], [[DONE], [DONE]]),
        ([acts("one", when(MAYBE, "do: fail")), "two: {kind: noop}"], [[FAILED, 1], [DONE]]),
        ([acts("one", when("false", "do: fail"), otherwise("do: skip"))], [[DONE]]),
        ([acts("one", when("true", "do: fail"), otherwise("do: skip"))], [[FAILED]]),
        ([acts("one", otherwise("do: retry"))], [[0, FAILED]]),
        (
            [acts("one", otherwise("do: jump, to: two")), "one_more: {kind: noop}", "two: {kind: noop}"],
            [[2], [2], [DONE]],
        ),
        (["{kind: noop}", acts("two", otherwise("do: jump, to: task_1"))], [[1], [0]]),
        (["one: {kind: workbook, task: w}"], [[DONE, FAILED]]),
    ],
)
def test_tasks_lead_where_their_rules_say(entries: list[str], expected: list[list[int]]) -> None:
    assert ways(flow_of(*entries)) == expected


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        (f"choose: [{{when: {MAYBE}, then: [{{kind: noop}}]}}]", [[1, 2], [2], [DONE]]),
        (f"choose: [{{when: {MAYBE}, then: []}}, {{else: {{then: [{{kind: noop}}]}}}}]", [[2, 1], [2], [DONE]]),
        ("choose: [{when: true, then: []}, {else: {then: [{kind: noop}]}}]", [[2], [2], [DONE]]),
        ("choose: []", [[1], [DONE]]),
        (f"while: {{when: {MAYBE}, do: [{{kind: noop}}]}}", [[1, 2], [0], [DONE]]),
        ("while: {when: true, do: [{kind: noop}]}", [[1], [0], [DONE]]),
        ("while: {when: false, do: [{kind: noop}]}", [[2], [0], [DONE]]),
        ("while: {when: true, do: []}", [[0], [DONE]]),
        (f"until: {{when: {MAYBE}, do: [{{kind: noop}}]}}", [[1, 2], [0], [DONE]]),
        ("until: {when: true, do: [{kind: noop}]}", [[2], [0], [DONE]]),
        ("until: {when: false, do: [{kind: noop}]}", [[1], [0], [DONE]]),
    ],
)
def test_blocks_lead_into_their_bodies_and_past_them(block: str, expected: list[list[int]]) -> None:
    assert ways(flow_of(block, "last: {kind: noop}")) == expected


def test_until_is_entered_through_its_body() -> None:
    flow = flow_of(f"until: {{when: {MAYBE}, do: [{{until: {{when: {MAYBE}, do: [{{kind: noop}}]}}}}]}}")
    assert flow.start == 2


def test_empty_pipeline_is_done_at_once() -> None:
    flow = flow_of()
    assert flow.start == DONE
    assert flow.reachable == frozenset()
    assert flow.before([]) == ([], [])


@pytest.mark.parametrize(
    ("entries", "is_certain"),
    [
        ([acts("one", otherwise("do: jump, to: one"))], True),
        ([acts("one", otherwise("do: jump, to: nowhere"))], False),
        ([acts("one", otherwise("do: jump"))], False),
        ([acts("one", otherwise("do: dance"))], False),
        ([acts("one", when(MAYBE, ""))], False),
    ],
)
def test_rule_that_does_not_say_where_it_leads_makes_the_flow_uncertain(entries: list[str], is_certain: bool) -> None:
    assert flow_of(*entries).is_certain is is_certain


def test_reached_and_ending_points() -> None:
    flow = flow_of(
        acts("one", when(MAYBE, "do: jump, to: four"), otherwise("do: break")),
        "two: {kind: noop}",
        acts("three", otherwise("do: jump, to: four")),
        acts("four", otherwise("do: jump, to: four")),
    )
    assert flow.reachable == {0, 3}
    assert flow.can_end == {0}


def test_used_up_retry_is_no_way_to_end() -> None:
    flow = flow_of(acts("one", when(MAYBE, "do: retry"), otherwise("do: jump, to: one")))
    assert flow.can_end == frozenset()
    assert flow.failures == {FailureCause.OUTCOME, FailureCause.FUEL}


def test_what_has_happened_before_a_point_is_reported_for_all_ways_and_for_some() -> None:
    flow = flow_of(
        acts("one", when(MAYBE, "do: jump, to: three"), otherwise("do: continue")),
        "two: {kind: noop}",
        acts("three", when(MAYBE, "do: jump, to: two"), otherwise("do: break")),
    )
    surely, maybe = flow.before([0b001, 0b010, 0b100])
    assert surely == [0, 0b001, 0b001]
    assert maybe == [0, 0b111, 0b111]


@pytest.mark.parametrize(("kind", "expected"), [("http", True), ("noop", False), ("", False), ("nothing_known", False)])
def test_only_kinds_that_are_known_to_fail_can_fail(kind: str, expected: bool) -> None:
    assert tool_can_fail(kind) is expected
