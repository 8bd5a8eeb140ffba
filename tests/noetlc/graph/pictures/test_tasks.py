"""The inside of a step: tasks, decisions, retries and ways out, as the code has them."""

from __future__ import annotations

from noetlc.compile import compile_playbooks
from noetlc.graph.tasks import TaskGraph, task_graph

_HEAD = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: inside, path: tests/inside }
workload: { url: "https://api.example.com" }
workflow:
  - step: start
    tool:
"""


def graph_of(tool: str) -> TaskGraph:
    compiled = compile_playbooks([("inside.yaml", (_HEAD + tool).encode())])
    assert compiled.program is not None, [one.message for file in compiled.files for one in file.findings]
    pipeline = compiled.program.playbooks[0].steps[0].pipeline
    assert pipeline is not None
    return task_graph(pipeline)


def edges(graph: TaskGraph) -> set[tuple[str, str, str]]:
    return {(graph.nodes[edge.source].label, graph.nodes[edge.target].label, edge.label) for edge in graph.edges}


def test_tasks_follow_each_other_and_may_fail() -> None:
    graph = graph_of("      - one: { kind: noop }\n      - two: { kind: http, url: '{{ workload.url }}' }\n")
    assert edges(graph) == {
        ("begin", "one", ""),
        ("one", "two", ""),
        ("one", "failed", ""),
        ("two", "done", ""),
        ("two", "failed", ""),
    }
    assert [node.tool for node in graph.nodes if node.kind == "task"] == ["noop", "http"]


def test_a_retry_leads_back_to_its_task() -> None:
    graph = graph_of(
        "      - one:\n          kind: noop\n          spec:\n            policy:\n              rules:\n"
        "                - when: \"{{ outcome.status == 'error' }}\"\n"
        "                  then: { do: retry, attempts: 4, backoff: linear, delay: 1 }\n"
        "                - else: { then: { do: continue } }\n"
    )
    assert ("one", "one", "retry, 4 in all") in edges(graph)
    assert ("one", "failed", "") in edges(graph)


def test_sugar_is_drawn_as_decisions() -> None:
    graph = graph_of(
        '      - choose:\n          - when: "{{ workload.url }}"\n'
        "            then:\n              - one: { kind: noop }\n"
        "          - else:\n              then:\n                - two: { kind: noop }\n"
        '      - until:\n          when: "{{ _prev.done }}"\n          max: 20\n          do:\n'
        "            - poll: { kind: noop }\n"
    )
    found = edges(graph)
    decision = next(node.label for node in graph.nodes if node.kind == "decision")
    assert (decision, "one", "yes") in found
    assert (decision, "two", "no") in found
    assert any(edge.label == "after 20 rounds" and edge.is_failure for edge in graph.edges)
    test = next(source for source, target, label in found if target == "done")
    assert any(source == test and label == "no" for source, _, label in found)


def test_jump_and_break_say_so() -> None:
    graph = graph_of(
        "      - one:\n          kind: noop\n          spec:\n            policy:\n              rules:\n"
        "                - when: \"{{ outcome.status == 'error' }}\"\n                  then: { do: fail }\n"
        '                - when: "{{ workload.url }}"\n                  then: { do: jump, to: three }\n'
        "                - else: { then: { do: break } }\n"
        "      - two: { kind: noop }\n      - three: { kind: noop }\n"
    )
    assert ("one", "three", "jump") in edges(graph)
    assert ("one", "done", "break") in edges(graph)
    assert all(node.label != "two" for node in graph.nodes)
