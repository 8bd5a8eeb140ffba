"""What people write, and what lint says about it: each mistake has its findings and no others."""

from __future__ import annotations

import pytest

from noetlc.finding import Finding, Severity
from noetlc.lint.check import check_bytes
from noetlc.lint.fixing import fix_text

HEADER = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: a, path: a}\n"
KEYCHAIN = "keychain:\n  - {name: pg, kind: postgres_credential}\n"


def playbook(steps: str, before: str = "") -> str:
    return f"{HEADER}{before}workflow:\n{steps}"


def task(inputs: str, before: str = "") -> str:
    return playbook(f"  - step: start\n    tool: {{{inputs}}}\n", before)


def rules(*lines: str) -> str:
    head = "  - step: start\n    tool:\n      kind: noop\n      spec:\n        policy:\n          rules:\n"
    return playbook(head + "".join(f"            - {line}\n" for line in lines))


CALL_DONE = """  - step: start
    tool: {kind: http, url: "https://example.com"}
    next:
      arcs:
        - {step: b, when: "{{ event.name == 'step.done' }}"}
        - {step: c, when: "{{ event.name == 'call.error' }}"}
  - step: b
    tool: {kind: noop}
  - step: c
    tool: {kind: noop}
"""
UNGUARDED = """  - step: start
    tool: {kind: http, url: "https://example.com"}
    next:
      arcs:
        - step: b
  - step: b
    tool: {kind: http, url: "https://example.com"}
    next: {arcs: [{step: c}]}
  - step: c
    tool: {kind: noop}
"""
READS_X = '  - step: b\n    tool: {kind: shell, command: [echo, "{{ ctx.x }}"]}\n'
TO_B = "    next: {arcs: [{step: b, when: \"{{ event.name == 'step.done' }}\"}]}\n"

VERDICTS: dict[str, tuple[str, list[str]]] = {
    # One mistake, one finding.
    "misspelt input": (task('kind: http, urll: "https://example.com"'), ["error P114"]),
    "set_ctx on a task": (
        playbook(f"  - step: start\n    tool: {{kind: noop, set_ctx: {{x: 1}}}}\n{TO_B}{READS_X}"),
        ["error P324"],
    ),
    "set_ctx on a step": (
        playbook(f"  - step: start\n    tool: {{kind: noop}}\n    set_ctx: {{x: 1}}\n{TO_B}{READS_X}"),
        ["error P324"],
    ),
    "set_ctx on an arc": (
        playbook("  - step: start\n    tool: {kind: noop}\n    next: {arcs: [{step: b, set_ctx: {x: 1}}]}\n" + READS_X),
        ["error P324"],
    ),
    "a rule without then": (
        rules("{when: \"{{ outcome.status == 'ok' }}\", do: continue, set_ctx: {x: 1}}", "{else: {then: {do: fail}}}"),
        ["error P309"],
    ),
    "a workbook that is a list": (
        task("kind: workbook, task: t", "workbook:\n  - {name: t, kind: noop}\n"),
        ["error P107"],
    ),
    # Helps that say what to write: see HELPS.
    "a keychain entry without kind": (
        task('kind: http, url: "https://example.com", auth: t', "keychain:\n  - {name: t}\n"),
        ["error P022"],
    ),
    "a template of Go": (task('kind: shell, command: [docker, ps, --format, "{{.Names}}"]'), ["error P201"]),
    # What is no mistake.
    "a body that is a mapping": (task('kind: http, method: POST, url: "https://example.com", body: {a: 1}'), []),
    "execution_id in SQL": (
        task("kind: postgres, auth: pg, command: \"SELECT '{{ execution_id }}'\"", KEYCHAIN),
        [],
    ),
    "executor.requires": (task("kind: noop", "executor: {requires: {tools: [noop]}}\n"), ["note P322"]),
    "a document of another kind": (
        "apiVersion: noetl.io/v2\nkind: Subscription\nmetadata: {name: a}\nspec: {}\n",
        ["error P024"],
    ),
    # One warning a playbook.
    "arcs without guards": (playbook(UNGUARDED), ["warning P407"]),
    # What used to pass.
    "auth over a default that the keychain lacks": (
        task('kind: postgres, auth: "{{ workload.pg }}", command: "SELECT 1"', f"workload: {{pg: pgg}}\n{KEYCHAIN}"),
        ["error P110"],
    ),
    "auth over a default that the keychain has": (
        task('kind: postgres, auth: "{{ workload.pg }}", command: "SELECT 1"', f"workload: {{pg: pg}}\n{KEYCHAIN}"),
        [],
    ),
    "a loop over a text": (
        playbook(
            '  - step: start\n    loop: {in: "{{ workload.rows }}", iterator: row}\n    tool: {kind: noop}\n',
            "workload: {rows: abc}\n",
        ),
        ["warning P318"],
    ),
    "arithmetic on a text": (
        task('kind: shell, command: [echo, "{{ workload.n + 1 }}"]', "workload: {n: '5'}\n"),
        ["warning P220"],
    ),
    "a misspelt name under default": (
        task('kind: shell, command: [echo, "{{ api_ulr | default(1) }}"]', "workload: {api_url: x}\n"),
        ["note P215"],
    ),
    "a name under default that a request may bring": (
        task('kind: shell, command: [echo, "{{ day | default(1) }}"]'),
        [],
    ),
    "call.error": (playbook(CALL_DONE), ["error P211"]),
}

HELPS = {
    "a keychain entry without kind": "form of the secret",
    "a template of Go": "{% raw %}",
    "a workbook that is a list": "workbook: {tasks:",
    "a rule without then": "then: { do: …, set_ctx: … }",
    "set_ctx on a step": "append a task",
    "set_ctx on an arc": "args:",
    "call.error": "step.failed",
}


def findings(text: str) -> list[Finding]:
    return list(check_bytes("a.yaml", text.encode()).findings)


def shown(text: str) -> list[str]:
    return [f"{finding.severity} {finding.code}" for finding in findings(text)]


@pytest.mark.parametrize("name", VERDICTS)
def test_a_mistake_has_its_findings_and_no_others(name: str) -> None:
    text, expected = VERDICTS[name]
    assert shown(text) == expected


@pytest.mark.parametrize("name", HELPS)
def test_the_help_says_what_to_write(name: str) -> None:
    finding = findings(VERDICTS[name][0])[0]
    assert HELPS[name] in finding.help


@pytest.mark.parametrize("unsafe", [False, True])
@pytest.mark.parametrize("name", VERDICTS)
def test_fixes_converge_in_one_run_and_add_no_error(name: str, unsafe: bool) -> None:
    text = VERDICTS[name][0]
    fixed = fix_text(text, findings, unsafe=unsafe)
    assert fixed.problem is None
    assert fix_text(fixed.text, findings, unsafe=unsafe).text == fixed.text
    errors = [one for one in shown(text) if one.startswith(Severity.ERROR)]
    assert len([one for one in shown(fixed.text) if one.startswith(Severity.ERROR)]) <= len(errors)


@pytest.mark.parametrize("name", ["arcs without guards", "call.error", "misspelt input"])
def test_unsafe_fixes_leave_nothing_of_a_mechanical_mistake(name: str) -> None:
    fixed = fix_text(VERDICTS[name][0], findings, unsafe=True)
    assert shown(fixed.text) == []
