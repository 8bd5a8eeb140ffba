"""A run never does what the analysis excludes (S81): steps that fail in every way, on the machine and in the net."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from noetlc.analysis.endings import PROOFS, FailureCause
from noetlc.lint.check import check_source
from noetlc.net.program import nets_of
from noetlc.syntax.span import Source
from noetlvm.testing import run_playbook
from tests.noetlc.net.test_one_net import net_of, program_of

Data = dict[str, Any]

WORKLOAD = {"number": 1, "text": "a", "many": [1, 2], "none": None, "map": {"a": 1}}
FAILED = "{{ event.name == 'step.failed' }}"


def playbook(*tool: Data, loop: Data | None = None, spec: Data | None = None, limits: Data | None = None) -> str:
    """Return a playbook whose first step has these tasks, and goes to `bad` if it fails, else to `good`."""
    arcs = [{"step": "bad", "when": FAILED}, {"step": "good", "when": FAILED.replace("==", "!=")}]
    step: Data = {"step": "start", "tool": list(tool), "next": {"arcs": arcs}}
    step |= {"loop": loop} if loop else {}
    step |= {"spec": spec} if spec else {}
    document: Data = {"apiVersion": "noetl.io/v2", "kind": "Playbook", "metadata": {"name": "k", "path": "t/k"}}
    document |= {"executor": {"spec": {"limits": limits}}} if limits else {}
    ends = [{"step": name, "tool": [{"end": {"kind": "noop"}}]} for name in ("bad", "good")]
    return json.dumps(document | {"workload": WORKLOAD, "workflow": [step, *ends]})


def task(*rules: Data, label: str = "t", kind: str = "noop", **inputs: Any) -> Data:
    given = {"command": ["run"]} if kind == "shell" else {}
    policy = {"spec": {"policy": {"rules": list(rules)}}} if rules else {}
    return {label: {"kind": kind} | given | inputs | policy}


def when(guard: str, **then: Any) -> Data:
    return {"when": f"{{{{ {guard} }}}}", "then": {"do": "continue"} | then}


def otherwise(**then: Any) -> Data:
    return {"else": {"then": {"do": "continue"} | then}}


def parallel(items: Any, reducers: Data | None = None, inner: Data | None = None, **settings: Any) -> Data:
    policy = {"policy": {"reducers": reducers}} if reducers else {}
    spec = {"mode": "parallel"} | policy | settings
    return {"in": items, "iterator": "item", "spec": spec} | ({"loop": inner | {"iterator": "inner"}} if inner else {})


NOOP = task(label="a")
ONE = {"in": [1], "iterator": "item"}
ITEM = {"x": "{{ iter.item }}"}
FAILING: dict[str, str] = {
    "a tool": playbook(task(kind="shell")),
    "an input": playbook(task(note="{{ ctx.zz }}")),
    "a setting": playbook({"t": {"kind": "noop", "spec": {"note": "{{ 1 // 0 }}"}}}),
    "a rule that says fail": playbook(task(otherwise(do="fail"))),
    "a retry": playbook(task(otherwise(do="retry", attempts=2))),
    "set_ctx of what is undefined": playbook(task(otherwise(set_ctx={"x": "{{ ctx.zz }}"}))),
    "set_ctx after an error": playbook(
        task(when("outcome.status == 'error'", set_ctx={"x": "{{ ctx.zz }}"}), otherwise(), kind="shell")
    ),
    "set_ctx that divides by zero": playbook(task(otherwise(set_ctx={"x": "{{ 1 // 0 }}"}))),
    "set_ctx that is too large": playbook(task(otherwise(set_ctx={"x": "{{ 'x' * 900000000 }}"}))),
    "set_ctx in a loop": playbook(task(otherwise(set_ctx={"x": "{{ ctx.zz }}"})), loop=ONE),
    "set_ctx beside a jump": playbook(
        task(otherwise(do="jump", to="a", set_ctx={"x": "{{ ctx.zz }}"})), task(label="b"), NOOP
    ),
    "set_ctx of a leading skip": playbook(task(when("ctx.zz is undefined", do="skip", set_ctx={"x": "{{ ctx.zz }}"}))),
    "set_iter": playbook(task(otherwise(set_iter={"x": "{{ ctx.zz }}"})), loop=ONE),
    "a guard that divides": playbook(task(when("1 // 0 == ctx.x"), otherwise())),
    "a guard that orders": playbook(task(when("workload.text < 1"), otherwise())),
    "a guard that orders what is undefined": playbook(task(when("ctx.zz < 1"), otherwise())),
    "a guard that looks into a number": playbook(task(when("1 in workload.number"), otherwise())),
    "a guard that looks for a list": playbook(task(when("[[1]] in workload.map"), otherwise())),
    "a guard with a filter": playbook(task(when("(workload.none | length) == 1"), otherwise())),
    "a guard with a method": playbook(task(when("workload.text.index('b') == 1"), otherwise())),
    "a guard behind a test that holds": playbook(task(when("ctx.zz is undefined and ctx.zz + 1 == 2"), otherwise())),
    "a guard of a leading skip": playbook(task(when("1 // workload.zz == 1", do="skip"), otherwise())),
    "a guard after an error only": playbook(
        task(when("outcome.status == 'error' and outcome.result + 1 == 2"), otherwise(), kind="shell")
    ),
    "choose": playbook({"choose": [when("1 // 0 == ctx.x") | {"then": [NOOP]}]}),
    "the second branch of choose": playbook(
        {"choose": [when("ctx.zz == 1") | {"then": [NOOP]}, when("workload.text < 1") | {"then": [task(label="b")]}]}
    ),
    "while": playbook({"while": {"when": "{{ workload.text < 1 }}", "do": [NOOP]}}),
    "until": playbook({"until": {"when": "{{ workload.text < 1 }}", "do": [NOOP]}}),
    "rounds that are no number": playbook(
        {"until": {"when": "{{ ctx.zz is undefined }}", "max": "{{ workload.text }}", "do": [NOOP]}}
    ),
    "a wait that is no number": playbook(
        {"until": {"when": "{{ ctx.zz == 1 }}", "max": 3, "delay": "{{ workload.text }}", "do": [NOOP]}}
    ),
    "rounds that are used up": playbook({"while": {"when": "{{ ctx.zz != 1 }}", "max": 3, "do": [NOOP]}}),
    "attempts that are no number": playbook(
        task(when("_attempt == 1", do="retry", attempts="{{ workload.text }}"), otherwise())
    ),
    "a delay that is no number": playbook(
        task(when("_attempt == 1", do="retry", attempts=2, delay="{{ workload.text }}"), otherwise())
    ),
    "more tasks than allowed": playbook(NOOP, task(label="b"), limits={"max_transitions": 1}),
    "a collection": playbook(NOOP, loop={"in": "{{ workload.number }}", "iterator": "item"}),
    "an inner collection": playbook(NOOP, loop=parallel([1], inner={"in": "{{ iter.item }}"})),
    "a width": playbook(NOOP, loop=parallel([1], max_in_flight="{{ workload.text }}")),
    "a rate": playbook(NOOP, loop=parallel([1], rate={"max": "{{ workload.text }}"})),
    "a conflict": playbook(task(otherwise(set_ctx=ITEM)), loop=parallel([1, 2])),
    "a conflict of constants": playbook(
        task(when("iter.index == 0", set_ctx={"x": 1}), otherwise(set_ctx={"x": 2})), loop=parallel([1, 2])
    ),
    "a conflict of what an inner loop reduced": playbook(
        task(otherwise(set_ctx={"x": 1})),
        loop=parallel([[1], [1, 2]], inner=parallel("{{ iter.item }}", reducers={"x": "sum"})),
    ),
    "a conflict where failures are spared": playbook(
        task(otherwise(set_ctx=ITEM)), loop=parallel([1, 2]), spec={"policy": {"failure": {"mode": "best_effort"}}}
    ),
    "a reducer": playbook(task(otherwise(set_ctx={"x": "a"})), loop=parallel([1, 2], reducers={"x": "sum"})),
    "a reducer of one": playbook(task(otherwise(set_ctx={"x": 1})), loop=parallel([1], reducers={"x": "extend"})),
    "a time limit": playbook(
        {"until": {"when": "{{ ctx.zz == 1 }}", "delay": 9, "do": [NOOP]}},
        spec={"policy": {"lifecycle": {"timeout_s": 5}}},
    ),
}
SAFE: dict[str, str] = {
    "a constant": playbook(task(otherwise(set_ctx={"x": 1, "y": {"z": ["{{ 1 + 1 }}"]}}), note="{{ 2 }}")),
    "what is always there": playbook(task(otherwise(set_ctx={"x": "{{ _task }}"}), note="{{ execution_id }}")),
    "a comparison with a constant": playbook(
        task(when("ctx.zz == 1 or outcome.result.a != 'b'"), when("not ctx.zz is defined"), otherwise())
    ),
    "a comparison of what has a type": playbook(task(when("_attempt < 2 and outcome.status in ['ok']"), otherwise())),
    "a guard that its outcome excludes": playbook(
        task(when("outcome.status == 'error' and 1 // ctx.x == 1"), otherwise())
    ),
    "choose": playbook({"choose": [when("ctx.zz") | {"then": [NOOP]}]}),
    "one constant from all": playbook(task(otherwise(set_ctx={"x": 1})), loop=parallel([1, 2])),
    "one iteration": playbook(task(otherwise(set_ctx={"x": 1})), loop=parallel([5])),
    "a reducer of anything": playbook(task(otherwise(set_ctx={"x": 1})), loop=parallel([1, 2], reducers={"x": "last"})),
    "no iterations": playbook(task(otherwise(set_ctx=ITEM)), loop=parallel([])),
    "as many tasks as allowed": playbook(NOOP, task(label="b"), limits={"max_transitions": 2}),
}


def possible(text: str) -> tuple[set[str], set[str]]:
    """Return how the first step can end, for the net of the source and for that of the bundle."""
    source, program = net_of(text), program_of(text)
    assert source is not None
    assert program is not None
    found = [{ending.event for ending in net.steps[0].endings} for net in (source, nets_of(program)[0])]
    return found[0], found[1]


def ended(text: str, **given: Any) -> set[str]:
    """Return how the first step ended."""
    ran = run_playbook(text, {"t": "error"} if "shell" in text else {}, **given)
    events = ("step.done", "step.failed", "loop.done")
    runs = {event.run: event.name for event in reversed(ran.events) if event.name in events}
    return {runs[min(runs)]} if runs else set()


@pytest.mark.parametrize("way", FAILING)
def test_a_step_that_fails_on_the_machine_can_fail_in_the_net(way: str) -> None:
    assert ended(FAILING[way]) == {"step.failed"}
    assert ["step.failed" in events for events in possible(FAILING[way])] == [True, True]
    found = check_source(Source("k.yaml", FAILING[way])).findings
    never = [FAILING[way][slice(*finding.span)] for finding in found if finding.code in ("P410", "P411")]
    assert not any("bad" in place for place in never)


@pytest.mark.parametrize("way", SAFE)
def test_what_is_harmless_is_left_out(way: str) -> None:
    assert ended(SAFE[way]) <= {"step.done", "loop.done"}
    assert ["step.failed" in events for events in possible(SAFE[way])] == [False, False]


def test_the_page_says_what_proves_each_way_impossible() -> None:
    page = (Path(__file__).parents[3] / "docs" / "graph.md").read_text(encoding="utf-8")
    assert all(f"| {failure.value} | {PROOFS[failure]} |" in page for failure in FailureCause)


READS = ("ctx.zz", "ctx.x", "workload.number", "workload.text", "workload.many", "workload.none", "workload.map")
OPERATIONS = ("%s == %s", "%s != 1", "%s < %s", "%s in %s", "%s + %s", "not %s", "%s and %s > 1", "%s | length == 1")
OPERATIONS += ("%s is none", "%s is defined", "%s.a == %s", "%s == 'a' or %s", "%s in [1, 'a']", "1 // %s == %s")


def random_guard(random: Random) -> str:
    operation = random.choice(OPERATIONS)
    return operation % tuple(random.choice(READS) for _ in range(operation.count("%s")))


def random_value(random: Random) -> Any:
    return random.choice((1, "a", [1], "{{ 1 + 1 }}", "{{ _task }}", f"{{{{ {random.choice(READS)} }}}}"))


def random_entry(random: Random, label: str) -> Data:
    word = random.choice(("task", "task", "task", "choose", "while", "until"))
    if word == "choose":
        return {"choose": [when(random_guard(random)) | {"then": [task(label=label)]}]}
    if word != "task":
        return {
            word: {"when": f"{{{{ {random_guard(random)} }}}}", "max": random.choice((1, 2)), "do": [task(label=label)]}
        }
    rules = [
        when(
            random_guard(random), do=random.choice(("continue", "break", "skip")), set_ctx={"x": random_value(random)}
        ),
        otherwise(set_ctx={"x": random_value(random)}),
    ]
    note = {"note": random_value(random)} if random.random() < 0.2 else {}
    return task(*random.sample(rules, random.randint(0, 1)), rules[1], label=label, **note)


def random_playbook(random: Random) -> str:
    entries = [random_entry(random, f"t{number}") for number in range(random.randint(1, 3))]
    reducers = {"x": random.choice(("sum", "last", "append"))} if random.random() < 0.5 else None
    return playbook(
        *entries, loop=parallel(random.choice(([1], [1, 2], [])), reducers) if random.random() < 0.4 else None
    )


def test_random_steps_end_as_their_nets_say() -> None:
    compared = 0
    for seed in range(60):
        text = random_playbook(Random(seed))
        source, program = net_of(text), program_of(text)
        if source is None or program is None:
            continue  # the playbook has errors
        for payload in ({}, {"number": "b", "text": 2, "many": {}, "none": [1], "map": None}):
            compared += 1
            for events in possible(text):
                assert ended(text, payload=payload) <= events, text
    assert compared >= 40
