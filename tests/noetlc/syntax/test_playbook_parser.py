"""The structural grammar: keywords only where they are keywords, every mistake in one run, always a tree."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noetlc.syntax import ast
from noetlc.syntax.lalr import Production, grammar_text, load_grammar
from noetlc.syntax.nodes import plain
from noetlc.syntax.playbook_parser import OBJECTS, REQUIRED, TITLES, ParsedPlaybook, parse_playbook
from noetlc.syntax.playbook_printer import print_playbook, tree_data
from noetlc.syntax.span import Source
from noetlc.syntax.tree import structs
from noetlc.syntax.yaml_reader import read_document

HEAD = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: a, path: b}\n"


def parse(text: str) -> ParsedPlaybook:
    root = read_document(text).root
    assert root is not None
    return parse_playbook(root)


def parse_step(body: str) -> ast.Step:
    parsed = parse(HEAD + "workflow:\n  - step: start\n" + re.sub("^", "    ", body, flags=re.MULTILINE))
    assert parsed.problems == ()
    assert parsed.playbook is not None
    assert parsed.playbook.workflow
    return parsed.playbook.workflow[0]


def labels(step: ast.Step) -> list[str | None]:
    assert step.tool is not None
    return [entry.label.text if entry.label else None for entry in step.tool if isinstance(entry, ast.Task)]


def test_words_of_the_language_may_be_labels_and_inputs() -> None:
    step = parse_step(
        "tool:\n  - spec: {kind: noop, step: 3, mode: x, loop: y}\n  - next: {kind: noop, when: no, rules: [1]}\n"
    )
    assert labels(step) == ["spec", "next"]
    assert step.tool is not None
    first = step.tool[0]
    assert isinstance(first, ast.Task)
    assert [entry.key.text for entry in first.extra] == ["step", "mode", "loop"]


def test_all_tool_shapes_s5() -> None:
    assert labels(parse_step("tool: {kind: noop}")) == [None]
    assert labels(parse_step("tool:\n  - {kind: noop}\n  - a: {kind: noop}\n  - {name: b, kind: noop}")) == [
        None,
        "a",
        "b",
    ]


def test_name_is_an_input_of_a_labelled_task() -> None:
    step = parse_step("tool:\n  - a: {kind: noop, name: x}")
    assert labels(step) == ["a"]
    assert step.tool is not None
    task = step.tool[0]
    assert isinstance(task, ast.Task)
    assert [entry.key.text for entry in task.extra] == ["name"]


def test_sugar_nests_s39() -> None:
    step = parse_step(
        """\
tool:
  - choose:
      - when: "{{ ctx.a }}"
        then:
          - while: {when: "{{ ctx.b }}", max: 3, do: [{kind: noop}]}
      - else:
          then:
            - until: {when: true, do: [{last: {kind: noop}}]}
"""
    )
    assert step.tool is not None
    choose = step.tool[0]
    assert isinstance(choose, ast.Choose)
    inner = choose.choose[0].then
    assert inner is not None
    assert isinstance(inner[0], ast.Repeat)
    assert inner[0].word == "while"
    assert len(list(ast.nested_tasks(step.tool))) == 2


def test_nested_loops_s28() -> None:
    step = parse_step("loop: {in: [1], iterator: a, loop: {in: [2], iterator: b}}\ntool: {kind: noop}")
    assert [loop.iterator.text for loop in step.loops if loop.iterator] == ["a", "b"]


@pytest.mark.parametrize(
    ("body", "object_name", "key", "fragment"),
    [
        ("steps: 1", "step", "steps", "a step has no key `steps`"),
        ("nxt: {arcs: []}", "step", "nxt", "a step has no key `nxt`"),
        ("tool: 7", "step", "tool", "not the number `7`"),
        ("tool:", "step", "tool", "not nothing"),
        ("next: [a]", "step", "next", "must be a mapping, not a list"),
        ("next: {arcs: {}}", "router", "arcs", "must be a list, not a mapping"),
        ("loop: {in: 3, iterator: x}", "loop", "in", "must be a list or a template"),
        ("loop: {in: [1], iterator: x, spec: {max_in_flight: ten}}", "loop_spec", "max_in_flight", "a whole number"),
        ("loop: {in: [1], iterator: x, spec: {mode: both}}", "loop_spec", "mode", "`parallel` or `sequential`"),
        ("spec: {policy: {admit: {rules: {}}}}", "admit", "rules", "must be a list"),
        ("tool: {kind: noop, spec: {policy: []}}", "task_spec", "policy", "must be a mapping, not a list"),
        ("tool: {kind: ['noop']}", "task", "kind", "must be a string, not a list"),
        ("tool: [{a: {kind: '{{ x }}'}}]", "labelled_task", "kind", "not the template"),
        ("tool: [{while: {do: []}}, 3]", "tasks", "", "not the number `3`"),
    ],
)
def test_what_does_not_fit_is_reported_and_left_out(body: str, object_name: str, key: str, fragment: str) -> None:
    parsed = parse(HEAD + "workflow:\n  - step: start\n    " + body + "\n  - step: next\n")
    (problem,) = parsed.problems
    assert (problem.object, problem.key) == (object_name, key)
    assert fragment in problem.message
    assert problem.help
    assert parsed.playbook is not None
    assert [step.step.text for step in parsed.playbook.workflow or () if step.step] == ["start", "next"]


def test_a_root_that_is_no_mapping_is_one_problem() -> None:
    parsed = parse("- a\n- b\n")
    assert parsed.playbook is None
    assert [problem.message for problem in parsed.problems] == ["a playbook must be a mapping, not a list"]


def test_the_nearest_word_is_suggested() -> None:
    parsed = parse(HEAD + "workfow: []\nworkload: {}\n")
    assert parsed.problems[0].suggestion == "workflow"


def test_objects_of_the_grammar_and_classes_agree() -> None:
    closing = {production.name for production in load_grammar("playbook").productions if _is_object(production)}
    assert closing == set(OBJECTS) | {"workbook_tasks"}
    assert set(OBJECTS) <= set(TITLES)


def _is_object(production: Production) -> bool:
    fields = {p.name for p in load_grammar("playbook").productions if p.name.endswith("_field")}
    return f"{production.name}_field" in fields


def test_each_word_of_an_object_is_an_attribute_of_its_class() -> None:
    for name, key in re.findall(r"^(\w+)_field: \"(\w+)\"", grammar_text("playbook"), re.MULTILINE):
        if name != "task" and name in OBJECTS:
            assert hasattr(OBJECTS[name](span=(0, 0)), ast.attribute(key)), (name, key)


def test_required_keys_stand_beside_their_objects_in_the_grammar() -> None:
    """The table that lint and the schema use agrees with the comments of the grammar."""
    text = grammar_text("playbook")
    said = {
        match[1]: tuple(match[2].split(", "))
        for match in re.finditer(r'^(\w+): "\{" .*// required: ([\w, ]+)$', text, re.MULTILINE)
        if " and " not in match[2]
    }
    for heading in re.finditer(r"^// ---- .*required: ([\w, ]+) -+\n\n(\w+):", text, re.MULTILINE):
        name = {"workflow": "step"}.get(heading[2], heading[2])
        said.setdefault(name, tuple(heading[1].split(", ")))
    for name, keys in REQUIRED.items():
        assert said.get(name) == keys, name


YAML_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["noop", "{{ ctx.x }}", "a b", "1e3", "on", "<<"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "step",
                    "tool",
                    "next",
                    "loop",
                    "spec",
                    "policy",
                    "rules",
                    "when",
                    "then",
                    "else",
                    "do",
                    "kind",
                    "in",
                    "iterator",
                    "arcs",
                    "args",
                    "choose",
                    "while",
                    "until",
                    "name",
                    "max",
                    "set_ctx",
                    "to",
                    "metadata",
                    "workflow",
                    "workbook",
                    "tasks",
                    "x",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(YAML_VALUES)
def test_any_document_gives_a_tree_or_a_problem_and_prints_back(value: object) -> None:
    import yaml

    text = yaml.safe_dump({"apiVersion": "noetl.io/v2", "workflow": value, "workbook": value})
    parsed = parse(text)
    assert parsed.playbook is not None
    again = parse(print_playbook(parsed.playbook))
    assert again.problems == ()
    assert again.playbook is not None
    assert tree_data(again.playbook) == tree_data(parsed.playbook)
    assert [type(struct) for struct in structs(again.playbook)] == [type(s) for s in structs(parsed.playbook)]


def test_a_word_of_sugar_without_a_value_is_absent_in_a_task_of_the_workbook() -> None:
    parsed = parse(HEAD + "workflow: []\nworkbook: {tasks: {t: {kind: noop, choose: null}}}\n")
    assert parsed.playbook is not None
    assert parse(print_playbook(parsed.playbook)).problems == parsed.problems == ()


def test_what_is_printed_reads_as_the_same_data() -> None:
    text = HEAD + "workload: {a: '1e3', b: \"0o17\", c: 'null', d: 'on', 'true': '<<', e: \"x\\ny\"}\nworkflow: []\n"
    parsed = parse(text)
    assert parsed.playbook is not None
    printed = read_document(print_playbook(parsed.playbook))
    assert printed.root is not None
    original = read_document(text).root
    assert original is not None
    assert plain(printed.root) == plain(original)


def test_every_object_has_its_place() -> None:
    text = HEAD + "workflow:\n  - step: start\n    tool: [{a: {kind: noop}}]\n    next: {arcs: [{step: start}]}\n"
    parsed = parse(text)
    assert parsed.playbook is not None
    source = Source("f", text)
    assert {type(struct).__name__: source.position(struct.span.start) for struct in structs(parsed.playbook)} == {
        "Playbook": (1, 1),
        "Metadata": (3, 11),
        "Step": (5, 5),
        "Task": (6, 12),
        "Router": (7, 11),
        "Arc": (7, 19),
    }
