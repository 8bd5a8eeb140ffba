"""Every key of every `spec` is obeyed, or a finding says that it is not (S63): a table over all keys of the grammar."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from noetlc.compile import compile_playbooks
from noetlc.finding import Severity
from noetlc.lint.check import check_bytes
from noetlc.rules.p322_reserved_key import RESERVED_SETTINGS
from noetlc.syntax import ast
from noetlc.syntax.tree import attributes
from noetlvm.language.tool_kinds import builtin_kinds
from noetlvm.machine.loaded import prepare
from noetlvm.rounds.active import objection_to

PLAYBOOK = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {{ name: keys, path: tests/keys }}
executor: {{ {executor} spec: {{ {executor_spec} }} }}
workflow:
  - step: start
    spec: {{ {step_spec} }}
    loop:
      in: [1, 2]
      iterator: n
      spec: {{ {loop_spec} }}
    tool:
      - get: {{ kind: http, url: "https://example.org", spec: {{ {task_spec} }} }}
      - two: {{ kind: noop }}
    next:
      spec: {{ {router_spec} }}
      arcs: [{{ step: end {arc} }}, {{ step: other }}]
  - step: end
    tool: {{ kind: noop }}
  - step: other
    tool: {{ kind: noop }}
"""
PLACES = ("executor", "executor_spec", "step_spec", "loop_spec", "task_spec", "router_spec", "arc")


def rule(then: str) -> str:
    """Return a policy of one rule."""
    return f"policy: {{ rules: [{{ else: {{ then: {{ {then} }} }} }}] }}"


def retry(more: str) -> str:
    return rule(f"do: retry, attempts: 2, {more}")


OBEYED: dict[tuple[type[ast.Struct], str], tuple[str, str, str]] = {
    (ast.Executor, "profile"): ("executor", "profile: distributed, ", "profile: local, "),
    (ast.Executor, "version"): ("executor", "version: noetl-runtime/2, ", "version: noetl-runtime/3, "),
    (ast.ExecutorSpec, "entry_step"): ("executor_spec", "", "entry_step: end"),
    (ast.ExecutorSpec, "final_step"): ("executor_spec", "", "final_step: end"),
    (ast.ExecutorSpec, "no_next_is_error"): ("executor_spec", "", "no_next_is_error: true"),
    (ast.ExecutorSpec, "unguarded_arcs"): ("executor_spec", "", "unguarded_arcs: success"),
    **{
        (ast.LimitSettings, key): ("executor_spec", "", f"{around} {key}: 5000 {'}' * around.count('{')}")
        for key in ("max_payload_bytes", "max_transitions", "max_step_runs", "max_children")
        for around in ("limits: {",)
    },
    (ast.StepPolicy, "admit"): ("step_spec", "", "policy: { admit: { rules: [] } }"),
    (ast.StepPolicy, "lifecycle"): ("step_spec", "", "policy: { lifecycle: { timeout_s: 3 } }"),
    (ast.StepPolicy, "failure"): ("step_spec", "", "policy: { failure: { mode: best_effort } }"),
    (ast.Admit, "on_deny"): (
        "step_spec",
        "policy: { admit: { rules: [] } }",
        "policy: { admit: { rules: [], on_deny: drop } }",
    ),
    (ast.Admit, "rules"): (
        "step_spec",
        "policy: { admit: { rules: [{ else: { then: { allow: true } } }] } }",
        "policy: { admit: { rules: [{ else: { then: { allow: false } } }] } }",
    ),
    (ast.Lifecycle, "timeout_s"): ("step_spec", "", "policy: { lifecycle: { timeout_s: 3 } }"),
    (ast.Lifecycle, "deadline_s"): ("step_spec", "", "policy: { lifecycle: { deadline_s: 3 } }"),
    (ast.Failure, "mode"): ("step_spec", "", "policy: { failure: { mode: best_effort } }"),
    (ast.LoopSpec, "mode"): ("loop_spec", "", "mode: parallel"),
    (ast.LoopSpec, "max_in_flight"): ("loop_spec", "mode: parallel", "mode: parallel, max_in_flight: 3"),
    (ast.LoopSpec, "rate"): ("loop_spec", "mode: parallel", "mode: parallel, rate: { max: 2, per: 1 }"),
    (ast.Rate, "max"): ("loop_spec", "rate: { max: 2 }", "rate: { max: 3 }"),
    (ast.Rate, "per"): ("loop_spec", "rate: { max: 2 }", "rate: { max: 2, per: 7 }"),
    (ast.LoopPolicy, "mode"): ("loop_spec", "", "policy: { mode: parallel }"),
    (ast.LoopPolicy, "exec"): ("loop_spec", "mode: parallel", "mode: parallel, policy: { exec: local }"),
    (ast.LoopPolicy, "max_in_flight"): ("loop_spec", "mode: parallel", "mode: parallel, policy: { max_in_flight: 3 }"),
    (ast.LoopPolicy, "reducers"): ("loop_spec", "mode: parallel", "mode: parallel, policy: { reducers: { a: sum } }"),
    (ast.TaskPolicy, "rules"): ("task_spec", rule("do: continue"), rule("do: fail")),
    (ast.Then, "do"): ("task_spec", rule("do: continue"), rule("do: break")),
    (ast.Then, "attempts"): ("task_spec", retry("delay: 1"), rule("do: retry, attempts: 4, delay: 1")),
    (ast.Then, "backoff"): ("task_spec", retry("delay: 1"), retry("delay: 1, backoff: linear")),
    (ast.Then, "delay"): ("task_spec", retry("delay: 1"), retry("delay: 2")),
    (ast.Then, "to"): ("task_spec", rule("do: jump, to: get"), rule("do: jump, to: two")),
    (ast.Then, "set_iter"): ("task_spec", rule("do: continue"), rule("do: continue, set_iter: { a: 1 }")),
    (ast.Then, "set_ctx"): ("task_spec", rule("do: continue"), rule("do: continue, set_ctx: { a: 1 }")),
    (ast.RouterSpec, "mode"): ("router_spec", "", "mode: inclusive"),
}
"""Two values of each key that is obeyed: what is run differs."""

IGNORED: dict[tuple[type[ast.Struct], str], tuple[str, str]] = {
    (ast.ExecutorDefaults, "timeouts"): ("executor_spec", "policy: { defaults: { timeouts: { http: 3 } } }"),
    (ast.ExecutorDefaults, "resources"): ("executor_spec", "policy: { defaults: { resources: { cpu: 3 } } }"),
    (ast.ExecutorResults, "reference_first"): ("executor_spec", "policy: { results: { reference_first: true } }"),
    (ast.ExecutorPolicy, "placement"): ("executor_spec", "policy: { placement: here }"),
    (ast.ExecutorPolicy, "cost"): ("executor_spec", "policy: { cost: 3 }"),
    (ast.ExecutorPolicy, "backends"): ("executor_spec", "policy: { backends: [a] }"),
    (ast.Emit, "events"): ("step_spec", "policy: { emit: { events: [a] } }"),
    (ast.StepPolicy, "tracing"): ("step_spec", "policy: { tracing: { a: 1 } }"),
    (ast.StepPolicy, "quotas"): ("step_spec", "policy: { quotas: { a: 1 } }"),
    (ast.StepPolicy, "compensation"): ("step_spec", "policy: { compensation: { a: 1 } }"),
    (ast.LoopPolicy, "ordering"): ("loop_spec", "policy: { ordering: a }"),
    (ast.LoopPolicy, "backpressure"): ("loop_spec", "policy: { backpressure: a }"),
    (ast.LoopPolicy, "partitioning"): ("loop_spec", "policy: { partitioning: a }"),
    (ast.TaskPolicy, "before"): ("task_spec", "policy: { rules: [], before: [a] }"),
    (ast.TaskPolicy, "after"): ("task_spec", "policy: { rules: [], after: [a] }"),
    (ast.TaskPolicy, "finally"): ("task_spec", "policy: { rules: [], finally: [a] }"),
    (ast.RouterPolicy, "priority"): ("router_spec", "policy: { priority: 1 }"),
    (ast.RouterPolicy, "dedupe"): ("router_spec", "policy: { dedupe: 1 }"),
    (ast.RouterPolicy, "partitioning"): ("router_spec", "policy: { partitioning: 1 }"),
    (ast.Arc, "spec"): ("arc", ", spec: { priority: 1 }"),
    **{(ast.ExecutorSpec, key): ("executor_spec", f"{key}: {{ a: 1 }}") for key in RESERVED_SETTINGS},
}
"""A value of each key that nothing obeys: P322 notes it."""

ONE_VALUE = {(ast.Admit, "mode"), (ast.TaskPolicy, "mode"), (ast.TaskPolicy, "on_unmatched")}
"""Keys that accept only what is done anyway, or that the definition reserves without a meaning (step §5.2.1)."""

CONTAINERS = {
    (ast.ExecutorSpec, "limits"), (ast.ExecutorSpec, "policy"), (ast.ExecutorPolicy, "defaults"),
    (ast.ExecutorPolicy, "results"), (ast.ExecutorPolicy, "limits"), (ast.StepSpec, "policy"), (ast.StepPolicy, "emit"),
    (ast.LoopSpec, "policy"), (ast.TaskSpec, "policy"), (ast.RouterSpec, "policy"), (ast.Executor, "spec"),
}  # fmt: skip
"""Keys whose value is an object of this table."""

OBJECTS = (
    ast.Executor, ast.ExecutorSpec, ast.ExecutorPolicy, ast.ExecutorDefaults, ast.ExecutorResults, ast.LimitSettings,
    ast.StepSpec, ast.StepPolicy, ast.Admit, ast.Lifecycle, ast.Failure, ast.Emit, ast.LoopSpec, ast.Rate,
    ast.LoopPolicy, ast.TaskSpec, ast.TaskPolicy, ast.Then, ast.RouterSpec, ast.RouterPolicy,
)  # fmt: skip


def written(place: str, text: str) -> bytes:
    filled = dict.fromkeys(PLACES, "") | {"loop_spec": "mode: parallel"} | {place: text}
    return PLAYBOOK.format(**filled).encode()


def codes(place: str, text: str) -> set[str]:
    return {finding.code for finding in check_bytes("keys.yaml", written(place, text)).findings}


def errors(place: str, text: str) -> set[str]:
    found = check_bytes("keys.yaml", written(place, text)).findings
    return {finding.code for finding in found if finding.severity is Severity.ERROR}


def effect(place: str, text: str) -> Any:
    """Return all that a run reads of a playbook; settings that nothing reads are not in it."""
    result = compile_playbooks([("keys.yaml", written(place, text))])
    if result.program is None:
        return codes(place, text)
    (code,) = result.program.playbooks
    loaded = prepare(result.program).main
    rates = [[loop.rate for loop in step.loops] for step in loaded.steps.values()]
    steps = [(step.limits, step.pool, step.leased_levels) for step in loaded.steps.values()]
    bare = [[value for name, value in vars_of(step) if name != "settings"] for step in code.steps]
    ends = (code.entry_step, code.final_step, code.no_next_is_error)
    return repr((loaded.limits, loaded.guards_success, objection_to(loaded, {}, {}), rates, steps, bare, *ends))


def vars_of(record: Any) -> Iterator[tuple[str, Any]]:
    return ((name, getattr(record, name)) for name in type(record).__annotations__)


def name_of(row: tuple[type[ast.Struct], str]) -> str:
    return f"{row[0].__name__}.{row[1]}"


@pytest.mark.parametrize("row", OBEYED, ids=name_of)
def test_a_key_that_is_obeyed_changes_what_runs(row: tuple[type[ast.Struct], str]) -> None:
    place, one, other = OBEYED[row]
    assert effect(place, one) != effect(place, other)
    assert "P322" not in codes(place, other)


@pytest.mark.parametrize("row", IGNORED, ids=name_of)
def test_a_key_that_nothing_obeys_is_noted_and_changes_nothing(row: tuple[type[ast.Struct], str]) -> None:
    place, text = IGNORED[row]
    assert "P322" in codes(place, text)
    if row[0] is ast.ExecutorSpec:  # it is layered into the spec of every task, and no tool reads it
        assert not any(kind.setting(row[1]) for kind in builtin_kinds().values())
        return
    before = "policy: { rules: [] }" if row[0] is ast.TaskPolicy else ""
    assert effect(place, text) == effect(place, before)


def test_every_key_of_every_spec_is_in_one_of_the_tables() -> None:
    known = OBEYED.keys() | IGNORED.keys() | ONE_VALUE | CONTAINERS
    every = {(struct, ast.yaml_key(name)) for struct in OBJECTS for name in attributes(struct)}
    assert {name_of(row) for row in every - known} == set()
    assert {name_of(row) for row in (OBEYED.keys() | ONE_VALUE | CONTAINERS) - every} == set()


@pytest.mark.parametrize("place", ["executor_spec", "step_spec", "loop_spec", "task_spec", "router_spec"])
def test_a_key_that_the_grammar_does_not_know_is_found(place: str) -> None:
    assert codes(place, "zzz_unknown: 1") & {"P121", "P323"}


MISPLACED = [
    ("executor_spec", "lifecycle: { timeout_s: 3 }"),
    ("executor_spec", "admit: { rules: [] }"),
    ("executor_spec", "max_in_flight: 3"),
    ("step_spec", "max_in_flight: 3"),
    ("step_spec", "mode: parallel"),
    ("step_spec", "unguarded_arcs: success"),
    ("loop_spec", "failure: { mode: best_effort }"),
    ("loop_spec", "admit: { rules: [] }"),
    ("loop_spec", "max_step_runs: 3"),
    ("router_spec", "failure: { mode: best_effort }"),
    ("router_spec", "max_in_flight: 3"),
    ("task_spec", "admit: { rules: [] }"),
    ("task_spec", "rules: []"),
    ("task_spec", "reducers: { n: sum }"),
]


@pytest.mark.parametrize(("place", "text"), MISPLACED)
def test_a_key_that_another_object_takes_is_an_error(place: str, text: str) -> None:
    assert errors(place, text) & {"P121", "P323"}


def test_every_setting_of_a_tool_is_a_setting_of_its_task() -> None:
    for kind in builtin_kinds().values():
        for setting in kind.settings:
            assert kind.setting(setting.name) is setting
