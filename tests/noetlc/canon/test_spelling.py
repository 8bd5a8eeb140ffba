"""Other spellings mean the same as the canonical ones: in the canonical form, in lint and in a run."""

from __future__ import annotations

from typing import Any

import pytest

from noetlc.syntax.playbook_printer import tree_data
from noetlvm.language.tool_kinds import SPEC, builtin_kinds
from tests.noetlc.canon.canonical import form_of, printed, tasks
from tests.noetlc.rules.lint_text import lint

REQUIRED = {
    "http": "url: 'https://example.org'",
    "postgres": "auth: pg, command: SELECT 1",
    "duckdb": "command: SELECT 1",
    "python": "code: result = 1",
    "shell": "command: [ls]",
    "playbook": "path: a/b",
    "secrets": "provider: env, secret: X",
}


def task(text: str) -> dict[str, Any]:
    return next(iter(tasks(f"- step: start\n  tool: {{{text}}}\n").values()))


def retried(text: str) -> dict[str, Any]:
    """Return a task as rules see it, whose `retry` is an error with a fix that writes the policy."""
    steps = f"- step: start\n  tool: {{{text}}}\n"
    (found,) = lint(steps, "P329")
    assert found.severity == "error"
    assert found.fix is not None
    (entry,) = tree_data(form_of(steps).playbook)["workflow"][0]["tool"]
    made: dict[str, Any] = next(iter(entry.values()))
    return made


SPELLINGS = [
    (kind.name, written, canonical)
    for kind in builtin_kinds().values()
    if kind.name in REQUIRED and kind.name not in ("postgres", "duckdb")
    for written, canonical in kind.spellings.items()
    if canonical.startswith(SPEC)
]


@pytest.mark.parametrize(("kind", "written", "canonical"), SPELLINGS)
def test_a_setting_among_the_inputs_moves_to_the_spec(kind: str, written: str, canonical: str) -> None:
    value: Any = 5 if canonical == "spec.timeout" else False
    shown = "5" if value == 5 else "false"
    made = task(f"kind: {kind}, {REQUIRED[kind]}, {written}: {shown}")
    assert made["spec"][canonical.removeprefix(SPEC)] == value
    assert written not in made


@pytest.mark.parametrize(
    ("kind", "written", "canonical", "value"),
    [
        ("http", "endpoint", "url", "https://example.org"),
        ("http", "payload", "body", {"a": 1}),
        ("http", "data", "body", "text"),
        ("python", "input", "args", {"a": 1}),
        ("playbook", "args", "workload", {"a": 1}),
        ("playbook", "payload", "workload", {"a": 1}),
        ("playbook", "input", "workload", {"a": 1}),
        ("duckdb", "query", "command", "SELECT 1"),
        ("duckdb", "commands", "command", "SELECT 1"),
        ("duckdb", "with", "params", [1]),
        ("shell", "cmd", "command", "ls"),
    ],
)
def test_another_name_of_an_input_becomes_the_canonical_one(
    kind: str, written: str, canonical: str, value: Any
) -> None:
    rest = REQUIRED[kind] if f"{canonical}:" not in REQUIRED[kind] else "desc: x"
    made = task(f"kind: {kind}, {rest}, {written}: {value!r}")
    assert made[canonical] == value
    assert written not in made


def test_an_input_under_the_spec_moves_out_of_it_with_a_warning() -> None:
    text = "- step: start\n  tool: {kind: http, spec: {url: 'https://example.org', timeout: 5}}\n"
    made = next(iter(tasks(text).values()))
    assert made["url"] == "https://example.org"
    assert made["spec"]["timeout"] == 5
    assert "url" not in made["spec"]
    assert [finding.code for finding in lint(text) if finding.code in ("P121", "P122", "P113")] == ["P121"]


def test_a_name_and_its_other_spelling_together_are_an_error() -> None:
    found = lint("- step: start\n  tool: {kind: http, url: 'https://a.example', endpoint: 'https://b.example'}\n")
    (finding,) = [item for item in found if item.code == "P114"]
    assert finding.severity == "error"
    assert "another name of `url`" in finding.help


@pytest.mark.parametrize(
    ("retry", "then"),
    [
        ("3", {"do": "retry", "attempts": 3, "backoff": "none"}),
        ("{max_attempts: 5, delay: 2}", {"do": "retry", "attempts": 5, "backoff": "none", "delay": 2}),
        ("{backoff: fixed}", {"do": "retry", "attempts": 3, "backoff": "none"}),
        (
            "{attempts: 2, initial_delay: 1, backoff_multiplier: 1.5}",
            {"do": "retry", "attempts": 2, "backoff": "none", "delay": "{{ 1 * 1.5 ** (_attempt - 1) }}"},
        ),
        (
            "{initial_delay: 1, backoff_multiplier: 2, jitter: false}",
            {"do": "retry", "attempts": 3, "backoff": "exponential", "delay": 1},
        ),
        (
            "{delay: 1, backoff_factor: 2, max_delay: 30}",
            {"do": "retry", "attempts": 3, "backoff": "none", "delay": "{{ [1 * 2 ** (_attempt - 1), 30] | min }}"},
        ),
    ],
)
def test_a_retry_on_a_task_becomes_a_policy(retry: str, then: dict[str, Any]) -> None:
    made = retried(f"kind: python, code: result = 1, retry: {retry}")
    first, last = made["spec"]["policy"]["rules"]
    assert first == {"when": "{{ outcome.status == 'error' }}", "then": then}
    assert last == {"else": {"then": {"do": "continue"}}}


def test_a_conditional_retry_fails_on_other_errors() -> None:
    made = retried("kind: python, code: result = 1, retry: {max_attempts: 2, when: '{{ outcome.error.retryable }}'}")
    rules = made["spec"]["policy"]["rules"]
    assert [rule["then"]["do"] for rule in rules[:2]] == ["retry", "fail"]
    assert rules[0]["when"] == "{{ outcome.status == 'error' and (outcome.error.retryable) }}"


@pytest.mark.parametrize("retry", ["{max_attempts: many}", "{stop_when: 2}", "[1]", "{backoff: random}"])
def test_a_retry_that_no_policy_expresses_is_reported(retry: str) -> None:
    found = lint(f"- step: start\n  tool: {{kind: python, code: result = 1, retry: {retry}}}\n")
    assert "P114" in [finding.code for finding in found]


def test_the_execution_has_its_own_name() -> None:
    made = task("kind: python, code: result = 1, args: {a: '{{ job.uuid }}', b: 'run {{ job.execution_id | upper }}'}")
    assert made["args"] == {"a": "{{ execution_id }}", "b": "run {{ execution_id | upper }}"}


def test_a_name_that_the_playbook_defines_itself_stays() -> None:
    text = """
        apiVersion: noetl.io/v2
        kind: Playbook
        metadata: {name: a, path: a}
        workload: {job: {uuid: 1}}
        workflow:
          - step: start
            tool: {kind: python, code: result = 1, args: {a: "{{ job.uuid }}"}}
        """
    assert "{{ job.uuid }}" in printed(text)


def test_a_file_gets_one_note_however_many_names_it_spells_differently() -> None:
    found = lint("- step: start\n  tool: {kind: http, endpoint: 'https://example.org', payload: a, timeout: 5}\n")
    assert [finding.code for finding in found if finding.code in ("P113", "P114", "P121", "P122")] == ["P122"]


@pytest.mark.parametrize(
    ("inputs", "severity"),
    [
        ("url: 'https://example.org', querystring: {a: 1}", "warning"),
        ("url: 'https://example.org', hedaers: {a: 1}", "error"),
        ("location: 'https://example.org'", "error"),
        ("url: 'https://example.org', policy: {rules: []}", "error"),
    ],
)
def test_an_unknown_input_is_an_error_only_if_another_one_may_be_meant(inputs: str, severity: str) -> None:
    found = lint(f"- step: start\n  tool: {{kind: http, {inputs}}}\n")
    assert [(item.code, item.severity) for item in found if item.code in ("P113", "P114")] == [("P114", severity)]
