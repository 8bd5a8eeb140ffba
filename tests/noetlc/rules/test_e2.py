"""The rules of family E2, beyond their examples: exact places, words, silence where nothing is wrong, fixes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noetlc.finding import Severity
from noetlc.rules.catalogue import rules_by_code
from tests.noetlc.rules.lint_text import fixed, lint, place, steps

GUARD = """\
- step: start
  tool:
    - fetch:
        kind: http
        url: "https://example.com"
        spec:
          policy:
            rules:
              - when: {}
                then: {{ do: fail }}
              - else:
                  then: {{ do: continue }}
"""
INPUT = """\
- step: start
  tool:
    - fetch:
        kind: http
        url: "https://example.com"
        params:
          a: {}
"""
ARC = """\
- step: start
  next:
    arcs:
      - step: finish
        when: {}
      - step: other
- step: finish
  tool: {{ kind: noop }}
- step: other
  tool: {{ kind: noop }}
"""
LOOP_ARC = ARC.replace("  next:", "  loop: {{ in: [1, 2], iterator: item }}\n  next:", 1)
DATA = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {{ name: example, path: examples/example }}
workload: {{ api_url: "https://example.com", size: 3 }}
workflow:
  - step: start
    tool:
      - load:
          kind: http
          url: "https://example.com"
          spec:
            policy:
              rules:
                - else:
                    then: {{ do: continue, set_ctx: {{ total: 1, size: 4 }} }}
    next:
      arcs:
        - step: work
          args: {{ page: 1 }}
  - step: work
    loop: {{ in: [1, 2], iterator: item }}
    tool:
      - send: {{ kind: http, url: "https://example.com", params: {{ a: {} }} }}
"""


def told(frame: str, value: str, code: str) -> list[str]:
    """Return the texts that findings of a rule point at."""
    text = frame.format(value)
    return [steps(text)[finding.span.start : finding.span.end] for finding in lint(text, code)]


@pytest.mark.parametrize(
    ("frame", "value", "code", "at"),
    [
        (GUARD, '"{{ outcome.status == }}"', "E201", ["}}"]),
        (INPUT, '"{{ ctx.a && ctx.b }} {{ ctx.c || ctx.d }}"', "E201", ["&&", "||"]),
        (INPUT, '"{{ctx.x}"', "E201", ["}"]),
        (INPUT, '"{% if ctx.x %}yes"', "E201", ["{% if"]),
        (INPUT, '"{{ ctx.x | uper }}"', "E202", ["uper"]),
        (INPUT, "\"{{ ctx.x | map('uper') | list }}\"", "E202", ["uper"]),
        (INPUT, "\"{{ ctx.x | map(attribute='uper') | list }}\"", "E202", []),
        (INPUT, "\"{{ ctx.x | attr('y') }}\"", "E202", ["attr"]),
        (INPUT, '"{% set a | uper %}x{% endset %}{{ a }}"', "E202", ["uper"]),
        (INPUT, '"{% raw %}{{ ctx.x | uper }}{% endraw %}"', "E202", []),
        (INPUT, '"{{ ctx.x is evne }}"', "E203", ["evne"]),
        (INPUT, "\"{{ ctx.x | selectattr('a', 'evne') | reject('odd') | list }}\"", "E203", ["evne"]),
        (INPUT, '"{{ ctx.x is not none and ctx.y is divisibleby 3 and ctx.z is in [1] }}"', "E203", []),
        (INPUT, "\"{{ ctx.x | replace('a') }}\"", "E204", ["replace"]),
        (INPUT, "\"{{ ctx.x | map('replace', 'a') | list }}\"", "E204", ["replace"]),
        (INPUT, '"{{ ctx.x | round(precison=2) }}"', "E204", ["round"]),
        (INPUT, '"{{ ctx.x is divisibleby }}"', "E204", ["divisibleby"]),
        (INPUT, '"{{ range() }}"', "E204", ["range"]),
        (INPUT, "\"{{ ctx.x.split(',', 1, 2) }}\"", "E204", ["split"]),
        (INPUT, '"{{ ctx.x | replace(*ctx.pair) }}{{ range(*ctx.bounds) }}{{ dict(**ctx.a) }}"', "E204", []),
        (INPUT, '"{{ event.name }}"', "E205", ["event"]),
        (INPUT, '"{{ outcome.result }}"', "E205", ["outcome"]),
        (INPUT, '"{{ keychain.token.value }}{{ _prev }}{{ _attempt }}{{ execution_id }}"', "E205", []),
        (GUARD, "\"{{ outcome.status == 'ok' and _task == 'fetch' }}\"", "E205", []),
        (
            ARC,
            "\"{{ keychain.a == 'x' or iter.x or outcome.status or _prev }}\"",
            "E205",
            ["keychain", "iter", "outcome", "_prev"],
        ),
        (ARC, "\"{{ event.name == 'step.done' and ctx.x and args.y and workload.z and execution_id }}\"", "E205", []),
        (INPUT, '"{% for event in ctx.events %}{{ event.id }}{% endfor %}"', "E205", []),
        (INPUT, '"{{ iter.item }}"', "E206", ["iter"]),
        (DATA, '"{{ iter.item }}{{ iter.index }}"', "E206", []),
        (DATA, '"{{ iter.parent.item }}"', "E206", ["parent"]),
        (INPUT, '"{% macro a() %}x{% endmacro %}"', "E207", ["{% macro"]),
        (INPUT, '"{% if ctx.x %}a{% else %}b{% endif %}"', "E207", []),
        (GUARD, '"{% if ctx.x %}true{% endif %}"', "E207", ["{% if ctx.x %}"]),
        (INPUT, '"{{ ctx.x.append(1) }}"', "E208", ["append"]),
        (INPUT, '"{{ len(ctx.x) }}"', "E208", ["len"]),
        (INPUT, '"{{ ctx.__class__ }}"', "E208", ["__class__"]),
        (INPUT, "\"{{ (ctx.x | first)['__class__'] }}\"", "E208", ["'__class__'"]),
        (INPUT, '"{{ ctx.x[0](1) }}"', "E208", ["ctx.x[0]"]),
        (INPUT, '"{% for a in ctx.x recursive %}{{ loop(a.b) }}{% endfor %}"', "E208", []),
        (INPUT, '"{% for a in ctx.x %}{{ loop(a.b) }}{% endfor %}"', "E208", ["loop"]),
        (INPUT, "\"{{ ctx._id }}{{ ctx.__typename }}{{ range(3) | list }}{{ ctx.a.get('b', 1) }}\"", "E208", []),
        (INPUT, f'"{{{{ {"(" * 100}1{")" * 100} }}}}"', "E209", ["("]),
        (GUARD, '"{{ 1 == 1 }}"', "E210", ['"{{ 1 == 1 }}"']),
        (GUARD, "false", "E210", ["false"]),
        (GUARD, '"{{ range(3) | length }}"', "E210", ['"{{ range(3) | length }}"']),
        (GUARD, '"{{ ctx.x or true }}"', "E210", ['"{{ ctx.x or true }}"']),
        (GUARD, '"{{ ctx.x and true }}"', "E210", []),
        (GUARD, "\"{{ outcome.status == 'success' }}\"", "E211", ["'success'"]),
        (GUARD, "\"{{ 'success' == outcome.status }}\"", "E211", ["'success'"]),
        (GUARD, "\"{{ outcome['status'] in ['success', 'failed'] }}\"", "E211", ["'success', 'failed'"]),
        (GUARD, "\"{{ outcome.status in ['success', 'ok'] }}\"", "E211", []),
        (GUARD, "\"{{ outcome.status | upper == 'OK' }}\"", "E211", []),
        (GUARD, "\"{{ outcome.status == none or outcome.error.kind == 'timeout' }}\"", "E211", []),
        (GUARD, "\"{{ outcome.http.status == '200' }}\"", "E211", ["'200'"]),
        (GUARD, "\"{{ outcome.http.status >= '500' }}\"", "E211", ["'500'"]),
        (GUARD, "\"{{ outcome.http.status in [429, '500'] }}\"", "E211", []),
        (GUARD, "\"{{ outcome.error.retryable == 'true' }}\"", "E211", ["'true'"]),
        (GUARD, '"{{ outcome.error.kind == 404 }}"', "E211", ["404"]),
        (GUARD, '"{{ _attempt == 1.0 and outcome.meta.duration_ms > 10.5 }}"', "E211", []),
        (ARC, "\"{{ event.name == 'loop.done' }}\"", "E211", ["'loop.done'"]),
        (ARC, "\"{{ event.name in ['loop.done', 'step.done'] }}\"", "E211", []),
        (LOOP_ARC, "\"{{ event.name == 'step.done' }}\"", "E211", ["'step.done'"]),
        (LOOP_ARC, "\"{{ event.name == 'loop.done' or event.name == 'step.failed' }}\"", "E211", []),
        (ARC, "\"{{ event.status != 'ok' }}\"", "E211", ["'ok'"]),
        (INPUT, '"{ ctx.x }"', "E212", ["{ ctx.x }"]),
        (
            INPUT,
            '"{ctx.x}} and ${iter.y} and $args.z and %{workload.q}"',
            "E212",
            ["{ctx.x}}", "${iter.y}", "$args.z", "%{workload.q}"],
        ),
        (INPUT, '"${{ workload.x }}"', "E212", ["$"]),
        (INPUT, '"costs ${{ workload.x }} today"', "E212", []),
        (INPUT, '"{{ ctx.x }}{{ {1: ctx.y} }}"', "E212", []),
        (INPUT, '"{name} {0} $HOME ${HOME}"', "E212", []),
        (INPUT, "{ ctx.x }", "E212", ["ctx.x"]),
        (GUARD, "outcome.status", "E213", ["outcome.status"]),
        (GUARD, "yes", "E213", ["yes"]),
        (GUARD, "' {{ outcome.result }}'", "E213", ["' {{ outcome.result }}'"]),
        (GUARD, "\" {{ outcome.status == 'ok' }}\"", "E213", []),
        (GUARD, '"{{ ctx.a }} and {{ ctx.b }}"', "E213", ['"{{ ctx.a }} and {{ ctx.b }}"']),
        (GUARD, '"true"', "E213", []),
        (GUARD, "|\n                  {{ outcome.result }}", "E213", []),
        (
            DATA,
            '"{{ api_url }}{{ total }}{{ page }}{{ item }}{{ size }}"',
            "E214",
            ["api_url", "total", "page", "item", "size"],
        ),
        (DATA, '"{{ workload.api_url }}{{ start }}{{ unknown }}"', "E214", []),
        (DATA, '"{{ api_ulr }}"', "E215", ["api_ulr"]),
        (DATA, '"{{ start.rows }}{{ api_url }}{{ total }}{{ page }}{{ item }}"', "E215", []),
        (DATA, '"{{ x | default(1) }}{{ y is defined and y > 1 }}"', "E215", []),
        (
            DATA,
            '"{% set a = 1 %}{% for b, c in ctx.x %}{{ a ~ b ~ c ~ loop.index }}{% endfor %}{{ b }}"',
            "E215",
            ["b"],
        ),
        (GUARD, '"{{ outcome.stats }}"', "E216", ["stats"]),
        (GUARD, '"{{ outcome.http.state }}"', "E216", ["state"]),
        (GUARD, "\"{{ outcome['stats'] }}\"", "E216", ["'stats'"]),
        (GUARD, '"{{ outcome.pg.code }}"', "E216", ["pg"]),
        (GUARD, '"{{ outcome.pg.code is defined and outcome.pg.code }}"', "E216", []),
        (GUARD, '"{{ outcome.result.body }}"', "E216", ["body"]),
        (GUARD, '"{{ outcome.result.data.anything.at.all }}"', "E216", []),
        (GUARD, '"{{ outcome.status.code }}"', "E216", ["code"]),
        (GUARD, "\"{{ outcome.status.startswith('o') }}\"", "E216", []),
        (ARC, '"{{ event.nam }}"', "E216", ["nam"]),
        (ARC, '"{{ event.loop.failed }}"', "E216", ["loop"]),
        (LOOP_ARC, '"{{ event.loop.failed }}"', "E216", []),
        (INPUT, '"{% for a in ctx.x %}{{ loop.indx }}{{ loop.index }}{% endfor %}"', "E216", ["indx"]),
    ],
)
def test_what_findings_point_at(frame: str, value: str, code: str, at: list[str]) -> None:
    assert told(frame, value, code) == at


@pytest.mark.parametrize(
    ("frame", "value", "code", "where"),
    [
        (INPUT, '"{{ ctx.x | uper }}"', "E202", (7, 26)),
        (INPUT, '"\\t\\u00e9 {{ ctx.x | uper }}"', "E202", (7, 35)),
        (INPUT, "'it''s {{ ctx.x | uper }}'", "E202", (7, 32)),
        (INPUT, "日本 {{ ctx.x | uper }}", "E202", (7, 28)),
        (INPUT, "|\n            first\n              {{ ctx.x | uper }}\n", "E202", (9, 26)),
        (INPUT, ">-\n            one\n            two {{ ctx.x\n            | uper }}\n", "E202", (10, 15)),
        (GUARD, "outcome.status", "E213", (9, 23)),
        (GUARD, "\"{{ outcome.status == 'ok' or outcome.stats }}\"", "E216", (9, 61)),
        (DATA, '"{{ api_ulr }}"', "E215", (23, 74)),
    ],
)
def test_line_and_column(frame: str, value: str, code: str, where: tuple[int, int]) -> None:
    text = frame.format(value)
    (finding,) = lint(text, code)
    assert place(finding, text) == where


@pytest.mark.parametrize(
    ("frame", "value", "code", "message", "help"),
    [
        (INPUT, '"{{ ctx.x | attr(1) }}"', "E202", "no filter `attr`", "Python's attributes"),
        (INPUT, '"{{ ctx.x | startswith(1) }}"', "E202", "no filter `startswith`", "`x.startswith(…)`"),
        (INPUT, '"{{ ctx.x | defined }}"', "E202", "no filter `defined`", "`x is defined`"),
        (INPUT, '"{{ ctx.x | frobnicate }}"', "E202", "no filter `frobnicate`", "`python` task"),
        (INPUT, '"{{ ctx.x is empty }}"', "E203", "no test `empty`", "x | length == 0"),
        (INPUT, '"{{ ctx.x is startswith }}"', "E203", "no test `startswith`", "it is a method"),
        (INPUT, '"{{ ctx.x is length }}"', "E203", "no test `length`", "it is a filter"),
        (INPUT, "\"{{ ctx.x | replace('a') }}\"", "E204", "lacks `new`", "`x | replace(old, new, [count])`"),
        (INPUT, '"{{ ctx.x.keys(1) }}"', "E204", "takes no arguments", "`x.keys()`"),
        (INPUT, '"{{ ctx.x is divisibleby }}"', "E204", "lacks `num`", "`x is divisibleby(num)`"),
        (INPUT, '"{{ event.name }}"', "E205", "`event` does not exist in a task input", "the arc's `args`"),
        (ARC, '"{{ keychain.a }}"', "E205", "in an arc's `when`", "secrets stay inside tasks"),
        (INPUT, '"{{ iter.a }}"', "E206", "step `start` has none", "give the step a `loop`"),
        (DATA, '"{{ iter.parent.parent }}"', "E206", "there is 1 loop around this", "`iter` is the outermost"),
        (INPUT, "\"{% include 'a' %}\"", "E207", "`{% include %}` does not work", "`if`, `for` and `set`"),
        (INPUT, '"{{ ctx.a.foo() }}"', "E208", "`.foo()` cannot be called", "methods"),
        (INPUT, '"{{ ctx.a.tojson() }}"', "E208", "`.tojson()` cannot be called", "`x | tojson`"),
        (INPUT, '"{{ lower(ctx.a) }}"', "E208", "no function `lower`", "`x | lower`"),
        (INPUT, '"{{ startswith(ctx.a) }}"', "E208", "no function `startswith`", "it is a method"),
        (INPUT, '"{{ rnage(3) }}"', "E208", "no function `rnage`", "did you mean `range`?"),
        (INPUT, '"{{ foo(3) }}"', "E208", "no function `foo`", "`range` and `dict`"),
        (GUARD, "false", "E210", "never holds", "remove what it guards"),
        (GUARD, "\"{{ outcome.status != 'success' }}\"", "E211", "always holds", "did you mean `'ok'`?"),
        (GUARD, "\"{{ outcome.http.status > '500' }}\"", "E211", "comparison fails", "write `500`"),
        (GUARD, '"{{ outcome.status == true }}"', "E211", "is text and `true` is a boolean", "compare it with text"),
        (ARC, "\"{{ event.name == 'StepDone' }}\"", "E211", "never `'StepDone'`, so", "did you mean `'step.done'`?"),
        (ARC, "\"{{ event.name == 'loop.done' }}\"", "E211", "after step `start`, which has no loop", "`'step.done'`"),
        (LOOP_ARC, "\"{{ event.name == 'step.done' }}\"", "E211", "which has a loop", "did you mean `'loop.done'`?"),
        (ARC, "\"{{ event.entity == 'loop' }}\"", "E211", "which has no loop", "it is `'step'`"),
        (GUARD, "''", "E213", "empty text, so it never holds", "{{ … }}"),
        (GUARD, "when it is late", "E213", "always holds", "write a condition"),
        (GUARD, "always", "E213", "always holds", "write a condition"),
        (DATA, '"{{ size }}"', "E214", "reads `ctx.size`; `workload.size` is there as well", "write `ctx.size`"),
        (DATA, '"{{ api_ulr }}"', "E215", "nothing defines `api_ulr`", "did you mean `api_url`?"),
        (DATA, '"{{ null }}"', "E215", "nothing defines `null`", "write `none`"),
        (DATA, '"{{ range }}"', "E215", "nothing defines `range`", "it is a function"),
        (
            GUARD,
            '"{{ outcome.pg.code }}"',
            "E216",
            "only by `postgres` tasks, and this is an `http` task",
            "every kind",
        ),
        (GUARD, '"{{ outcome.status.x }}"', "E216", "is text and has no field `x`", "itself"),
    ],
)
def test_words(frame: str, value: str, code: str, message: str, help: str) -> None:
    (finding,) = lint(frame.format(value), code)
    assert message in finding.message
    assert help in finding.help


@pytest.mark.parametrize(
    ("frame", "value", "code", "mended"),
    [
        (INPUT, '"{{ ctx.x | uper }}"', "E202", '"{{ ctx.x | upper }}"'),
        (INPUT, "\"{{ ctx.x | map('uper') }}\"", "E202", "\"{{ ctx.x | map('upper') }}\""),
        (INPUT, '"{{ ctx.x is evne }}"', "E203", '"{{ ctx.x is even }}"'),
        (GUARD, "'{{ outcome.status == ''success'' }}'", "E211", "'{{ outcome.status == ''ok'' }}'"),
        (INPUT, '"a/{ctx.x}"', "E212", '"a/{{ ctx.x }}"'),
        (INPUT, '"${{ workload.x }}"', "E212", '"{{ workload.x }}"'),
        (GUARD, "ctx.a > 1  # why", "E213", '"{{ ctx.a > 1 }}"  # why'),
        (GUARD, "'ctx.a == \"it\"'", "E213", "'{{ ctx.a == \"it\" }}'"),
        (GUARD, "'{ ctx.a }'", "E213", '"{{ ctx.a }}"'),
        (GUARD, "'no'", "E213", "false"),
        (GUARD, "'{{ ctx.a }} and not {{ ctx.b or ctx.c }}'", "E213", '"{{ ctx.a and not (ctx.b or ctx.c) }}"'),
        (GUARD, "' {{ ctx.a }}'", "E213", '"{{ ctx.a }}"'),
        (DATA, '"{{ api_url }}"', "E214", '"{{ workload.api_url }}"'),
        (GUARD, '"{{ outcome.stats }}"', "E216", '"{{ outcome.status }}"'),
    ],
)
def test_fixes_mend_and_ask_first(frame: str, value: str, code: str, mended: str) -> None:
    text = frame.format(value)
    (finding,) = lint(text, code)
    assert fixed(text, finding) == steps(frame.format(mended))
    assert lint(fixed(text, finding), code) == []
    assert finding.fix is not None
    assert not finding.fix.safe


@pytest.mark.parametrize(
    ("frame", "value", "code"),
    [
        (GUARD, "|\n                  ctx.a > 1\n", "E213"),
        (GUARD, "'one\n                  > 1'", "E213"),
        (GUARD, "\"{{ outcome.status == 'succ\\\\x65ss' }}\"", "E211"),
        (GUARD, "\"{{ outcome['stats'] }}\"", "E216"),
    ],
)
def test_no_fix_where_the_edit_is_not_plain(frame: str, value: str, code: str) -> None:
    (finding,) = lint(frame.format(value), code)
    assert finding.fix is None


@pytest.mark.parametrize("value", ["true", '"true"', '"{{ true }}"', '"{{ True }}"'])
def test_plain_true_is_customary_as_the_last_alternative(value: str) -> None:
    text = f"""
    - step: start
      spec: {{ policy: {{ admit: {{ rules: [{{ when: {value}, then: {{ allow: true }} }}] }} }} }}
      tool:
        - choose: [{{ when: {value}, then: [{{ kind: noop }}] }}]
        - while: {{ when: {value}, do: [{{ kind: noop }}] }}
        - work: {{ kind: noop, spec: {{ policy: {{ rules: [{{ when: {value}, then: {{ do: break }} }}] }} }} }}
      next: {{ arcs: [{{ step: start, when: {value} }}] }}
    """
    assert lint(text, "E210") == []


def test_plain_true_before_others_is_told() -> None:
    text = ARC.format("true")
    assert len(lint(text, "E210")) == 1
    assert lint(text.replace("    arcs:", "    spec: { mode: inclusive }\n    arcs:"), "E210") == []


def test_iter_reaches_as_far_as_loops_nest() -> None:
    text = """
    - step: start
      loop:
        in: "{{ iter.a }}"
        iterator: city
        loop: { in: "{{ iter.city.hotels + iter.parent.b }}", iterator: hotel }
      tool:
        - choose:
            - when: "{{ iter.parent.city and iter.parent.parent.c }}"
              then: [{ kind: noop }]
        - get: { kind: http, url: "{{ iter.hotel }}{{ iter.parent.city }}{{ iter.parent.parent.d }}" }
    """
    found = lint(text, "E206")
    assert [place(finding, text)[0] for finding in found] == [3, 5, 8, 10]
    assert "outermost loop: no iteration has begun" in found[0].message


def test_workbook_tasks_see_the_loop_of_whoever_uses_them() -> None:
    text = """
    apiVersion: noetl.io/v2
    kind: Playbook
    metadata: { name: example, path: examples/example }
    workbook:
      tasks:
        save: { kind: http, url: "{{ iter.item.url }}/{{ item }}/{{ table }}/{{ nobody }}" }
    workflow:
      - step: start
        loop: { in: [1], iterator: item }
        tool: { kind: workbook, task: save, args: { table: items } }
    """
    assert lint(text, "E206") == []
    assert [finding.message for finding in lint(text, "E214")] == [
        "`item` here reads `iter.item`",
        "`table` here reads `args.table`",
    ]
    assert [finding.message for finding in lint(text, "E215")] == ["nothing defines `nobody`"]


TWO_STEPS = """
- step: first
  tool: {{ kind: http, url: "https://example.com/{}" }}
  next: {{ {} arcs: [{{ step: second, args: {{ n: "{}" }} }}] }}
- step: second
  tool: {{ kind: http, url: "https://example.com/{}" }}
  {}
"""
BACK = "next: { arcs: [{ step: first }] }"


@pytest.mark.parametrize(
    ("first", "spec", "args", "second", "back", "count"),
    [
        ("", "", "", "{{ first.rows }}", "", 0),
        ("{{ second.rows }}", "", "", "", "", 1),
        ("{{ second.rows }}", "", "", "", BACK, 0),
        ("{{ second.rows | default(0) }}", "", "", "", "", 0),
        ("{{ second.rows }}", "spec: { mode: inclusive },", "", "", "", 0),
        ("{{ first.rows }}", "", "", "", "", 1),
        ("{{ first.rows }}", "", "", "", BACK, 0),
        ("", "", "{{ first.rows }}", "", "", 0),
        ("", "", "{{ second.rows }}", "", "", 1),
    ],
)
def test_a_step_is_read_only_after_it_can_have_run(
    first: str, spec: str, args: str, second: str, back: str, count: int
) -> None:
    found = lint(TWO_STEPS.format(first, spec, args, second, back), "E215")
    assert len(found) == count
    assert all("cannot have run before" in finding.message for finding in found)


def test_the_final_step_reads_any_step() -> None:
    text = """
    apiVersion: noetl.io/v2
    kind: Playbook
    metadata: { name: example, path: examples/example }
    executor: { spec: { final_step: report } }
    workflow:
      - step: start
        tool: { kind: noop }
      - step: report
        tool: { kind: http, url: "https://example.com/{{ start.total }}" }
    """
    assert lint(text, "E215") == []


def test_a_key_named_as_a_namespace_is_a_bare_name_where_the_namespace_is_not() -> None:
    text = DATA.replace("size: 3", "event: {{ id: 1 }}").format('"{{ event.id }}"')
    assert lint(text, "E205") == []
    (note,) = lint(text, "E214")
    assert note.help == "write `workload.event`"


def test_a_shell_and_python_keep_their_own_signs() -> None:
    text = """
    - step: start
      tool:
        - one: { kind: shell, command: "echo $args.x ${ctx.y}" }
        - two: { kind: python, code: "result = f'{args.x}'", args: { args: 1 } }
    """
    assert lint(text, "E212") == []


def test_static_data_is_told_once_and_not_read() -> None:
    text = """
    apiVersion: noetl.io/v2
    kind: Playbook
    metadata: { name: example, path: examples/example }
    keychain:
      - { name: token, kind: env, variable: "{{ outcome.x | uper }}" }
    executor:
      spec: { region: "{{ workload.region" }
    workload:
      urls: ["https://{{ host && x }}", "{ ctx.x }", "{# a comment #}"]
    workflow:
      - step: start
        tool: { kind: noop }
    """
    found = [finding for finding in lint(text) if finding.code.startswith("E2")]
    assert [finding.code for finding in found] == ["E217"] * 3
    assert [place(finding, text)[0] for finding in found] == [5, 7, 9]
    assert "`keychain.token.variable`" in found[0].message
    assert "`executor.spec.region`" in found[1].message


def test_unknown_kinds_may_fill_anything() -> None:
    text = GUARD.replace("kind: http", "kind: quantum").format('"{{ outcome.qubits > 3 and outcome.result.body }}"')
    assert lint(text, "E216") == []


def test_one_template_tells_all_its_mistakes() -> None:
    value = '"{{ (ctx.a | uper) ~ foo() ~ (ctx.b is evne) ~ event.name ~ iter.x ~ ctx.c.append(1) ~ nobody }}"'
    found = lint(INPUT.format(value))
    assert {"E202", "E203", "E205", "E206", "E208", "E215"} <= {finding.code for finding in found}


@pytest.mark.parametrize(
    ("code", "severity"),
    [
        ("E210", "warning"),
        ("E212", "warning"),
        ("E214", "note"),
        ("E215", "warning"),
        ("E216", "warning"),
        ("E217", "warning"),
    ],
)
def test_what_may_be_meant_is_no_error(code: str, severity: str) -> None:
    assert rules_by_code()[code].severity == Severity(severity)


_PIECES = st.sampled_from(
    [
        *("{{", "}}", "{%", "%}", "if", "for", "in", "set", "endif", "not", "is", "a", ".", "ctx", "outcome", "event"),
        *("iter", "loop", "[", "]", "(", ")", "|", "default", "map", "get", "'x'", "==", "1", ",", "{", "}", "$", "*"),
    ]
)


@settings(max_examples=150, deadline=None)
@given(st.lists(_PIECES, max_size=14).map(" ".join), st.sampled_from([GUARD, INPUT, ARC, LOOP_ARC, DATA]))
def test_no_template_makes_a_rule_fail(text: str, frame: str) -> None:
    quoted = "'" + text.replace("'", "''") + "'"
    for finding in lint(frame.format(quoted)):
        assert finding.message
        assert 0 <= finding.span.start <= finding.span.end
