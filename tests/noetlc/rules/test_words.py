"""The words of the language and of its older dialects have no effect elsewhere, so there they are errors (S90)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from noetlc.analysis.spec_keys import WORDS, keys_of
from noetlc.finding import Finding
from noetlc.lint.check import check_source
from noetlc.settings import Settings
from noetlc.syntax import ast
from noetlc.syntax.span import Source

Data = dict[str, Any]

NOOP: Data = {"kind": "noop"}
HEAD: Data = {"apiVersion": "noetl.io/v2", "kind": "Playbook", "metadata": {"name": "k", "path": "t/k"}}


def with_step(more: Data | None = None, tool: Any = None, **rest: Any) -> Data:
    step = {"step": "start", "tool": NOOP if tool is None else tool} | (more or {})
    return HEAD | {"workflow": [step, {"step": "end", "tool": NOOP}]} | rest


INPUTS: dict[str, Data] = {
    "http": {"url": "https://example.org"},
    "playbook": {"path": "t/child"},
    "workbook": {"task": "shared"},
}


def task(kind: str, entry: Data) -> Data:
    return {"kind": kind} | INPUTS.get(kind, {}) | entry


SHARED = {"tasks": {"shared": NOOP}}
KINDS = ("noop", "http", "playbook", "workbook", "odd")
PLACES: dict[str, tuple[type[ast.Struct], Any]] = {
    **{
        kind: (ast.Task, lambda e, kind=kind: with_step(tool=[{"t": task(kind, e)}], workbook=SHARED)) for kind in KINDS
    },
    **{
        f"spec of {kind}": (
            ast.TaskSpec,
            lambda e, kind=kind: with_step(tool=[{"t": task(kind, {"spec": e})}], workbook=SHARED),
        )
        for kind in KINDS
    },
    "a single task": (ast.Task, lambda e: with_step(tool=NOOP | e)),
    "a task in choose": (
        ast.Task,
        lambda e: with_step(tool=[{"choose": [{"when": "{{ args.a }}", "then": [{"t": NOOP | e}]}]}]),
    ),
    "a task in while": (
        ast.Task,
        lambda e: with_step(tool=[{"while": {"when": "{{ args.a }}", "max": 3, "do": [{"t": NOOP | e}]}}]),
    ),
    "a task of the workbook": (
        ast.Task,
        lambda e: with_step(tool=[{"t": task("workbook", {})}], workbook={"tasks": {"shared": NOOP | e}}),
    ),
    "executor.spec": (ast.ExecutorSpec, lambda e: with_step(executor={"spec": e})),
    "spec of a step": (ast.StepSpec, lambda e: with_step({"spec": e})),
    "loop.spec": (ast.LoopSpec, lambda e: with_step({"loop": {"in": [1], "iterator": "item", "spec": e}})),
    "next.spec": (ast.RouterSpec, lambda e: with_step({"next": {"spec": e, "arcs": [{"step": "end"}]}})),
    "spec of an arc": (ast.Metadata, lambda e: with_step({"next": {"arcs": [{"step": "end", "spec": e}]}})),
    "a step": (ast.Step, lambda e: with_step(e)),
    "a loop": (ast.Loop, lambda e: with_step({"loop": {"in": [1], "iterator": "item"} | e})),
    "next": (ast.Router, lambda e: with_step({"next": {"arcs": [{"step": "end"}]} | e})),
    "an arc": (ast.Arc, lambda e: with_step({"next": {"arcs": [{"step": "end"} | e]}})),
    "executor": (ast.Executor, lambda e: with_step(executor=e)),
    "the playbook": (ast.Playbook, lambda e: with_step() | e),
    "a policy": (ast.TaskPolicy, lambda e: in_policy(e)),
    "a rule": (ast.PolicyRule, lambda e: in_policy({"rules": [{"when": "{{ args.a }}", "then": {"do": "fail"}} | e]})),
    "then": (ast.Then, lambda e: in_policy({"rules": [{"else": {"then": {"do": "fail"} | e}}]})),
}


def in_policy(more: Data) -> Data:
    rules = [{"else": {"then": {"do": "continue"}}}]
    return with_step(tool=[{"t": NOOP | {"spec": {"policy": {"rules": rules} | more}}}])


def errors(document: Data) -> list[Finding]:
    settings = Settings(tool_kinds=("odd",))
    found = check_source(Source("k.yaml", json.dumps(document)), settings).findings
    return [finding for finding in found if finding.severity == "error"]


@pytest.mark.parametrize("place", PLACES)
def test_a_word_is_an_error_where_it_does_not_belong(place: str) -> None:
    cls, document = PLACES[place]
    assert not errors(document({}))
    words = sorted(set(WORDS) - set(keys_of(cls)))
    assert len(words) > 30
    passed = [word for word in words if not errors(document({word: {"a": 1}}))]
    assert passed == []


@pytest.mark.parametrize("value", [True, "{{ args.a }}", 3, [], None, [{"else": {"then": {"do": "fail"}}}]])
def test_a_word_is_an_error_whatever_its_value(value: Any) -> None:
    for place in ("noop", "http", "odd", "spec of noop", "spec of a step", "loop.spec", "next.spec", "spec of an arc"):
        for word in ("if", "rules", "then"):
            assert errors(PLACES[place][1]({word: value})), (place, word)


def test_a_word_says_where_it_belongs() -> None:
    (found,) = errors(PLACES["noop"][1]({"policy": {"rules": []}}))
    assert found.code == "P328"
    assert "`spec.policy`" in found.help


@pytest.mark.parametrize("key", ["note", "path", "to", "mode", "version"])
def test_other_inputs_of_an_open_kind_are_its_own(key: str) -> None:
    assert not errors(PLACES["noop"][1]({key: 1}))
    assert not errors(PLACES["odd"][1]({key: 1}))


def test_a_time_limit_of_a_noop_is_an_error_and_of_a_tool_a_warning_with_a_fix() -> None:
    assert [found.code for found in errors(PLACES["noop"][1]({"timeout": 3}))] == ["P328"]
    assert not errors(PLACES["http"][1]({"timeout": 3}))
