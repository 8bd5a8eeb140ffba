"""Settings of a task's tool: which are read, and where an unknown one is reported."""

from __future__ import annotations

import pytest

from noetlc.finding import Finding
from noetlc.lint.check import check_source
from noetlc.lint.fixing import fix_text
from noetlc.syntax.playbook_printer import tree_data
from noetlc.syntax.span import Source
from noetlvm.language.tool_kinds import builtin_kinds
from tests.noetlc.canon.canonical import form_of
from tests.noetlc.rules.lint_text import lint, whole_playbook
from tests.noetlc.rules.marked_text import found_at_marks

HTTP = "- step: a\n  tool:\n    - get: {kind: http, url: 'https://example.org', spec: %s}\n"


@pytest.mark.parametrize(
    ("spec", "help"),
    [
        ("{«timeuot: 5}", "did you mean `timeout`?"),
        ("{«priority: 3}", "`http` has `timeout`"),
        ("{«polcy: {rules: []}}", "did you mean `policy`?"),
        ("{«rules: []}", "write it as `spec.policy.rules`"),
        ("{«attempts: 3}", "write it as `then.attempts` of a rule in `spec.policy`"),
        ("{«max_in_flight: 3}", "write it as `loop.spec.max_in_flight`"),
        ("{«headers: {a: b}}", "it is an input: move it out of `spec`"),
    ],
)
def test_a_setting_that_the_tool_does_not_have_is_found(spec: str, help: str) -> None:
    (finding,) = found_at_marks(HTTP % spec, "P121")
    assert help in finding.help


@pytest.mark.parametrize(
    "text",
    [
        HTTP % "{timeout: {connect: 1, read: 2}, verify_tls: true, retries: 2, policy: {rules: []}}",
        "- step: a\n  spec: {memory_mb: 64}\n  tool:\n    - get: {kind: http, url: 'https://example.org'}\n",
    ],
)
def test_what_the_tool_obeys_or_is_for_others_is_not_reported(text: str) -> None:
    assert lint(text, "P121") == []


@pytest.mark.parametrize(
    ("task", "help"),
    [
        ("{kind: noop, spec: {«polcy: {rules: []}}}", "did you mean `policy`?"),
        ("{kind: noop, spec: {«rules: []}}", "write it as `spec.policy.rules`"),
        ("{kind: noop, spec: {«anything: 1}}", "`noop` has none"),
        ("{kind: workbook, task: w, spec: {«polcy: {rules: []}}}", "did you mean `policy`?"),
    ],
)
def test_a_task_without_settings_of_its_own_is_checked_too(task: str, help: str) -> None:
    (finding,) = found_at_marks(f"- step: a\n  tool: {task}\n", "P121")
    assert help in finding.help


def test_a_call_of_the_workbook_may_have_settings_of_its_tasks() -> None:
    assert lint("- step: a\n  tool: {kind: workbook, task: w, spec: {timeout: 1, memory_mb: 64}}\n", "P121") == []


def _misplaced() -> list[tuple[str, str]]:
    """Return every input of a kind with settings that a task may have under `spec` by mistake."""
    return [
        (kind.name, item.name)
        for kind in builtin_kinds().values()
        if kind.settings and kind.runs_on != "compiler"
        for item in kind.inputs
        if kind.setting(item.name) is None
    ]


@pytest.mark.parametrize(("kind", "name"), _misplaced())
def test_moving_an_input_out_of_spec_is_safe_because_the_compiler_does_it_too(kind: str, name: str) -> None:
    item = builtin_kinds()[kind].input(name)
    assert item is not None
    value = next(_VALUES[type_] for type_ in item.types if type_ in _VALUES)
    text = whole_playbook(f"- step: a\n  tool:\n    - t: {{kind: {kind}, spec: {{{name}: {value}, timeout: 5}}}}\n")

    def findings(text: str) -> list[Finding]:
        return list(check_source(Source("playbook.yaml", text)).findings)

    fixed = fix_text(text, findings, unsafe=False).text
    assert fixed != text
    assert "P121" not in {finding.code for finding in findings(fixed)}
    assert tree_data(form_of(text).playbook) == tree_data(form_of(fixed).playbook)


_VALUES = {"string": '"{{ workload.x }}"', "object": "{a: 1}", "array": "[1]", "integer": "1", "boolean": "true"}


def test_the_help_for_an_unknown_label_lists_a_bounded_number_of_labels() -> None:
    labels = "".join(f"    - task_of_the_pipeline_{number}: {{kind: noop}}\n" for number in range(500))
    rules = "{policy: {rules: [{else: {then: {do: jump, to: x}}}]}}"
    (finding,) = lint(f"- step: a\n  tool:\n{labels}    - last: {{kind: noop, spec: {rules}}}\n", "P104")
    assert finding.help.endswith(" and 481 more")
