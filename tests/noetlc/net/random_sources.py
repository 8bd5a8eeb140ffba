"""Random small playbooks as YAML: every kind of pipeline, router, gate and loop."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.noetlc.graph.random_playbooks import GUARDS

if TYPE_CHECKING:
    import random

ODD_GUARDS = (
    "1 < ctx.a < 3",
    "(ctx.a and ctx.b) == 1",
    "(ctx.a or 'x') in ['x', 'y']",
    "ctx['a']|length > 3",
    "ctx.get('a') == 1",
    "(ctx.a + 1) * 2 == 4",
    "not (ctx.b if ctx.s else ctx.a)",
    "ctx.s is string and ctx.s ~ 'a' == 'xa'",
    "1 + 1 == 2 and ctx.b",
    "event.step == 's1'",
    "ctx.a is defined or event.error",
)
OUTCOMES = ("outcome.status == 'error'", "outcome.status == 'ok'", "outcome.error", "ctx.b", "true", "false")


def random_source(rng: random.Random) -> str:
    """Return a playbook that compiles."""
    names = [f"s{number}" for number in range(rng.randint(1, 5))]
    steps = [_step(rng, name, names) for name in names]
    spec = {"entry_step": rng.choice(names)} | ({"final_step": rng.choice(names)} if rng.random() < 0.2 else {})
    shared = {"one": {"kind": "noop"}, "both": [_task(rng, "x"), _task(rng, "y")], "web": _call(rng)}
    playbook = {
        "apiVersion": "noetl.io/v2",
        "kind": "Playbook",
        "metadata": {"name": "random", "path": "tests/random"},
        "executor": {"spec": spec},
        "workload": {"n": 1},
        "workflow": steps,
        "workbook": {"tasks": shared},
    }
    return json.dumps(playbook, indent=1)


def _step(rng: random.Random, name: str, names: list[str]) -> dict[str, Any]:
    step: dict[str, Any] = {"step": name}
    if rng.random() < 0.85:
        step["tool"] = [_entry(rng, f"t{number}", 0) for number in range(rng.randint(1, 3))]
    policy: dict[str, Any] = {}
    if rng.random() < 0.2:
        rules = [
            {"when": _template(rng, "ctx.b", "ctx.a == 1", "false", "true"), "then": {"allow": rng.random() < 0.5}}
        ]
        policy["admit"] = {"rules": [*rules, {"else": {"then": {"allow": rng.random() < 0.7}}}]}
        if rng.random() < 0.5:
            policy["admit"]["on_deny"] = "drop"
    if rng.random() < 0.1:
        policy["lifecycle"] = {"timeout_s": 5}
    if "tool" in step and rng.random() < 0.25:
        source = rng.choice(["{{ workload.n }}", [1, 2], [], "{{ [1, 2] }}", "{{ [] }}"])
        step["loop"] = {"in": source, "iterator": "item", "spec": {"mode": rng.choice(["sequential", "parallel"])}}
        if rng.random() < 0.3:
            policy["failure"] = {"mode": "best_effort"}
    if policy:
        step["spec"] = {"policy": policy}
    arcs = [_arc(rng, rng.choice(names)) for _ in range(rng.randint(0, 4))]
    if arcs or "tool" not in step:
        arcs = arcs or [{"step": rng.choice(names)}]
        step["next"] = {"spec": {"mode": rng.choice(["exclusive", "exclusive", "inclusive"])}, "arcs": arcs}
    return step


def _arc(rng: random.Random, target: str) -> dict[str, Any]:
    return {"step": target} | ({"when": _template(rng, *GUARDS, *ODD_GUARDS)} if rng.random() < 0.8 else {})


def _template(rng: random.Random, *texts: str) -> str:
    return "{{ " + rng.choice(texts) + " }}"


def _entry(rng: random.Random, label: str, depth: int) -> dict[str, Any]:
    drawn = rng.random()
    if depth > 1 or drawn < 0.6:
        return _task(rng, label)
    if drawn < 0.7:
        return {label: {"kind": "workbook", "task": rng.choice(["one", "both", "web"])}}
    body = [_entry(rng, f"{label}a", depth + 1)]
    when = _template(rng, "ctx.b", "ctx.a == 1", "true", "false")
    if drawn < 0.85:
        branches: list[dict[str, Any]] = [{"when": when, "then": body}]
        return {"choose": [*branches, {"else": {"then": [_entry(rng, f"{label}b", depth + 1)]}}]}
    return {rng.choice(["while", "until"]): {"when": when, "do": body}}


def _call(rng: random.Random) -> dict[str, Any]:
    calls: list[dict[str, Any]] = [
        {"kind": "noop"},
        {"kind": "noop", "note": "{{ ctx.a }}"},
        {"kind": "noop", "note": "{{ 1 + 1 }}"},
        {"kind": "http", "url": "https://example.org"},
    ]
    return dict(rng.choice(calls))


def _task(rng: random.Random, label: str) -> dict[str, Any]:
    task = _call(rng)
    if rng.random() < 0.6:
        rules: list[dict[str, Any]] = [
            {"when": _template(rng, *OUTCOMES), "then": _then(rng, label)} for _ in range(rng.randint(0, 2))
        ]
        if rng.random() < 0.8:
            rules.append({"else": {"then": _then(rng, label)}})
        task["spec"] = {"policy": {"rules": rules}}
    return {label: task}


def _then(rng: random.Random, label: str) -> dict[str, Any]:
    actions: list[dict[str, Any]] = [
        {"do": "continue"},
        {"do": "continue", "set_ctx": {rng.choice("ab"): "{{ ctx.a }}"}},
        {"do": "skip"},
        {"do": "break"},
        {"do": "fail"},
        {"do": "retry", "attempts": 2},
        {"do": "jump", "to": label},
    ]
    return rng.choice(actions)
