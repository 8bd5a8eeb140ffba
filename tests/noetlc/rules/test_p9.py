"""The older dialect: each of its words is named, with what became of it, and renamed where that is all it takes."""

from __future__ import annotations

from textwrap import dedent

import pytest

from noetlc.finding import Finding, Severity
from noetlc.lint.check import check_source
from noetlc.lint.fixing import fix_text
from noetlc.rules.catalogue import whole_playbook
from noetlc.settings import Settings
from noetlc.syntax.span import Source
from tests.noetlc.rules.lint_text import fixed, lint, place


def only(text: str, code: str) -> Finding:
    """The one finding of a code, which is an error."""
    (finding,) = lint(text, code)
    assert finding.severity is Severity.ERROR
    return finding


def position(text: str, part: str) -> tuple[int, int]:
    """The line and column at which the only occurrence of a part begins."""
    before, found, after = text.partition(part)
    assert found
    assert part not in after
    return before.count("\n") + 1, len(before) - before.rfind("\n")


def errors(text: str) -> list[str]:
    return [finding.code for finding in lint(text) if finding.severity is Severity.ERROR]


def rule(keys: str) -> str:
    return dedent(f"""\
        - step: start
          tool:
            - fetch:
                kind: http
                url: https://example.com
                spec:
                  policy:
                    rules:
                      - {keys}
                      - else: {{then: {{do: continue}}}}
        """)


_EVAL = """\
- step: start
  tool:
    - fetch:
        kind: {kind}
        url: https://example.com
        eval:
          - expr: "{{{{ outcome.status == 'error' }}}}"
            do: fail
          - else: {{do: continue}}
"""


def test_eval_is_found_with_the_conditions_inside() -> None:
    text = _EVAL.format(kind="http")
    assert place(only(text, "P901"), text) == (6, 9)
    assert "{when: …, then: {do: …}}" in only(text, "P901").help
    inside = only(text, "P902")
    assert place(inside, text) == (7, 13)
    assert inside.fix is None
    assert errors(text) == ["P901", "P902"]


def test_eval_is_found_whatever_the_tool() -> None:
    text = _EVAL.format(kind="redis_script")
    assert len(lint(text, "P901")) == 1
    assert len(lint("- step: a\n  tool: {kind: redis_script, eval: return 1}\n", "P901")) == 1


@pytest.mark.parametrize(
    "text",
    [
        rule("{expr: \"{{ outcome.status == 'error' }}\", then: {do: fail}}"),
        "- step: a\n  tool: {kind: http, url: 'https://example.org'}\n"
        "  next: {arcs: [{step: a, expr: \"{{ event.name == 'step.done' }}\"}]}\n",
        '- step: a\n  spec: {policy: {admit: {rules: [{expr: "{{ args.x }}", then: {allow: true}}, '
        "{else: {then: {allow: false}}}]}}}\n  tool: {kind: noop}\n",
        '- step: a\n  tool:\n    - choose:\n        - expr: "{{ args.x }}"\n          then: [{kind: noop}]\n',
        '- step: a\n  tool:\n    - while: {expr: "{{ args.x }}", do: [{kind: noop}]}\n',
    ],
    ids=["rule", "arc", "admission rule", "branch", "while"],
)
def test_expr_becomes_when(text: str) -> None:
    finding = only(text, "P902")
    assert place(finding, text) == position(text, "expr")
    assert finding.fix is not None
    assert finding.fix.safe
    corrected = fixed(text, finding)
    assert corrected == whole_playbook(text).replace("expr:", "when:")
    assert errors(corrected) == []


def test_expr_beside_when_is_not_renamed() -> None:
    finding = only(rule('{expr: "{{ args.x }}", when: "{{ args.y }}", then: {do: fail}}'), "P902")
    assert finding.fix is None


def test_expr_without_a_template_is_not_renamed() -> None:
    assert only(rule("{expr: args.x, then: {do: fail}}"), "P902").fix is None


def test_expr_on_a_step_is_reported_with_admission() -> None:
    finding = only('- step: a\n  expr: "{{ args.x }}"\n  tool: {kind: noop}\n', "P902")
    assert finding.fix is None
    assert "admit" in finding.help


def routed(next_: str) -> str:
    return f"- step: start\n  tool: {{kind: noop}}\n{next_}- step: finish\n  tool: {{kind: noop}}\n"


_GUARD = "when: \"{{ event.name == 'step.done' }}\""


@pytest.mark.parametrize(
    ("written", "corrected"),
    [
        (
            "  next:\n    - step: finish\n      args: {a: 1}\n",
            f"  next:\n    arcs:\n      - step: finish\n        {_GUARD}\n        args: {{a: 1}}\n",
        ),
        ("  next:\n  - step: finish\n", f"  next:\n    arcs:\n    - step: finish\n      {_GUARD}\n"),
        (
            "  next:  # where to\n    # the end\n    - step: finish  # last\n\n    - step: start\n  # after\n",
            f"  next:\n    arcs:  # where to\n      # the end\n      - step: finish  # last\n        {_GUARD}\n\n"
            f"      - step: start\n        {_GUARD}\n  # after\n",
        ),
        (
            "  next:\n    - step: finish\n      args:\n        text: |\n          one\n\n            two\n",
            f"  next:\n    arcs:\n      - step: finish\n        {_GUARD}\n        args:\n          text: |\n"
            "            one\n\n              two\n",
        ),
        ("  next: [{step: finish}]\n", f"  next: {{ arcs: [{{step: finish, {_GUARD}}}] }}\n"),
        ("  next:\n    - finish\n", f"  next:\n    arcs:\n      - {{ step: finish, {_GUARD} }}\n"),
        ("  next: [finish]\n", f"  next: {{ arcs: [{{ step: finish, {_GUARD} }}] }}\n"),
        ("  next: finish\n", f"  next:\n    arcs:\n      - {{ step: finish, {_GUARD} }}\n"),
        ('  next: "finish"\n', f'  next:\n    arcs:\n      - {{ step: "finish", {_GUARD} }}\n'),
        ("  next: &arcs [{step: finish}]\n", f"  next: {{ arcs: &arcs [{{step: finish, {_GUARD}}}] }}\n"),
        (
            "  next: [{when: true, then: {next: finish}}]\n",
            f"  next:\n    arcs:\n      - step: finish\n        {_GUARD}\n",
        ),
    ],
    ids=[
        "block list",
        "list at the key's column",
        "comments and blank lines",
        "block text",
        "flow list",
        "names in a block",
        "names in a flow",
        "one name",
        "one quoted name",
        "anchor",
        "when and then",
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_list_of_arcs_moves_into_a_router(written: str, corrected: str, newline: str) -> None:
    text = whole_playbook(routed(written)).replace("\n", newline)
    finding = only(text, "P903")
    assert finding.fix is not None
    assert not finding.fix.safe
    result = fix_text(text, lambda changed: lint(changed, "P903"), unsafe=True)
    assert result.text == whole_playbook(routed(corrected)).replace("\n", newline)
    assert errors(result.text) == []


def test_a_list_of_arcs_is_found_where_it_begins() -> None:
    text = routed("  next:\n    - step: finish\n")
    assert place(only(text, "P903"), text) == (4, 5)


def test_a_list_that_is_not_readable_gets_no_fix() -> None:
    assert only(routed("  next: finish}\n"), "P903").fix is None


@pytest.mark.parametrize(
    ("written", "word"),
    [("  next: 3\n", "number"), ('  next: "{{ ctx.x }}"\n', "template"), ("  next: true\n", "bool")],
)
def test_another_wrong_next_is_reported_in_general_words(written: str, word: str) -> None:
    finding = only(routed(written), "P903")
    assert word in finding.message
    assert "older" not in finding.message
    assert finding.fix is None


CANONICAL = "- step: last\n  next: {arcs: [{step: last, when: false}]}\n"
"""A step in v10's form: words of another dialect beside it are slips, each with its own finding."""


def test_next_through_an_alias_is_found_once_for_each_place() -> None:
    text = whole_playbook("- step: start\n  next: &arcs [{step: start}]\n- step: finish\n  next: *arcs\n" + CANONICAL)
    assert len(lint(text, "P903")) == 1


def test_next_mode_is_found_in_the_spec_of_a_step() -> None:
    text = "- step: start\n  spec: {next_mode: inclusive}\n  tool: {kind: noop}\n"
    finding = only(text, "P904")
    assert place(finding, text) == (2, 10)
    assert "mode: inclusive" in finding.help


def test_pipe_on_a_step_becomes_tool() -> None:
    text = "- step: start\n  pipe: [{kind: noop}]\n"
    finding = only(text, "P905")
    assert place(finding, text) == (2, 3)
    assert finding.fix is not None
    assert not finding.fix.safe
    assert errors(fixed(text, finding)) == []


def test_pipe_beside_tool_is_not_renamed() -> None:
    assert only("- step: start\n  pipe: [{kind: noop}]\n  tool: {kind: noop}\n", "P905").fix is None


def test_pipe_in_a_task_is_found_whatever_its_tool() -> None:
    text = "- step: start\n  tool:\n    - all: {kind: noop, pipe: 1}\n    - other: {kind: nobody_knows_it, pipe: 2}\n"
    places = [place(found, text) for found in lint(text, "P905")]
    assert places == [position(text, "pipe: 1"), position(text, "pipe: 2")]


def test_case_is_found_on_a_step() -> None:
    text = "- step: start\n  case: []\n  tool: {kind: noop}\n"
    finding = only(text, "P906")
    assert place(finding, text) == (2, 3)
    assert all(word in finding.help for word in ("arcs", "spec.policy.rules", "choose"))


_PATCH = """\
- step: start{loop}
  tool:
    - a: {{kind: noop, spec: {{policy: {{rules: [{{else: {{then: {{do: continue, {patch}: {{x: 1}}}}}}}}]}}}}}}
"""
_LOOP = "\n  loop: {in: [1], iterator: item}"


@pytest.mark.parametrize("loop", ["", _LOOP], ids=["alone", "in a loop"])
@pytest.mark.parametrize("patch", ["set_vars", "set_shared", "set_prev"])
def test_old_patches_are_found_and_migrated(patch: str, loop: str) -> None:
    text = _PATCH.format(patch=patch, loop=loop)
    finding = only(text, "P907")
    assert place(finding, text) == position(text, patch)
    assert finding.fix is not None
    assert not finding.fix.safe
    assert errors(fixed(text, finding)) == []


def test_an_old_patch_in_the_workbook_is_migrated() -> None:
    text = whole_playbook("- step: start\n  tool: {kind: workbook, task: a}\n") + (
        "workbook: {tasks: {a: {kind: noop, spec: {policy: {rules: [{else: {then: {do: continue, "
        "set_vars: {x: 1}}}}]}}}}}\n"
    )
    finding = only(text, "P907")
    assert fixed(text, finding) == text.replace("set_vars", "set_ctx")


@pytest.mark.parametrize("written", ["fixed", '"fixed"', "'fixed'"])
def test_backoff_fixed_becomes_none(written: str) -> None:
    text = rule(f'{{when: "{{{{ args.x }}}}", then: {{do: retry, attempts: 2, backoff: {written}}}}}')
    finding = only(text, "P908")
    assert place(finding, text) == position(text, written)
    assert finding.fix is not None
    assert finding.fix.safe
    assert "backoff: none}" in fixed(text, finding)
    assert errors(fixed(text, finding)) == []


def test_another_wrong_backoff_is_reported_in_general_words() -> None:
    finding = only(rule('{when: "{{ args.x }}", then: {do: retry, attempts: 2, backoff: linea}}'), "P908")
    assert "older" not in finding.message
    assert "`linear`" in finding.help


def test_a_sink_is_found_as_kind_as_input_and_as_block() -> None:
    text = (
        dedent("""\
        - step: start
          tool:
            - save: {kind: sink, table: t}
            - more: {kind: noop, sink: {kind: postgres}}
          sink: {kind: postgres}
        """)
        + CANONICAL
    )
    assert [place(finding, text) for finding in lint(text, "P909")] == [
        position(text, "sink, table"),
        position(text, "sink: {kind: postgres}}"),
        (5, 3),
    ]
    assert errors(text) == ["P909", "P909", "P909"]


@pytest.mark.parametrize("kinds", [Settings(tool_kinds=("sink",)), Settings(allow_unknown_kinds=True)])
def test_a_sink_that_the_configuration_allows_is_a_tool_like_any_other(kinds: Settings) -> None:
    source = Source("a.yaml", whole_playbook("- step: start\n  tool: {kind: sink}\n"))
    assert "P909" not in [finding.code for finding in check_source(source, settings=kinds).findings]


_EXECUTOR = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {{name: a, path: a/b}}
executor: {{{executor}}}
workflow: [{{step: start, tool: {{kind: noop}}}}]
"""


def test_executor_kind_becomes_profile() -> None:
    text = _EXECUTOR.format(executor="kind: local")
    finding = only(text, "P910")
    assert place(finding, text) == (4, 12)
    assert finding.fix is not None
    assert finding.fix.safe
    assert "executor: {profile: local}" in fixed(text, finding)


def test_executor_kind_beside_profile_is_not_renamed() -> None:
    assert only(_EXECUTOR.format(executor="kind: local, profile: local"), "P910").fix is None


@pytest.mark.parametrize(
    ("loop", "expression", "scope"),
    [("", "vars.page", "ctx"), (_LOOP, "vars['page']", "iter"), ("", "1 + vars.page | int", "ctx")],
)
def test_vars_in_a_template_is_found_at_the_name(loop: str, expression: str, scope: str) -> None:
    text = f'- step: start{loop}\n  tool: {{kind: http, url: "https://example.com/{{{{ {expression} }}}}"}}\n'
    finding = only(text, "P911")
    assert place(finding, text) == position(text, "vars")
    assert finding.fix is not None
    assert not finding.fix.safe
    assert expression.replace("vars", scope) in fixed(text, finding)


def test_vars_in_an_arc_becomes_ctx_even_after_a_loop() -> None:
    text = (
        f'- step: start{_LOOP}\n  tool: {{kind: noop}}\n  next: {{arcs: [{{step: start, when: "{{{{ vars.x }}}}"}}]}}\n'
    )
    assert "`ctx`" in only(text, "P911").help


def test_vars_as_the_playbooks_own_name_is_fine() -> None:
    text = whole_playbook('- step: a\n  tool: {kind: http, url: "https://example.com/{{ vars.page }}"}\n')
    assert lint(text.replace("workflow:", "workload: {vars: {page: 1}}\nworkflow:"), "P911") == []
    local = "- step: a\n  tool: {kind: http, url: \"{% set vars = {'x': 1} %}{{ vars.x }}{{ ctx.vars.x }}\"}\n"
    assert lint(local, "P911") == []


def test_vars_on_a_step_is_found() -> None:
    text = "- step: start\n  vars: {x: 1}\n  tool: {kind: noop}\n"
    assert place(only(text, "P911"), text) == (2, 3)


def test_one_run_of_safe_fixes_mends_what_is_only_a_matter_of_words() -> None:
    text = rule("{expr: \"{{ outcome.status == 'error' }}\", then: {do: retry, attempts: 2, backoff: fixed}}  # again")
    result = fix_text(whole_playbook(text), lint, unsafe=False)
    expected = whole_playbook(text).replace("expr:", "when:").replace("fixed", "none")
    assert result.text == expected
    assert fix_text(expected, lint, unsafe=False).text == expected
