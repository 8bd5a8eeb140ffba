"""Nothing that a playbook or a tool does can make an event that no store takes: it fails a task, never the engine."""

from __future__ import annotations

from typing import Any

import pytest

from noetlvm.data.encoding import encode
from noetlvm.limits import EVENT_BYTES_MAX
from noetlvm.tools.call import Outcome, ToolCall, error
from tests.noetlvm.engine.runs import Session

LONG = "x" * (EVENT_BYTES_MAX + 1)
UNDEFINED = '"{{ ctx[workload.long] + 1 }}"'
TASK = "- { step: start, tool: { kind: noop, spec: { policy: { rules: [RULE] } } } }"
GATE = "- { step: start, spec: { policy: { admit: { rules: [RULE] } } }, tool: { kind: noop } }"
TOLD = {
    "a guard of a task": TASK.replace("RULE", f"{{ when: {UNDEFINED}, then: {{ do: fail }} }}"),
    "a patch": TASK.replace("RULE", f"{{ else: {{ then: {{ do: continue, set_ctx: {{ a: {UNDEFINED} }} }} }} }}"),
    "an arc": f"- {{ step: start, tool: {{ kind: noop }}, next: {{ arcs: [{{ step: start, when: {UNDEFINED} }}] }} }}",
    "a gate": GATE.replace("RULE", f"{{ when: {UNDEFINED}, then: {{ allow: true }} }}"),
    "a loop": f"- {{ step: start, loop: {{ in: {UNDEFINED}, iterator: n }}, tool: {{ kind: noop }} }}",
    "a path": '- { step: start, tool: { kind: playbook, path: "{{ workload.long }}" } }',
    "a version": '- { step: start, tool: { kind: playbook, path: child, version: "{{ workload.long }}" } }',
}


@pytest.mark.parametrize("text", TOLD.values(), ids=TOLD)
def test_a_message_that_quotes_something_long_is_cut(text: str) -> None:
    session = Session()
    ending = session.run(text, payload={"long": LONG})
    assert ending.status == "failed"
    assert all(len(encode(one.event.data)) <= EVENT_BYTES_MAX for one in session.received)


def test_a_tool_that_returns_too_much_fails_its_task() -> None:
    async def play(_call: ToolCall) -> Outcome:
        return error(LONG, "a word that is no word")

    session = Session(play)
    ending = session.run("- { step: start, tool: { kind: shell, command: [work] } }")
    assert ending.status == "failed"
    assert ending.failures[0]["error"]["kind"] == "limit"
    (done,) = [one.event for one in session.received if one.event.name == "task.done"]
    assert (done.data["outcome"]["status"], done.data["outcome"]["error"]["kind"]) == ("error", "limit")


def test_a_step_may_lead_to_many_steps_with_more_args_than_one_event_can_carry() -> None:
    ends = [f"end_{number}_{'n' * 60}" for number in range(1_500)]
    arcs = ", ".join(f'{{ step: {end}, args: {{ a: "{{{{ workload.a }}}}" }} }}' for end in ends)
    text = f"- {{ step: start, tool: {{ kind: noop }}, next: {{ spec: {{ mode: inclusive }}, arcs: [{arcs}] }} }}\n"
    text += "\n".join(f"- {{ step: {end}, tool: {{ kind: noop }} }}" for end in ends)
    assert Session().run(text, payload={"a": "x" * 1_000}).status == "success"


@pytest.mark.long
def test_cancelling_more_children_than_one_event_can_name() -> None:
    count = 6_000
    text = f"""
    - step: start
      loop: {{ in: "{{{{ range({count}) }}}}", iterator: n, spec: {{ mode: parallel, max_in_flight: {count} }} }}
      tool: {{ kind: playbook, path: child }}
    """
    child = """
    apiVersion: noetl.io/v2
    kind: Playbook
    metadata: { name: child, path: child }
    workflow:
      - { step: start, tool: { kind: shell, command: [stop] } }
    """
    session = Session()
    engines: list[Any] = []

    async def play(_call: ToolCall) -> Outcome:
        (engine,) = engines
        root = next(row for row in session.store.executions() if not row.parent)
        engine.control(root.execution_id, "cancel")
        return error("late", "it is cancelled meanwhile")

    session.tools.play = play
    make = session.engine

    def left(**options: Any) -> Any:
        engines.append(make(**options))
        return engines[-1]

    session.engine = left  # type: ignore[method-assign]
    assert session.run(text, child).status == "cancelled"
    assert not session.store.unfinished()


@pytest.mark.parametrize("timeout", ["soon", "5 s", -1, True, [1], 10**400, "9" * 400])
def test_a_child_is_not_requested_with_a_timeout_that_is_none(timeout: Any) -> None:
    text = '- { step: start, tool: { kind: playbook, path: child, spec: { timeout: "{{ workload.timeout }}" } } }'
    ending = Session().run(text, payload={"timeout": timeout})
    assert ending.failures[0]["error"]["kind"] == "input"
    assert "`spec.timeout`" in ending.failures[0]["error"]["message"]


@pytest.mark.parametrize("number", ["{{ 2 ** 4000 }}", "{{ '9' * 400 }}"])
def test_a_delay_that_no_float_can_hold_does_not_stop_the_engine(number: str) -> None:
    rule = f'{{ when: "{{{{ _attempt == 1 }}}}", then: {{ do: retry, attempts: 2, delay: "{number}" }} }}'
    spec = f"policy: {{ rules: [{rule}] }}"
    ending = Session().run(f"- {{ step: start, tool: {{ kind: shell, command: [work], spec: {{ {spec} }} }} }}")
    assert ending.status == "success"
