"""What a message about a masked value says to run again (S64)."""

from __future__ import annotations

import pytest

from noetlvm.machine.scope import remedy_in
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
