"""Keys that are left out of the language on purpose: root variables, and conditions by another name than `when`."""

from __future__ import annotations

import pytest

from noetlc.finding import Severity
from noetlc.rules.catalogue import whole_playbook
from tests.noetlc.rules.lint_text import fixed, lint, place

_ROOT = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {{name: a, path: a/b}}
{section}
workflow: [{{step: start, tool: {{kind: noop}}}}]
"""


def test_root_vars_may_become_workload() -> None:
    text = _ROOT.format(section="vars: {x: 1}  # mine")
    (finding,) = lint(text, "P025")
    assert finding.severity is Severity.ERROR
    assert place(finding, text) == (4, 1)
    assert "`workload`" in finding.help
    assert "`set_ctx`" in finding.help
    assert finding.fix is not None
    assert not finding.fix.safe
    assert fixed(text, finding) == text.replace("vars:", "workload:")


def test_root_vars_beside_workload_are_not_renamed() -> None:
    (finding,) = lint(_ROOT.format(section="vars: {x: 1}\nworkload: {y: 1}"), "P025")
    assert finding.fix is None


def test_a_step_has_no_when() -> None:
    text = '- step: a\n  when: "{{ args.x }}"\n  tool: {kind: noop}\n'
    (finding,) = lint(text, "P026")
    assert place(finding, text) == (2, 3)
    assert "admit: {rules: [{when: …, then: {allow: true}}" in finding.help
    assert "arcs" in finding.help
    assert [found.code for found in lint(text) if found.severity is Severity.ERROR] == ["P026"]


def test_when_in_an_admission_rule_or_on_an_arc_is_fine() -> None:
    text = "- step: a\n  tool: {kind: noop}\n  next: {arcs: [{step: a, when: \"{{ event.name == 'step.done' }}\"}]}\n"
    assert lint(text, "P026") == []


_ARC = "- step: a\n  tool: {{kind: noop}}\n  next: {{arcs: [{{step: a, {key}: {value}}}]}}\n"


@pytest.mark.parametrize("key", ["condition", "cond", "expression", "guard", "if", "only_if"])
@pytest.mark.parametrize("value", ["\"{{ event.name == 'step.done' }}\"", "true"])
def test_a_condition_by_another_name_becomes_when(key: str, value: str) -> None:
    text = _ARC.format(key=key, value=value)
    (finding,) = lint(text, "P027")
    assert place(finding, text) == (3, 27)
    assert f"`{key}`" in finding.message
    assert finding.fix is not None
    assert finding.fix.safe
    assert fixed(text, finding) == whole_playbook(_ARC.format(key="when", value=value))


def test_unless_is_the_opposite_and_so_not_renamed() -> None:
    (finding,) = lint(_ARC.format(key="unless", value='"{{ args.x }}"'), "P027")
    assert "not (" in finding.help
    assert finding.fix is None


@pytest.mark.parametrize("value", ["args.x == 1", "[a]", "{a: b}", "null"])
def test_what_when_would_not_take_is_not_renamed(value: str) -> None:
    (finding,) = lint(_ARC.format(key="if", value=value), "P027")
    assert finding.fix is None


def test_a_condition_on_a_step_is_reported_with_admission() -> None:
    (finding,) = lint('- step: a\n  if: "{{ args.x }}"\n  tool: {kind: noop}\n', "P027")
    assert "admit" in finding.help
    assert finding.fix is None


@pytest.mark.parametrize(
    "entry",
    [
        'kind: noop, spec: {policy: {rules: [{if: "{{ args.x }}", then: {do: fail}}, {else: {then: {do: continue}}}]}}',
        'choose: [{if: "{{ args.x }}", then: [{kind: noop}]}]',
        'until: {if: "{{ args.x }}", do: [{kind: noop}]}',
    ],
    ids=["rule", "branch", "until"],
)
def test_conditions_are_found_in_every_object_that_has_a_when(entry: str) -> None:
    text = f"- step: a\n  tool:\n    - {{{entry}}}\n"
    (finding,) = lint(text, "P027")
    assert place(finding, text) == (3, 8 + entry.index("if:"))
    assert fixed(text, finding) == whole_playbook(text).replace("if:", "when:")


def test_an_input_called_condition_is_the_tools_business() -> None:
    assert lint("- step: a\n  tool: {kind: nobody_knows_it, condition: x, if: y}\n", "P027") == []
