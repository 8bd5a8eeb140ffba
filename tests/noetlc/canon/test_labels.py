"""Labels: every task has one, and it depends on the task's place alone (S5, S40)."""

from __future__ import annotations

import pytest

from noetlc.analysis.model import Model
from noetlc.syntax.playbook_parser import parse_playbook
from noetlc.syntax.span import Source
from noetlc.syntax.yaml_reader import read_document
from tests.noetlc.canon.canonical import canonical, labels
from tests.noetlc.rules.lint_text import whole_playbook

NESTED = """
- step: start
  tool:
    - {kind: noop}
    - choose:
        - when: "{{ workload.a }}"
          then:
            - {kind: noop}
            - while:
                when: "{{ workload.b }}"
                do:
                  - choose:
                      - when: "{{ workload.c }}"
                        then: [{kind: noop}]
                  - {kind: noop}
        - else:
            then:
              - {name: named, kind: noop}
    - until:
        when: "{{ workload.d }}"
        do: [{kind: noop}]
    - {kind: noop}
"""


@pytest.mark.parametrize(
    ("tool", "expected"),
    [
        ("{kind: noop}", ["task_1"]),
        ("{name: only, kind: noop}", ["only"]),
        ("[{kind: noop}, {kind: noop}]", ["task_1", "task_2"]),
        ("[a: {kind: noop}, {kind: noop}, {name: c, kind: noop}]", ["a", "task_2", "c"]),
        ("[]", []),
    ],
)
def test_every_tool_shape_becomes_a_list_of_labelled_tasks(tool: str, expected: list[str]) -> None:
    assert labels(f"- step: start\n  tool: {tool}\n") == expected


def test_the_labels_of_written_tasks_are_those_that_jumps_and_lint_know() -> None:
    text = whole_playbook(NESTED)
    document = read_document(text)
    assert document.root is not None
    playbook = parse_playbook(document.root).playbook
    assert playbook is not None
    known = [view.label for view in Model(Source("", text), document, playbook, ()).tasks]
    assert [label for label in labels(NESTED) if label in known] == known


def test_generated_labels_say_where_their_block_stands() -> None:
    assert labels(NESTED) == [
        "task_1",
        "choose_1.when_1",
        "choose_1.when_1.task_1",
        "choose_1.when_1.while_1",
        "choose_1.when_1.while_1.test",
        "choose_1.when_1.while_1.do.choose_1.when_1",
        "choose_1.when_1.while_1.do.choose_1.when_1.task_1",
        "choose_1.when_1.while_1.do.choose_1.end",
        "choose_1.when_1.while_1.do.task_2",
        "choose_1.when_1.while_1.again",
        "choose_1.when_1.while_1.end",
        "choose_1.when_1.done",
        "choose_1.else",
        "named",
        "choose_1.end",
        "until_1",
        "until_1.do",
        "until_1.do.task_1",
        "until_1.test",
        "until_1.end",
        "task_4",
    ]


def test_a_label_survives_edits_elsewhere() -> None:
    before = labels(NESTED)
    further_step = "- step: other\n  tool: [{kind: noop}, {kind: noop}]\n" + NESTED.lstrip("\n")
    assert labels(further_step, 1) == before
    longer_body = NESTED.replace(
        "            - {kind: noop}\n", "            - {kind: noop}\n            - {name: x, kind: noop}\n", 1
    )
    assert [label for label in labels(longer_body) if label != "x"] == before
    task_before_the_block = NESTED.replace(
        '    - choose:\n        - when: "{{ workload.a',
        '    - {name: y, kind: noop}\n    - choose:\n        - when: "{{ workload.a',
    )
    assert labels(task_before_the_block) == ["task_1", "y", *before[1:-1], "task_5"]


def test_a_label_that_would_begin_a_block_is_printed_as_a_name() -> None:
    tool = canonical("- step: start\n  tool: {name: while, kind: noop}\n").playbook
    from noetlc.syntax.playbook_printer import tree_data

    assert tree_data(tool)["workflow"][0]["tool"] == [{"name": "while", "kind": "noop"}]
