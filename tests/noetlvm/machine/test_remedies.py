"""What can be read of recorded data that was a secret, and what a message about it says to run again (S64)."""

from __future__ import annotations

from typing import Any

import pytest

from noetlvm.data.encoding import MASK
from noetlvm.expr.values import Masked
from noetlvm.machine.payload import Offload
from noetlvm.machine.scope import Scope, pipeline_names, remedy_in, unmasked
from tests.noetlvm.engine.runs import bundle_of

TEXT = """
- step: start
  tool:
    - login:
        kind: shell
        command: [login]
        spec:
          policy:
            rules:
              - when: "{{ outcome.status == 'error' }}"
                then: { do: fail, set_ctx: { why: "{{ outcome.error.kind }}" } }
              - else: { then: { do: continue, set_ctx: { token: "{{ outcome.result }}", fixed: 1 } } }
    - other:
        kind: shell
        command: [other]
        spec: { policy: { rules: [{ else: { then: { do: continue, set_ctx: { why: none } } } }] } }
  next: { arcs: [{ step: many, args: { passed: "{{ ctx.token }}" } }] }
- step: many
  loop: { in: [1], iterator: item }
  tool:
    - keep:
        kind: shell
        command: [keep]
        spec: { policy: { rules: [{ else: { then: { do: continue, set_iter: { own: "{{ outcome.result }}" } } } }] } }
    - use: { kind: shell, command: ["{{ iter.own }}"] }
  next: { arcs: [{ step: last }] }
- { step: last }
"""


@pytest.mark.parametrize(
    ("path", "advice"),
    [
        ("ctx.token", "run the task `login` of the step `start` again"),
        ("ctx.token.deep[0].key", "run the task `login` of the step `start` again"),
        ("ctx.fixed", "run the task `login` of the step `start` again"),
        ("ctx.why", "run the task `login` of the step `start` or the task `other` of the step `start` again"),
        ("ctx.unknown", "run the task that set it again"),
        ("iter.own", "run the task `keep` again"),
        ("iter.item", "run the task that set it again"),
        ("args.passed", "run the step `start` again"),
        ("workload.key", "start the execution again"),
        ("start.stdout", "run the step `start` again"),
        ("a stored result.key", "run the task that set it again"),
    ],
)
def test_the_advice_names_what_writes_the_field(path: str, advice: str) -> None:
    assert remedy_in(bundle_of(TEXT).program.main, "many")(path) == advice


def test_a_task_of_the_same_step_goes_by_its_label_alone() -> None:
    assert remedy_in(bundle_of(TEXT).program.main, "start")("ctx.token") == "run the task `login` again"


def masks(value: object) -> Any:
    return unmasked(value, "ctx", lambda path: f"see {path}")


def test_only_what_holds_a_mask_cannot_be_read() -> None:
    for plain in ([1, "a"], {"a": [1]}, (1, 2), "text", 5):
        assert masks(plain) is plain
    found = masks({"a": [1, MASK, (2, MASK)], "b": 3})
    assert [type(found["a"][1]), type(found["a"][2][1])] == [Masked, Masked]
    assert (found["a"][0], found["a"][2][0], found["b"]) == (1, 2, 3)
    assert type(masks({MASK: 1})) is Masked


def test_a_mask_in_a_stored_result_cannot_be_read() -> None:
    offload = Offload(10)
    around = Scope(offload, "x", 1, ctx={"a": offload.shrink({"token": MASK, "n": 1})}, has_secrets=True)
    found = pipeline_names(around, None, {})["ctx"]["a"]
    assert (type(found["token"]), found["n"]) == (Masked, 1)


def test_results_of_steps_may_be_found_by_a_function() -> None:
    around = Scope(Offload(), "x", 1, results=lambda name: f"result of {name}")
    assert pipeline_names(around, None, {})["steps"]("a") == "result of a"
