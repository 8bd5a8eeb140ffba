"""Suggestions: the right name for a misspelt one, and bounded work for a file with any number of unknown names."""

from __future__ import annotations

import pytest

from noetlvm import nearest
from tests.noetlc.rules.lint_text import lint

NAMES = [f"name_{number:03}" for number in range(40)]
UNKNOWN = [f"nmae_{number:03}" for number in range(40)]
PATCH = "spec: {policy: {rules: [{else: {then: {do: continue, %s}}}]}}"


def playbook(steps: str, head: str = "") -> str:
    root = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: n, path: n}\n"
    return f"{root}{head}workflow:\n{steps}\n"


def reading(expression: str, more: str = "") -> str:
    """Return a step whose tasks each read another unknown name."""
    tasks = [
        f"{{l{at}: {{kind: python, code: 'pass', args: {{a: '{{{{ {expression % name} }}}}'}}{more % NAMES[at]}}}}}"
        for at, name in enumerate(UNKNOWN)
    ]
    return f"tool: [{', '.join(tasks)}]"


def keys(names: list[str]) -> str:
    return "{" + ", ".join(f"{name}: 1" for name in names) + "}"


JUMPS = [f"{{{name}: {{kind: noop, {PATCH % f'to: {UNKNOWN[at]}'}}}}}" for at, name in enumerate(NAMES)]
STEPS = [
    f"- {{step: {name}, tool: {{kind: noop}}, next: {{arcs: [{{step: {UNKNOWN[at]}}}]}}}}"
    for at, name in enumerate(NAMES)
]
KEYCHAIN = "keychain: [" + ", ".join(f"{{name: {name}, kind: secret_manager}}" for name in NAMES) + "]\n"
WORKLOAD = f"workload: {keys(NAMES)}\n"
ITER = f", {PATCH % 'set_iter: {%s: 1}'}"
CTX = f", {PATCH % 'set_ctx: {%s: 1}'}"
REDUCERS = f"{{mode: parallel, policy: {{reducers: {keys(UNKNOWN)}}}}}".replace(": 1", ": sum")
WRITER = f"{{kind: noop, {PATCH % f'set_ctx: {keys(NAMES)}'}}}"
LOOP = "loop: {in: [1], iterator: i}"

FILES = {
    "P102": playbook("\n".join(STEPS)),
    "P104": playbook(f"- {{step: s, tool: [{', '.join(JUMPS)}]}}".replace("do: continue", "do: jump")),
    "P110": playbook(f"- {{step: s, {reading('keychain.%s', '%.0s')}}}", KEYCHAIN),
    "P215": playbook(f"- {{step: s, {reading('%s', '%.0s')}}}", WORKLOAD),
    "P107": playbook(
        f"- {{step: s, tool: [{', '.join(f'{{kind: workbook, task: {name}}}' for name in UNKNOWN)}]}}",
        "workbook: {tasks: {" + ", ".join(f"{name}: {{kind: noop}}" for name in NAMES) + "}}\n",
    ),
    "P317": playbook(f"- {{step: s, loop: {{in: [1], iterator: i, spec: {REDUCERS}}}, tool: [{WRITER}]}}"),
    "P503": playbook(f"- {{step: s, {LOOP}, {reading('iter.%s', ITER)}}}"),
    "P504": playbook(f"- {{step: s, {reading('workload.%s', '%.0s')}}}", WORKLOAD),
    "P506": playbook(f"- {{step: s, {reading('ctx.%s', CTX)}}}"),
    "P511": playbook(
        f"- {{step: a, tool: {{kind: noop}}, next: {{arcs: [{{step: s, args: {keys(NAMES)}}}]}}}}\n"
        f"- {{step: s, {reading('args.%s', '%.0s')}}}"
    ),
    "P513": playbook(f"- {{step: s, {reading('ctx.%s', CTX)}}}"),
}


@pytest.mark.parametrize("code", FILES)
def test_each_unknown_name_gets_the_known_one_that_is_nearest(code: str) -> None:
    helps = [finding.help for finding in lint(FILES[code], code)]
    assert len(helps) == len(UNKNOWN)
    wanted = UNKNOWN if code == "P513" else NAMES  # it is about a name that is written, and suggests one that is read
    assert all(name in help for name, help in zip(wanted, helps, strict=True))


@pytest.mark.parametrize("code", FILES)
def test_all_suggestions_of_a_file_cost_a_bounded_number_of_comparisons(
    code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[str] = []
    distance = nearest._distance

    def counted(left: str, right: str, limit: int) -> int:
        compared.append(left)
        return distance(left, right, limit)

    monkeypatch.setattr(nearest, "COMPARISONS_MAX", 500, raising=False)
    monkeypatch.setattr(nearest, "_distance", counted)
    assert len(lint(FILES[code], code)) == len(UNKNOWN)
    assert 0 < len(compared) <= 500
