"""The rules of family P2, beyond their examples: exact places, words, silence where nothing is wrong, fixes."""

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


def reported(frame: str, value: str, code: str) -> list[str]:
    """Return the texts that findings of a rule point at."""
    text = frame.format(value)
    return [steps(text)[finding.span.start : finding.span.end] for finding in lint(text, code)]


@pytest.mark.parametrize(
    ("frame", "value", "code", "at"),
    [
        (GUARD, '"{{ outcome.status == }}"', "P201", ["}}"]),
        (INPUT, '"{{ ctx.a && ctx.b }} {{ ctx.c || ctx.d }}"', "P201", ["&&", "||"]),
        (INPUT, '"{{ctx.x}"', "P201", ["}"]),
        (INPUT, '"{% if ctx.x %}yes"', "P201", ["{% if"]),
        (INPUT, '"{{ ctx.x | uper }}"', "P202", ["uper"]),
        (INPUT, "\"{{ ctx.x | map('uper') | list }}\"", "P202", ["uper"]),
        (INPUT, "\"{{ ctx.x | map(attribute='uper') | list }}\"", "P202", []),
        (INPUT, "\"{{ ctx.x | attr('y') }}\"", "P202", ["attr"]),
        (INPUT, '"{% set a | uper %}x{% endset %}{{ a }}"', "P202", ["uper"]),
        (INPUT, '"{% raw %}{{ ctx.x | uper }}{% endraw %}"', "P202", []),
        (INPUT, '"{{ ctx.x is evne }}"', "P203", ["evne"]),
        (INPUT, "\"{{ ctx.x | selectattr('a', 'evne') | reject('odd') | list }}\"", "P203", ["evne"]),
        (INPUT, '"{{ ctx.x is not none and ctx.y is divisibleby 3 and ctx.z is in [1] }}"', "P203", []),
        (INPUT, "\"{{ ctx.x | replace('a') }}\"", "P204", ["replace"]),
        (INPUT, "\"{{ ctx.x | map('replace', 'a') | list }}\"", "P204", ["replace"]),
        (INPUT, '"{{ ctx.x | round(precison=2) }}"', "P204", ["round"]),
        (INPUT, '"{{ ctx.x is divisibleby }}"', "P204", ["divisibleby"]),
        (INPUT, '"{{ range() }}"', "P204", ["range"]),
        (INPUT, '"{{ dict(a=1, a=2) }}"', "P204", ["dict"]),
        (INPUT, '"{{ dict(a=1, a=2, **ctx.x) }}"', "P204", ["dict"]),
        (INPUT, "\"{{ ctx.x | replace(odl='a', **ctx.x) }}\"", "P204", ["replace"]),
        (INPUT, '"{{ dict({}, mapping=1) }}"', "P204", []),
        (INPUT, "\"{{ ctx.x.split(',', 1, 2) }}\"", "P204", ["split"]),
        (INPUT, '"{{ ctx.x | replace(*ctx.pair) }}{{ range(*ctx.bounds) }}{{ dict(**ctx.a) }}"', "P204", []),
        (INPUT, '"{{ event.name }}"', "P205", ["event"]),
        (INPUT, '"{{ outcome.result }}"', "P205", ["outcome"]),
        (INPUT, '"{{ keychain.token.value }}{{ _prev }}{{ _attempt }}{{ execution_id }}"', "P205", []),
        (GUARD, "\"{{ outcome.status == 'ok' and _task == 'fetch' }}\"", "P205", []),
        (
            ARC,
            "\"{{ keychain.a == 'x' or iter.x or outcome.status or _prev }}\"",
            "P205",
            ["keychain", "iter", "outcome", "_prev"],
        ),
        (ARC, "\"{{ event.name == 'step.done' and ctx.x and args.y and workload.z and execution_id }}\"", "P205", []),
        (INPUT, '"{% for event in ctx.events %}{{ event.id }}{% endfor %}"', "P205", []),
        (INPUT, '"{{ iter.item }}"', "P206", ["iter"]),
        (DATA, '"{{ iter.item }}{{ iter.index }}"', "P206", []),
        (DATA, '"{{ iter.parent.item }}"', "P206", ["parent"]),
        (INPUT, '"{% macro a() %}x{% endmacro %}"', "P207", ["{% macro"]),
        (INPUT, '"{% if ctx.x %}a{% else %}b{% endif %}"', "P207", []),
        (GUARD, '"{% if ctx.x %}true{% endif %}"', "P207", ["{% if ctx.x %}"]),
        (INPUT, '"{{ ctx.x.append(1) }}"', "P208", ["append"]),
        (INPUT, '"{{ len(ctx.x) }}"', "P208", ["len"]),
        (INPUT, '"{{ ctx.__class__ }}"', "P208", ["__class__"]),
        (INPUT, "\"{{ (ctx.x | first)['__class__'] }}\"", "P208", ["'__class__'"]),
        (INPUT, '"{{ ctx.x[0](1) }}"', "P208", ["ctx.x[0]"]),
        (INPUT, '"{% for a in ctx.x recursive %}{{ loop(a.b) }}{% endfor %}"', "P208", []),
        (INPUT, '"{% for a in ctx.x %}{{ loop(a.b) }}{% endfor %}"', "P208", ["loop"]),
        (INPUT, "\"{{ ctx._id }}{{ ctx.__typename }}{{ range(3) | list }}{{ ctx.a.get('b', 1) }}\"", "P208", []),
        (INPUT, f'"{{{{ {"(" * 100}1{")" * 100} }}}}"', "P209", ["("]),
        (GUARD, '"{{ 1 == 1 }}"', "P210", ['"{{ 1 == 1 }}"']),
        (GUARD, "false", "P210", ["false"]),
        (GUARD, '"{{ range(3) | length }}"', "P210", ['"{{ range(3) | length }}"']),
        (GUARD, '"{{ not ctx.x or true }}"', "P210", ['"{{ not ctx.x or true }}"']),
        (GUARD, '"{{ ctx.x and true }}"', "P210", []),
        (GUARD, "\"{{ outcome.status == 'success' }}\"", "P211", ["'success'"]),
        (GUARD, "\"{{ 'success' == outcome.status }}\"", "P211", ["'success'"]),
        (GUARD, "\"{{ outcome['status'] in ['success', 'failed'] }}\"", "P211", ["'success', 'failed'"]),
        (GUARD, "\"{{ outcome.status in ['success', 'ok'] }}\"", "P211", []),
        (GUARD, "\"{{ outcome.status | upper == 'OK' }}\"", "P211", []),
        (GUARD, "\"{{ outcome.status == none or outcome.error.kind == 'timeout' }}\"", "P211", []),
        (GUARD, "\"{{ outcome.http.status == '200' }}\"", "P211", ["'200'"]),
        (GUARD, "\"{{ outcome.http.status >= '500' }}\"", "P211", ["'500'"]),
        (GUARD, "\"{{ outcome.http.status in [429, '500'] }}\"", "P211", []),
        (GUARD, "\"{{ outcome.error.retryable == 'true' }}\"", "P211", ["'true'"]),
        (GUARD, '"{{ outcome.error.kind == 404 }}"', "P211", ["404"]),
        (GUARD, '"{{ _attempt == 1.0 and outcome.meta.duration_ms > 10.5 }}"', "P211", []),
        (ARC, "\"{{ event.name == 'loop.done' }}\"", "P211", ["'loop.done'"]),
        (ARC, "\"{{ event.name in ['loop.done', 'step.done'] }}\"", "P211", []),
        (LOOP_ARC, "\"{{ event.name == 'step.done' }}\"", "P211", ["'step.done'"]),
        (LOOP_ARC, "\"{{ event.name == 'loop.done' or event.name == 'step.failed' }}\"", "P211", []),
        (ARC, "\"{{ event.status != 'ok' }}\"", "P211", ["'ok'"]),
        (INPUT, '"{ ctx.x }"', "P212", ["{ ctx.x }"]),
        (
            INPUT,
            '"{ctx.x}} and ${iter.y} and $args.z and %{workload.q}"',
            "P212",
            ["{ctx.x}}", "${iter.y}", "$args.z", "%{workload.q}"],
        ),
        (INPUT, '"${{ workload.x }}"', "P212", ["$"]),
        (INPUT, '"costs ${{ workload.x }} today"', "P212", []),
        (INPUT, '"{{ ctx.x }}{{ {1: ctx.y} }}"', "P212", []),
        (INPUT, '"{name} {0} $HOME ${HOME}"', "P212", []),
        (INPUT, "{ ctx.x }", "P212", ["ctx.x"]),
        (GUARD, "outcome.status", "P213", ["outcome.status"]),
        (GUARD, "yes", "P213", ["yes"]),
        (GUARD, "' {{ outcome.result }}'", "P213", ["' {{ outcome.result }}'"]),
        (GUARD, "\" {{ outcome.status == 'ok' }}\"", "P213", []),
        (GUARD, '"{{ ctx.a }} and {{ ctx.b }}"', "P213", ['"{{ ctx.a }} and {{ ctx.b }}"']),
        (GUARD, '"true"', "P213", []),
        (GUARD, "|\n                  {{ outcome.result }}", "P213", []),
        (
            DATA,
            '"{{ api_url }}{{ total }}{{ page }}{{ item }}{{ size }}"',
            "P214",
            ["api_url", "total", "page", "item", "size"],
        ),
        (DATA, '"{{ workload.api_url }}{{ start }}{{ unknown }}"', "P214", []),
        (DATA, '"{{ api_ulr }}"', "P215", ["api_ulr"]),
        (DATA, '"{{ start.rows }}{{ api_url }}{{ total }}{{ page }}{{ item }}"', "P215", []),
        (DATA, '"{{ x | default(1) }}{{ y is defined and y > 1 }}"', "P215", []),
        (
            DATA,
            '"{% set a = 1 %}{% for b, c in ctx.x %}{{ a ~ b ~ c ~ loop.index }}{% endfor %}{{ b }}"',
            "P215",
            ["b"],
        ),
        (GUARD, '"{{ outcome.stats }}"', "P216", ["stats"]),
        (GUARD, '"{{ outcome.http.state }}"', "P216", ["state"]),
        (GUARD, "\"{{ outcome['stats'] }}\"", "P216", ["'stats'"]),
        (GUARD, '"{{ outcome.pg.code }}"', "P216", ["pg"]),
        (GUARD, '"{{ outcome.pg.code is defined and outcome.pg.code }}"', "P216", []),
        (GUARD, '"{{ outcome.result.body }}"', "P216", ["body"]),
        (GUARD, '"{{ outcome.result.data.anything.at.all }}"', "P216", []),
        (GUARD, '"{{ outcome.status.code }}"', "P216", ["code"]),
        (GUARD, "\"{{ outcome.status.startswith('o') }}\"", "P216", []),
        (ARC, '"{{ event.nam }}"', "P216", ["nam"]),
        (ARC, '"{{ event.loop.failed }}"', "P216", ["loop"]),
        (LOOP_ARC, '"{{ event.loop.failed }}"', "P216", []),
        (INPUT, '"{% for a in ctx.x %}{{ loop.indx }}{{ loop.index }}{% endfor %}"', "P216", ["indx"]),
    ],
)
def test_what_findings_point_at(frame: str, value: str, code: str, at: list[str]) -> None:
    assert reported(frame, value, code) == at


@pytest.mark.parametrize(
    ("frame", "value", "code", "where"),
    [
        (INPUT, '"{{ ctx.x | uper }}"', "P202", (7, 26)),
        (INPUT, '"\\t\\u00e9 {{ ctx.x | uper }}"', "P202", (7, 35)),
        (INPUT, "'it''s {{ ctx.x | uper }}'", "P202", (7, 32)),
        (INPUT, "日本 {{ ctx.x | uper }}", "P202", (7, 28)),
        (INPUT, "|\n            first\n              {{ ctx.x | uper }}\n", "P202", (9, 26)),
        (INPUT, ">-\n            one\n            two {{ ctx.x\n            | uper }}\n", "P202", (10, 15)),
        (GUARD, "outcome.status", "P213", (9, 23)),
        (GUARD, "\"{{ outcome.status == 'ok' or outcome.stats }}\"", "P216", (9, 61)),
        (DATA, '"{{ api_ulr }}"', "P215", (23, 74)),
    ],
)
def test_line_and_column(frame: str, value: str, code: str, where: tuple[int, int]) -> None:
    text = frame.format(value)
    (finding,) = lint(text, code)
    assert place(finding, text) == where


@pytest.mark.parametrize(
    ("frame", "value", "code", "message", "help"),
    [
        (INPUT, '"{{ ctx.x | attr(1) }}"', "P202", "no filter `attr`", "Python's attributes"),
        (INPUT, '"{{ ctx.x | startswith(1) }}"', "P202", "no filter `startswith`", "`x.startswith(…)`"),
        (INPUT, '"{{ ctx.x | defined }}"', "P202", "no filter `defined`", "`x is defined`"),
        (INPUT, '"{{ ctx.x | frobnicate }}"', "P202", "no filter `frobnicate`", "`python` task"),
        (INPUT, '"{{ ctx.x is empty }}"', "P203", "no test `empty`", "x | length == 0"),
        (INPUT, '"{{ ctx.x is startswith }}"', "P203", "no test `startswith`", "it is a method"),
        (INPUT, '"{{ ctx.x is length }}"', "P203", "no test `length`", "it is a filter"),
        (INPUT, "\"{{ ctx.x | replace('a') }}\"", "P204", "lacks `new`", "`x | replace(old, new, [count])`"),
        (INPUT, '"{{ ctx.x.keys(1) }}"', "P204", "takes no arguments", "`x.keys()`"),
        (INPUT, '"{{ ctx.x is divisibleby }}"', "P204", "lacks `num`", "`x is divisibleby(num)`"),
        (INPUT, '"{{ event.name }}"', "P205", "`event` does not exist in a task input", "the arc's `args`"),
        (ARC, '"{{ keychain.a }}"', "P205", "in an arc's `when`", "secrets stay inside tasks"),
        (INPUT, '"{{ iter.a }}"', "P206", "step `start` has none", "give the step a `loop`"),
        (DATA, '"{{ iter.parent.parent }}"', "P206", "there is 1 loop around this", "`iter` is the outermost"),
        (INPUT, "\"{% include 'a' %}\"", "P207", "`{% include %}` does not work", "`if`, `for` and `set`"),
        (INPUT, '"{{ ctx.a.foo() }}"', "P208", "`.foo()` cannot be called", "methods"),
        (INPUT, '"{{ ctx.a.tojson() }}"', "P208", "`.tojson()` cannot be called", "`x | tojson`"),
        (INPUT, '"{{ lower(ctx.a) }}"', "P208", "no function `lower`", "`x | lower`"),
        (INPUT, '"{{ startswith(ctx.a) }}"', "P208", "no function `startswith`", "it is a method"),
        (INPUT, '"{{ rnage(3) }}"', "P208", "no function `rnage`", "did you mean `range`?"),
        (INPUT, '"{{ foo(3) }}"', "P208", "no function `foo`", "`range` and `dict`"),
        (GUARD, "false", "P210", "never holds", "remove the guarded rule"),
        (GUARD, "\"{{ outcome.status != 'success' }}\"", "P211", "always holds", "did you mean `'ok'`?"),
        (GUARD, "\"{{ outcome.http.status > '500' }}\"", "P211", "comparison fails", "write `500`"),
        (GUARD, '"{{ outcome.status == true }}"', "P211", "is text and `true` is a boolean", "compare it with text"),
        (ARC, "\"{{ event.name == 'StepDone' }}\"", "P211", "never `'StepDone'`, so", "did you mean `'step.done'`?"),
        (ARC, "\"{{ event.name == 'loop.done' }}\"", "P211", "after step `start`, which has no loop", "`'step.done'`"),
        (LOOP_ARC, "\"{{ event.name == 'step.done' }}\"", "P211", "which has a loop", "did you mean `'loop.done'`?"),
        (ARC, "\"{{ event.entity == 'loop' }}\"", "P211", "which has no loop", "it is `'step'`"),
        (GUARD, "''", "P213", "empty text, so it never holds", "{{ … }}"),
        (GUARD, "when it is late", "P213", "always holds", "write a condition"),
        (GUARD, "always", "P213", "always holds", "write a condition"),
        (DATA, '"{{ size }}"', "P214", "reads `ctx.size`; `workload.size` is there as well", "write `ctx.size`"),
        (DATA, '"{{ api_ulr }}"', "P215", "nothing defines `api_ulr`", "did you mean `api_url`?"),
        (DATA, '"{{ null }}"', "P215", "nothing defines `null`", "write `none`"),
        (DATA, '"{{ range }}"', "P215", "nothing defines `range`", "it is a function"),
        (
            GUARD,
            '"{{ outcome.pg.code }}"',
            "P216",
            "only by `postgres` tasks, and this is an `http` task",
            "every kind",
        ),
        (GUARD, '"{{ outcome.status.x }}"', "P216", "is text and has no field `x`", "itself"),
    ],
)
def test_words(frame: str, value: str, code: str, message: str, help: str) -> None:
    (finding,) = lint(frame.format(value), code)
    assert message in finding.message
    assert help in finding.help


@pytest.mark.parametrize(
    ("frame", "value", "code", "corrected"),
    [
        (INPUT, '"{{ ctx.x | uper }}"', "P202", '"{{ ctx.x | upper }}"'),
        (INPUT, "\"{{ ctx.x | map('uper') }}\"", "P202", "\"{{ ctx.x | map('upper') }}\""),
        (INPUT, '"{{ ctx.x is evne }}"', "P203", '"{{ ctx.x is even }}"'),
        (GUARD, "'{{ outcome.status == ''success'' }}'", "P211", "'{{ outcome.status == ''ok'' }}'"),
        (INPUT, '"a/{ctx.x}"', "P212", '"a/{{ ctx.x }}"'),
        (INPUT, '"${{ workload.x }}"', "P212", '"{{ workload.x }}"'),
        (GUARD, "ctx.a > 1  # why", "P213", '"{{ ctx.a > 1 }}"  # why'),
        (GUARD, "'ctx.a == \"it\"'", "P213", "'{{ ctx.a == \"it\" }}'"),
        (GUARD, "'{ ctx.a }'", "P213", '"{{ ctx.a }}"'),
        (GUARD, "'no'", "P213", "false"),
        (GUARD, "'{{ ctx.a }} and not {{ ctx.b or ctx.c }}'", "P213", '"{{ ctx.a and not (ctx.b or ctx.c) }}"'),
        (GUARD, "' {{ ctx.a }}'", "P213", '"{{ ctx.a }}"'),
        (DATA, '"{{ api_url }}"', "P214", '"{{ workload.api_url }}"'),
        (GUARD, '"{{ outcome.stats }}"', "P216", '"{{ outcome.status }}"'),
    ],
)
def test_fixes_correct_the_text_and_are_unsafe(frame: str, value: str, code: str, corrected: str) -> None:
    text = frame.format(value)
    (finding,) = lint(text, code)
    assert fixed(text, finding) == steps(frame.format(corrected))
    assert lint(fixed(text, finding), code) == []
    assert finding.fix is not None
    assert not finding.fix.safe


@pytest.mark.parametrize(
    ("frame", "value", "code"),
    [
        (GUARD, "|\n                  ctx.a > 1\n", "P213"),
        (GUARD, "'one\n                  > 1'", "P213"),
        (GUARD, "\"{{ outcome.status == 'succ\\\\x65ss' }}\"", "P211"),
        (GUARD, "\"{{ outcome['stats'] }}\"", "P216"),
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
    assert lint(text, "P210") == []


def test_plain_true_before_others_is_reported() -> None:
    text = ARC.format("true")
    assert len(lint(text, "P210")) == 1
    assert lint(text.replace("    arcs:", "    spec: { mode: inclusive }\n    arcs:"), "P210") == []


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
    found = lint(text, "P206")
    assert [place(finding, text)[0] for finding in found] == [3, 5, 8, 10]
    assert "outermost loop: no iteration has begun" in found[0].message


def test_workbook_tasks_see_the_loop_of_the_step_that_uses_them() -> None:
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
    assert lint(text, "P206") == []
    assert [finding.message for finding in lint(text, "P214")] == [
        "`item` here reads `iter.item`",
        "`table` here reads `args.table`",
    ]
    assert [finding.message for finding in lint(text, "P215")] == ["nothing defines `nobody`"]


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
    found = lint(TWO_STEPS.format(first, spec, args, second, back), "P215")
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
    assert lint(text, "P215") == []


def test_a_key_named_as_a_namespace_is_a_bare_name_where_the_namespace_is_not() -> None:
    text = DATA.replace("size: 3", "event: {{ id: 1 }}").format('"{{ event.id }}"')
    assert lint(text, "P205") == []
    (note,) = lint(text, "P214")
    assert note.help == "write `workload.event`"


def test_a_shell_and_python_keep_their_own_signs() -> None:
    text = """
    - step: start
      tool:
        - one: { kind: shell, command: "echo $args.x ${ctx.y}" }
        - two: { kind: python, code: "result = f'{args.x}'", args: { args: 1 } }
    """
    assert lint(text, "P212") == []


def test_static_data_is_reported_once_and_not_read() -> None:
    text = """
    apiVersion: noetl.io/v2
    kind: Playbook
    metadata: { name: example, path: examples/example }
    keychain:
      - { name: token, kind: environment, variable: "{{ outcome.x | uper }}" }
    executor:
      spec: { region: "{{ workload.region" }
    workload:
      urls: ["https://{{ host && x }}", "{ ctx.x }", "{# a comment #}"]
    workflow:
      - step: start
        tool: { kind: noop }
    """
    found = [finding for finding in lint(text) if finding.code.startswith("P2")]
    assert [finding.code for finding in found] == ["P217"] * 3
    assert [place(finding, text)[0] for finding in found] == [5, 7, 9]
    assert "`keychain.token.variable`" in found[0].message
    assert "`executor.spec.region`" in found[1].message


def test_unknown_kinds_may_fill_anything() -> None:
    text = GUARD.replace("kind: http", "kind: quantum").format('"{{ outcome.qubits > 3 and outcome.result.body }}"')
    assert lint(text, "P216") == []


def test_one_template_reports_all_its_mistakes() -> None:
    value = '"{{ (ctx.a | uper) ~ foo() ~ (ctx.b is evne) ~ event.name ~ iter.x ~ ctx.c.append(1) ~ nobody }}"'
    found = lint(INPUT.format(value))
    assert {"P202", "P203", "P205", "P206", "P208", "P215"} <= {finding.code for finding in found}


@pytest.mark.parametrize(
    ("code", "severity"),
    [
        ("P210", "warning"),
        ("P212", "warning"),
        ("P214", "note"),
        ("P215", "warning"),
        ("P216", "warning"),
        ("P217", "warning"),
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
