"""Every default of the specifications: left out, a run goes as if it were written; written otherwise, it does not."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from noetlvm.data.event import Event
from noetlvm.testing import run_playbook

HEAD = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: { name: example, path: examples/example }\n"
API = "kind: http, url: https://api.example.org/items"


class Default(NamedTuple):
    """A playbook with a gap: `@` stands where something may be said."""

    text: str
    said: str
    """The default, written out."""
    otherwise: str
    scripts: dict[str, Any]


def step(body: str, more: str = "") -> str:
    return f"workflow:\n- {{ step: start, {body} }}\n{more}"


RETRY = f"tool: [{{ fetch: {{ {API}, spec: {{ policy: {{ rules: [{{ @ }}] }} }} }} }}]"
RULE = """when: "{{ outcome.error.retryable }}", then: { do: retry@ }"""
RETRIES = step(RETRY.replace("@", RULE))
ENDS = "".join(f"- {{ step: {name}, tool: {{ kind: noop }} }}\n" for name in ("left", "right"))
LOOPED = step(f"loop: {{ in: [1, 2, 3], iterator: n, spec: {{ @ }} }}, tool: [{{ fetch: {{ {API} }} }}]")
WIDE = LOOPED.replace("[1, 2, 3]", '"{{ range(40) | list }}"')
LASTS = {"fetch": {"answer": "ok", "takes": 1}}
FAILS = {"fetch": "error boom"}
LOST = {"fetch[0]": ["lost", "ok"], "fetch": {"answer": "ok", "takes": 1}}
GATE = """{ when: "{{ ctx.open }}", then: { allow: true } }, { else: { then: { allow: false } } }"""
GATED = step(
    "tool: { kind: noop }, next: { spec: { mode: inclusive }, arcs: [{ step: gated }, { step: opens }] }",
    f"- {{ step: gated, spec: {{ policy: {{ admit: {{ rules: [{GATE}]@ }} }} }}, tool: {{ kind: noop }} }}\n"
    "- { step: opens, tool: { kind: noop, spec: { policy: { rules: [{ else: { then: "
    "{ do: continue, set_ctx: { open: true } } } }] } } } }\n",
)
ROUTED = step("tool: { kind: noop }, next: { @arcs: [{ step: left }, { step: right }] }", ENDS)
ARC = step("tool: { kind: noop }, next: { arcs: [{ step: left@ }, { step: right }] }", ENDS)
ALLOWS = "spec: { policy: { admit: { rules: [{ else: { then: { allow: %s } } }] } } }, "
POLICY = step(f"tool: [{{ fetch: {{ {API}@ }} }}, {{ after: {{ kind: noop }} }}]")
ON_ERROR = """, spec: { policy: { rules: [{ when: "{{ outcome.status == 'error' }}", then: { do: %s } }] } }"""
NO_NEXT = "executor: { spec: { @ } }\n" + step(
    """tool: { kind: noop }, next: { arcs: [{ step: left, when: "{{ ctx.x }}" }] }""", ENDS
)
ENTRY = "executor: { spec: { @ } }\nworkflow:\n" + "".join(
    f"- {{ step: {name}, tool: {{ kind: noop }} }}\n" for name in ("first", "start", "last")
)

DEFAULTS = {
    "admit": Default(step("@tool: { kind: noop }"), ALLOWS % "true", ALLOWS % "false", {}),
    "admit.on_deny": Default(GATED, ", on_deny: wait", ", on_deny: drop", {}),
    "next.mode": Default(ROUTED, "spec: { mode: exclusive }, ", "spec: { mode: inclusive }, ", {}),
    "next.when": Default(ARC, ", when: true", ", when: false", {}),
    "policy": Default(POLICY, ON_ERROR % "fail", ON_ERROR % "continue", FAILS),
    "policy.else": Default(
        step(RETRY.replace("@ }", "when: false, then: { do: break } }@")),
        ", { else: { then: { do: continue } } }",
        ", { else: { then: { do: fail } } }",
        FAILS,
    ),
    "retry.attempts": Default(RETRIES, ", attempts: 3", ", attempts: 2", {"fetch": "http 500"}),
    "retry.delay": Default(RETRIES, ", delay: 0", ", delay: 1", {"fetch": "http 500"}),
    "retry.backoff": Default(
        RETRIES.replace("@", ", delay: 5@"), ", backoff: none", ", backoff: linear", {"fetch": "http 500"}
    ),
    "loop.mode": Default(LOOPED, "mode: sequential", "mode: parallel", LASTS),
    "loop.max_in_flight": Default(
        WIDE.replace("@", "mode: parallel@"), ", max_in_flight: 32", ", max_in_flight: 31", LASTS
    ),
    "loop.exec of a parallel loop": Default(
        LOOPED.replace("@", "mode: parallel@"), ", policy: { exec: distributed }", ", policy: { exec: local }", LOST
    ),
    "loop.exec of a sequential loop": Default(
        LOOPED.replace("@", "mode: sequential@"), ", policy: { exec: local }", ", policy: { exec: distributed }", LOST
    ),
    "failure.mode": Default(
        step(f"@loop: {{ in: [1, 2], iterator: n }}, tool: [{{ fetch: {{ {API} }} }}]"),
        "spec: { policy: { failure: { mode: fail_fast } } }, ",
        "spec: { policy: { failure: { mode: best_effort } } }, ",
        FAILS,
    ),
    "executor.entry_step": Default(ENTRY, "entry_step: start", "entry_step: first", {}),
    "executor.no_next_is_error": Default(NO_NEXT, "no_next_is_error: false", "no_next_is_error: true", {}),
}


def log(default: Default, said: str) -> list[tuple[Any, ...]]:
    """Return the events without the places of rules, which the text that is there moves."""
    events = run_playbook(HEAD + default.text.replace("@", said), default.scripts).events
    return [tuple(_placeless(event)) for event in events]


def _placeless(event: Event) -> Event:
    return event._replace(data={key: value for key, value in event.data.items() if key != "at"})


@pytest.mark.parametrize("name", DEFAULTS)
def test_what_is_left_out_is_as_the_default_says(name: str) -> None:
    default = DEFAULTS[name]
    assert log(default, "") == log(default, default.said)


@pytest.mark.parametrize("name", DEFAULTS)
def test_what_is_said_counts(name: str) -> None:
    default = DEFAULTS[name]
    assert log(default, "") != log(default, default.otherwise)


def test_until_goes_round_ten_thousand_times_at_most() -> None:
    run = run_playbook(HEAD + step("tool: [{ until: { when: false, do: [{ again: { kind: noop } }] } }]"))
    assert run.names().count("task.done") == 10_000
    assert run.failures[0]["error"]["kind"] == "fuel"
