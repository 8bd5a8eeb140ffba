"""Effective specs: who wins, what merges, what stays behind (S38, step spec §3, brief §4)."""

from __future__ import annotations

from tests.noetlc.canon.canonical import data, tasks

LAYERS = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: layers, path: demo/layers}
executor:
  profile: local
  spec:
    entry_step: start
    by: executor
    tags: [executor]
    shared: {from_executor: 1, who: executor}
    http: {timeout: {connect: 3}, by: executor for http}
    policy: {limits: {max_transitions: 5}}
workflow:
  - step: start
    spec:
      by: step
      tags: [step]
      shared: {from_step: 2, who: step}
      policy: {lifecycle: {timeout_s: 9}}
    loop:
      in: [1]
      iterator: outer
      spec: {mode: parallel, shared: {who: outer loop}}
      loop:
        in: [2]
        iterator: inner
        spec: {tags: [inner], shared: {who: inner loop}}
    tool:
      - get: {kind: http, url: "https://example.org", spec: {shared: {who: task}}}
      - rest: {kind: noop}
  - step: bare
    tool:
      - get: {kind: http, url: "https://example.org"}
"""


def test_inner_scopes_win_and_mappings_merge_and_lists_are_replaced() -> None:
    assert tasks(LAYERS)["get"]["spec"] == {
        "timeout": {"connect": 3, "read": 60},
        "follow_redirects": False,
        "verify_tls": True,
        "by": "step",
        "tags": ["inner"],
        "shared": {"from_executor": 1, "from_step": 2, "who": "task"},
    }
    assert tasks(LAYERS)["rest"]["spec"]["shared"]["who"] == "inner loop"


def test_settings_under_the_name_of_a_kind_are_for_that_kind() -> None:
    assert "http" not in tasks(LAYERS)["rest"]["spec"]
    assert tasks(LAYERS, 1)["get"]["spec"]["by"] == "executor for http"


def test_outer_scopes_keep_what_means_something_there() -> None:
    form = data(LAYERS)
    assert form["executor"] == {
        "profile": "local",
        "spec": {"entry_step": "start", "policy": {"limits": {"max_transitions": 5}}},
    }
    step = form["workflow"][0]
    assert step["spec"] == {"policy": {"lifecycle": {"timeout_s": 9}}}
    assert step["loop"]["spec"] == {"mode": "parallel"}
    assert step["loop"]["loop"] == {"in": [2], "iterator": "inner"}


def test_an_executor_that_has_nothing_left_is_gone() -> None:
    form = data(
        LAYERS.replace("  profile: local\n", "")
        .replace("    entry_step: start\n", "")
        .replace("    policy: {limits: {max_transitions: 5}}\n", "")
    )
    assert "executor" not in form


def test_policy_is_not_inherited() -> None:
    assert "policy" not in tasks(LAYERS)["get"]["spec"]


def test_what_the_executor_says_stays_text_in_a_task() -> None:
    text = LAYERS.replace("by: executor\n", 'by: "{{ workload.x }}"\n')
    assert tasks(text, 1)["get"]["spec"]["by"] == "executor for http"
    assert tasks(text.replace(", by: executor for http", ""), 1)["get"]["spec"]["by"] == "{{ '{{ workload.x }}' }}"


def test_generated_tasks_have_no_inner_settings() -> None:
    text = LAYERS.replace("- rest: {kind: noop}", '- choose: [{when: "{{ workload.x }}", then: []}]')
    assert tasks(text)["choose_1.end"]["spec"] == {"flow": {}}


def test_a_router_says_its_mode() -> None:
    step = "- step: a\n  next: {%s arcs: [{step: b}]}\n- step: b\n  tool: {kind: noop}\n"
    assert data(step % "")["workflow"][0]["next"] == {"spec": {"mode": "exclusive"}, "arcs": [{"step": "b"}]}
    inclusive = data(step % "spec: {mode: inclusive, policy: {priority: 1}, hint: x},")["workflow"][0]["next"]
    assert inclusive["spec"] == {"mode": "inclusive", "policy": {"priority": 1}, "hint": "x"}


def test_a_step_without_tool_or_next_stays_so() -> None:
    assert data("- step: a\n")["workflow"] == [{"step": "a"}]
