"""One table has the positions of templates: what is added there is followed everywhere."""

from __future__ import annotations

import pytest

from noetlc.syntax import ast
from noetlc.syntax.lalr import grammar_text
from noetlc.syntax.playbook_parser import OBJECTS
from noetlc.syntax.positions import TEMPLATE_KEYS, Moment, TemplateKey
from noetlc.syntax.tree import EXTRA, attributes
from noetlvm.language.scopes import TemplatePosition
from tests.noetlc.rules.lint_text import lint

RACE = """
- step: start
  tool: {kind: noop}
  next: {spec: {mode: inclusive}, arcs: [{step: write}, {step: read}]}
- step: write
  tool:
    - wait: {kind: shell, command: [sleep]}
    - put: {kind: noop, spec: {policy: {rules: [{else: {then: {do: continue, set_ctx: {total: 2}}}}]}}}
- step: read
  tool:
    - get: {kind: shell, command: [run], spec: {policy: {%s}}}
"""
CALL = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: k, path: t/k}
workflow:
  - step: start
    tool:
      - first: {kind: noop}
      - save: {kind: workbook, task: two, args: {n: "{{ _prev }}"}}
workbook:
  tasks:
    two:
      - a: {kind: noop}
      - b: {kind: shell, command: [run], spec: {policy: {%s}}}
"""
ATTEMPTS = 'rules: [{when: "{{ outcome.status == \'error\' }}", then: {do: retry, %s: "{{ %s }}"}}]'
MADE_UP = 'before: ["{{ %s }}"], rules: [{else: {then: {do: continue}}}]'


@pytest.mark.parametrize("key", ["attempts", "delay"])
def test_numbers_of_a_retry_are_followed(key: str) -> None:
    assert lint(RACE % (ATTEMPTS % (key, "ctx.total")), "P512")
    assert lint(CALL % (ATTEMPTS % (key, "args.n")), "P118")
    assert lint(RACE % (ATTEMPTS % (key, "ctx.total | nosuch")), "P202")


def test_a_key_that_is_added_to_the_table_is_followed_with_nothing_else_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    race, call, unknown = RACE % (MADE_UP % "ctx.total"), CALL % (MADE_UP % "args.n"), RACE % (MADE_UP % "1 | nosuch")
    assert not [*lint(race, "P512"), *lint(call, "P118"), *lint(unknown, "P202")]
    made_up = TemplateKey(TemplatePosition.TASK_INPUT, Moment.CALL)
    monkeypatch.setitem(TEMPLATE_KEYS, ast.TaskPolicy, {"before": made_up})
    assert len(lint(race, "P512")) == 1
    assert len(lint(call, "P118")) == 1
    assert len(lint(unknown, "P202")) == 1


def test_every_key_of_the_table_is_a_key_of_its_object() -> None:
    for cls, keys in TEMPLATE_KEYS.items():
        assert set(keys) <= {*attributes(cls), EXTRA}


def test_every_field_of_the_grammar_that_takes_a_template_has_a_row() -> None:
    """But for descriptions, which are not evaluated."""
    fields = _fields_with_templates()
    assert ("then", "delay") in fields
    for rule, key in fields - {("step", "desc"), ("task", "desc"), ("labelled_task", "desc")}:
        assert ast.attribute(key) in TEMPLATE_KEYS[OBJECTS[rule]], (rule, key)


def _fields_with_templates() -> set[tuple[str, str]]:
    import re

    text = re.sub(r"//.*", "", grammar_text("playbook"))
    rules = dict(re.findall(r"^\??(\w+):((?:.|\n(?!\n|\??\w+:))*)", text, re.MULTILINE))
    takes = {name for name, body in rules.items() if "TEMPLATE" in body and "_field" not in name} | {"TEMPLATE"}
    found = set()
    for name, body in rules.items():
        for key, value in re.findall(r'"(\w+)" (\w+)', body) if name.endswith("_field") else ():
            if value in takes:
                found.add((name.removesuffix("_field"), key))
    return found
