"""Data that is not JSON is refused where it arises, before it reaches the log (audit F9)."""

from __future__ import annotations

import pytest

from noetlc.rules.catalogue import whole_playbook
from noetlvm.testing import run_playbook


@pytest.mark.parametrize(
    ("written", "field", "message"),
    [
        ("{{ {(1, 2): 3} }}", "set_ctx.v", "a tuple as a key"),
        ("{{ {1: 'a', '1': 'b'} }}", "set_ctx.v", "the key 1"),
        ("{{ [{'deep': {none: 1}}] }}", "set_ctx.v", "the key None"),
    ],
)
def test_a_patch_with_a_key_that_is_no_text_fails_the_step_and_names_the_field(
    written: str, field: str, message: str
) -> None:
    playbook = whole_playbook(f"""
- step: start
  tool:
    - work:
        kind: noop
        spec: {{ policy: {{ rules: [{{ else: {{ then: {{ do: continue, set_ctx: {{ v: "{written}" }} }} }} }}] }} }}
""")
    run = run_playbook(playbook)
    assert run.status == "failed"
    assert "v" not in run.ctx
    assert field in str(run.failures)
    assert message in str(run.failures)


def test_arguments_of_an_arc_with_a_key_that_is_no_text_fail_the_run() -> None:
    playbook = whole_playbook("""
- step: start
  tool: [{ work: { kind: noop } }]
  next: { arcs: [{ step: after, when: "{{ true }}", args: { v: "{{ {1: 2} }}" } }] }
- step: after
  tool: [{ work: { kind: noop } }]
""")
    run = run_playbook(playbook)
    assert run.status == "failed"
    assert "args.v" in str(run.failures)
