"""Rules about steps and the ways between them."""

from __future__ import annotations

import pytest

from tests.noetlc.rules.lint_text import lint

FORK = """
- step: start
  next:
    spec: {{mode: inclusive}}
    arcs:
      - {{step: left, when: "{{{{ {left} }}}}"}}
      - {{step: right, when: "{{{{ {right} }}}}"}}
- step: left
  next: {{arcs: [{{step: {back}}}]}}
- step: right
"""


def messages(text: str, code: str) -> list[str]:
    return [finding.message for finding in lint(text, code)]


def test_of_a_step_behind_dead_arcs_only_the_arcs_are_reported() -> None:
    text = """
    - step: start
      next:
        arcs:
          - {step: lost, when: false}
    - step: lost
      next: {arcs: [{step: after}]}
    - step: after
    """
    assert messages(text, "P410") == []
    assert len(messages(text, "P210")) == 1


def test_of_steps_after_a_step_that_never_runs_only_the_first_is_reported() -> None:
    text = """
    - step: start
    - step: lost
      next: {arcs: [{step: after}]}
    - step: after
      next: {arcs: [{step: last}]}
    - step: last
    """
    assert messages(text, "P410") == ["`lost` never runs: no arc leads to it"]


def test_of_a_cycle_that_nothing_leads_to_the_first_step_is_reported() -> None:
    text = """
    - step: start
    - step: one
      next: {arcs: [{step: two}]}
    - step: two
      next: {arcs: [{step: one}, {step: three}]}
    - step: three
    """
    assert messages(text, "P410") == ["`one` never runs: no arc that can fire leads to it"]


def test_a_gate_that_never_opens_is_reported() -> None:
    text = """
    - step: start
      spec: {policy: {admit: {rules: [{else: {then: {allow: false}}}]}}}
      tool: {kind: noop}
    """
    assert messages(text, "P410") == ["`start` never runs: its admission rules never admit a token"]


def test_nothing_is_said_of_steps_where_a_name_is_wrong() -> None:
    text = """
    - step: start
      next: {arcs: [{step: lod}]}
    - step: load
    """
    assert messages(text, "P410") == []


def test_two_arcs_can_take_everything_together() -> None:
    text = """
    - step: start
      next:
        arcs:
          - {step: one, when: "{{ workload.n | default(0) == 1 }}"}
          - {step: two, when: "{{ workload.n | default(0) != 1 }}"}
          - {step: three}
    - step: one
    - step: two
    - step: three
    """
    assert messages(text, "P411") == [
        "the arc from `start` to `three` never fires: the arcs before it together are taken whenever it could be"
    ]


@pytest.mark.parametrize("when", ["event.name == 'step.failed'", "event.status == 'error'", "event.error is defined"])
def test_an_error_arc_of_a_pure_routing_step_is_dead(when: str) -> None:
    text = f"""
    - step: start
      next:
        arcs:
          - {{step: rescue, when: "{{{{ {when} }}}}"}}
    - step: rescue
    """
    assert messages(text, "P411") == ["the arc from `start` to `rescue` never fires: `start` cannot fail"]


def test_a_step_that_may_come_too_late_can_fail() -> None:
    text = """
    - step: start
      spec: {policy: {lifecycle: {deadline_s: 60}}}
      next:
        arcs:
          - {step: rescue, when: "{{ event.name == 'step.failed' }}"}
    - step: rescue
    """
    assert messages(text, "P411") == []


def test_an_input_that_is_computed_can_fail() -> None:
    text = """
    - step: start
      tool: {kind: noop, note: "{{ workload.note }}"}
      next:
        arcs:
          - {step: rescue, when: "{{ event.name == 'step.failed' }}"}
    - step: rescue
    """
    assert messages(text, "P411") == []


def test_the_way_round_is_shown() -> None:
    text = """
    - step: start
      tool: {kind: http, url: https://example.org}
      next: {arcs: [{step: again}]}
    - step: again
      next: {arcs: [{step: start}]}
    """
    (finding,) = lint(text, "P412")
    assert [related.message for related in finding.related] == ["the cycle: start → again → start"]
    assert lint(text, "P414") == []


def test_a_cycle_without_exit_and_without_a_tool_is_an_error() -> None:
    text = """
    - step: start
      next: {arcs: [{step: again}]}
    - step: again
      tool: [{choose: [{when: "{{ workload.x | default(1) }}", then: [{kind: noop}]}]}]
      next: {arcs: [{step: start}]}
    """
    (finding,) = lint(text, "P414")
    assert finding.severity.value == "error"
    assert "no step on it calls a tool" in finding.message
    assert lint(text, "P412") == []


def test_a_gate_that_may_hold_is_a_way_out() -> None:
    text = """
    - step: start
      spec: {policy: {admit: {rules: [{when: "{{ workload.open | default(false) }}", then: {allow: true}}]}}}
      next: {arcs: [{step: start}]}
    """
    assert messages(text, "P412") == []


def test_arcs_that_exclude_each_other_leave_no_token_behind() -> None:
    excluding = FORK.format(left="event.result.n == 1", right="event.result.n == 2", back="start")
    free = FORK.format(left="event.result.n == 1", right="event.result.m == 2", back="start")
    assert messages(excluding, "P413") == []
    assert messages(free, "P413") == [
        "tokens accumulate at `right`: each round through `start` fires the arc to it together with the arc to `left`, "
        "which leads back"
    ]
