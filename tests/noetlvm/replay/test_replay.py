"""A log is decided again as it was; an edited playbook parts from it where the edit matters, and nowhere else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from noetlvm.bridge import compile_texts
from noetlvm.data.event import Recorded
from noetlvm.machine.loaded import LoadedProgram, load_program
from noetlvm.machine.payload import Offload
from noetlvm.machine.replay import Difference
from noetlvm.replay.exact import replay_exactly
from noetlvm.testing.__main__ import run_given
from noetlvm.testing.result import RunResult
from tests.whole.conformance.suite import Case, read_cases

HEAD = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: { name: test, path: tests/test }\n"


def log_of(ran: RunResult) -> list[Recorded]:
    times = zip(ran.events, ran.times, strict=True)
    return [Recorded(seq, f"id-{seq}", time, event) for seq, (event, time) in enumerate(times, 1)]


def with_children(ran: RunResult) -> Iterator[RunResult]:
    yield ran
    for child in ran.children:
        yield from with_children(child)


def differences(program: LoadedProgram, ran: RunResult) -> Iterator[Difference]:
    for one in with_children(ran):
        net = program.playbooks[one.events[0].data["path"]]
        offload = Offload(net.limits.max_payload_bytes, lambda reference: ran.stored[reference.key])
        found = replay_exactly(net, log_of(one), offload)
        if found is not None:
            yield found.difference


def first_difference(program: LoadedProgram, log: list[Recorded]) -> Difference | None:
    found = replay_exactly(program.main, log, Offload())
    return found.difference if found else None


def differs(steps: str, edited: str, **given: Any) -> Difference | None:
    """Run steps, and decide their log again with others."""
    ran = run_given([HEAD + steps], given)
    return next(differences(load_program(compile_texts([HEAD + edited])), ran), None)


@pytest.mark.parametrize(
    "case", [case for case in read_cases("run") if case.expect["status"] != "refused"], ids=lambda case: case.id
)
def test_every_run_is_decided_again_as_it_was(case: Case) -> None:
    texts = [path.read_text(encoding="utf-8") for path in (case.path, *case.companions)]
    given = case.expect.get("given", {})
    program = load_program(compile_texts(texts))
    for schedule in (None, *range(min(given.get("schedules", 0), 5))):
        assert list(differences(program, run_given(texts, given, schedule))) == []


ROUTE = """
workload: { n: 5 }
workflow:
  - step: start
    tool:
      - get: { kind: http, url: https://example.org }
    next:
      arcs:
        - step: low
          when: "{{ workload.n < 10 }}"
        - step: high
          args: { n: "{{ workload.n }}" }
  - step: low
    tool:
      - one: { kind: noop }
  - step: high
    tool:
      - two: { kind: noop }
"""
OK = {"tools": {"get": "ok 1"}}


def test_an_edited_guard_differs_where_it_decides() -> None:
    found = differs(ROUTE, ROUTE.replace("n < 10", "n < 3"), **OK)
    assert found is not None
    assert found.expected is not None
    assert found.found is not None
    names = [event.name for event in run_given([HEAD + ROUTE], OK).events]
    assert found.seq == names.index("next.evaluated") + 1
    assert (found.expected.data["arcs"], found.found.data["arcs"]) == ([0], [1])
    line = (HEAD + ROUTE).splitlines().index('          when: "{{ workload.n < 10 }}"') + 1
    assert found.place.startswith(f"playbook_1:{line}:")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("n < 10", "n < 6"),
        ("{ n: 5 }", "{ n: 5 } # a comment\n"),
        ("{ kind: noop }", "{ kind: noop, desc: does nothing }"),
        ("https://example.org", "https://example.com"),
    ],
)
def test_an_edit_that_changes_no_decision_is_no_difference(old: str, new: str) -> None:
    assert differs(ROUTE, ROUTE.replace(old, new, 1), **OK) is None


@pytest.mark.parametrize(
    ("old", "new", "expected", "found"),
    [
        ("{ n: 5 }", "{ n: 6 }", "workflow.started", "workflow.started"),
        ("- step: low\n          when", "- step: high\n          when", "token.enqueued", "token.enqueued"),
        (
            "  - step: low\n    tool",
            "  - step: low\n"
            "    spec: { policy: { admit: { on_deny: drop, rules: [{ else: { then: { allow: false } } }] } } }\n"
            "    tool",
            "step.scheduled",
            "token.rejected",
        ),
        (
            "  - step: start\n    tool",
            "  - step: start\n    loop: { in: [1], iterator: n }\n    tool",
            "step.scheduled",
            "step.scheduled",
        ),
    ],
)
def test_each_kind_of_edit_is_found(old: str, new: str, expected: str, found: str) -> None:
    assert ROUTE.count(old) == 1
    difference = differs(ROUTE, ROUTE.replace(old, new), **OK)
    assert difference is not None
    assert difference.expected is not None
    assert difference.found is not None
    assert (difference.expected.name, difference.found.name) == (expected, found)


LIMITED = """
workflow:
  - step: start
    spec: { policy: { lifecycle: { timeout_s: 5 } } }
    tool:
      - get: { kind: http, url: https://example.org }
"""


def test_a_longer_time_limit_would_not_have_struck() -> None:
    slow = {"tools": {"get": {"answer": "ok", "takes": 60}}}
    found = differs(LIMITED, LIMITED.replace("timeout_s: 5", "timeout_s: 50"), **slow)
    assert found is not None
    assert (found.expected and found.expected.name, found.found) == ("task.done", None)


GATED = """
workflow:
  - step: start
    next:
      spec: { mode: inclusive }
      arcs: [{ step: slow }, { step: gated }]
  - step: slow
    tool:
      - get: { kind: http, url: https://example.org }
  - step: gated
    spec:
      policy:
        admit:
          rules:
            - when: "{{ slow is defined }}"
              then: { allow: true }
            - else: { then: { allow: false } }
    tool:
      - one: { kind: noop }
"""


def test_a_gate_that_would_have_opened_earlier_is_found_before_the_next_input() -> None:
    slow = {"tools": {"get": [{"answer": "ok", "takes": 60}]}}
    found = differs(GATED, GATED.replace("slow is defined", "true"), **slow)
    assert found is not None
    assert found.found is not None
    assert (found.found.name, found.found.data["step"]) == ("step.scheduled", "gated")
    assert found.place.startswith("playbook_1:")


DECIDED = {
    *("playbook.request.evaluated", "workflow.started", "token.enqueued", "step.scheduled", "next.evaluated"),
    *("workflow.finished", "playbook.processed"),
}


def test_a_decision_that_was_changed_in_the_log_is_found_there() -> None:
    program = load_program(compile_texts([HEAD + ROUTE]))
    log = log_of(run_given([HEAD + ROUTE], OK))
    decided = [one for one in log if one.event.name in DECIDED]
    assert {one.event.name for one in decided} == DECIDED
    for one in decided:
        changed = one._replace(event=one.event._replace(data=one.event.data | {"odd": 1}))
        found = first_difference(program, [changed if other is one else other for other in log])
        assert (found and found.seq, found and found.expected) == (one.seq, changed.event)


def test_a_decision_that_is_not_in_the_log_is_found_there() -> None:
    program = load_program(compile_texts([HEAD + ROUTE]))
    log = log_of(run_given([HEAD + ROUTE], OK))
    for one in log:
        if one.event.name in DECIDED:
            found = first_difference(program, [other for other in log if other is not one])
            assert (found and found.seq, found and found.found) == (one.seq, one.event)


def test_the_outcome_of_a_tool_is_taken_as_it_is_and_the_rest_of_its_event_is_decided_again() -> None:
    program = load_program(compile_texts([HEAD + ROUTE]))
    log = log_of(run_given([HEAD + ROUTE], OK))
    at, done = next((at, one) for at, one in enumerate(log) if one.event.name == "task.done")

    def changed(data: dict[str, Any]) -> list[Recorded]:
        return [*log[:at], done._replace(event=done.event._replace(data=done.event.data | data)), *log[at + 1 :]]

    slower = done.event.data["outcome"] | {"meta": {"attempt": 1, "duration_ms": 7, "ts": 1.0}}
    assert replay_exactly(program.main, changed({"outcome": slower}), Offload()) is None
    for data in ({"odd": 1}, {"do": "jump"}, {"ctx": {"a": 1}}):
        found = first_difference(program, changed(data))
        assert found is not None
        assert found.seq == done.seq
