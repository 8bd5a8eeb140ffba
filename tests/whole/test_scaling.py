"""The work for a playbook grows with its size and no faster. Work is the number of calls: it depends on no clock."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType, SimpleNamespace
from typing import Any

import pytest

from noetlc.analysis.formulas import HOLDS, OperandTest
from noetlc.analysis.routers import covering
from noetlc.compile import compile_playbooks
from noetlc.lint.check import check_bytes
from noetlc.net.concurrency import OTHERS_MAX, _ordered_by_gates
from noetlc.report.report import OutputFormat, Report, render
from noetlc.rules.catalogue import whole_playbook
from noetlc.syntax.document_cache import ENTRIES_MAX, begin_document
from noetlc.syntax.template_parser import parse_template
from noetlvm.nearest import WORD_CHARS_MAX, nearest
from tests.noetlc.rules.lint_text import lint

NOOP = "{kind: noop}"
HEAD = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: n, path: n}\n"


def lines(line: Callable[[int], str], count: int) -> str:
    return "".join(f"{line(number)}\n" for number in range(count))


def rule(then: str, condition: str = "") -> str:
    return f"{{when: '{{{{ {condition} }}}}', then: {{{then}}}}}" if condition else f"{{else: {{then: {{{then}}}}}}}"


def task(then: str) -> str:
    return f"{{kind: noop, spec: {{policy: {{rules: [{rule(then)}]}}}}}}"


def guard_of_many_paths(count: int) -> str:
    condition = " and ".join(f"(ctx.a{number} or ctx.b{number})" for number in range(count // 10))
    return (
        f"- step: start\n  next: {{arcs: [{{step: s, when: '{{{{ {condition} }}}}'}}]}}\n- {{step: s, tool: {NOOP}}}\n"
    )


def shadowed_arcs(count: int) -> str:
    arcs = lines(lambda _: "      - {step: s, when: '{{ ctx.a }}'}", 4 * count)
    return f"- step: start\n  next:\n    arcs:\n{arcs}- {{step: s, tool: {NOOP}}}\n"


def steps_that_set_iter(count: int) -> str:
    reads = "value: '{{ iter.n }}'"
    return lines(
        lambda number: (
            f"- {{step: s{number}, tool: [{{t: {task('do: continue, set_iter: {n: 1}')[:-1]}, {reads}}}}}], "
            f"next: {{arcs: [{{step: s{(number + 1) % count}}}]}}}}"
        ),
        2 * count,
    )


def admission_rules(count: int) -> str:
    rules = lines(lambda number: f"          - {rule('allow: false', f'ctx.a{number} > 1')}", count)
    return f"- step: start\n  spec:\n    policy:\n      admit:\n        rules:\n{rules}  tool: {NOOP}\n"


def writers_at_once(count: int) -> str:
    arcs = lines(lambda number: f"      - {{step: s{number}}}", count)
    steps = lines(
        lambda number: f"- {{step: s{number}, tool: [{{t: {task('do: continue, set_ctx: {k: 1}')}}}]}}", count
    )
    return f"- step: start\n  next:\n    spec: {{mode: inclusive}}\n    arcs:\n{arcs}{steps}"


def results_by_label(count: int) -> str:
    reads = lines(lambda number: f"    - t{number}: {{kind: noop, value: '{{{{ t{max(number - 1, 0)} }}}}'}}", count)
    return f"- step: start\n  tool:\n{reads}"


def long_ways(count: int) -> str:
    """Return steps that each read what a branch beside their way writes."""
    steps = lines(
        lambda number: (
            f"- {{step: s{number}, tool: {{kind: noop, value: '{{{{ ctx.total }}}}'}}, "
            f"next: {{arcs: [{{step: s{number + 1}}}]}}}}"
        ),
        count,
    )
    return (
        "- {step: start, next: {arcs: [{step: side, when: '{{ workload.a }}'}, {step: s0}]}}\n"
        f"- {{step: side, tool: [{{t: {task('do: continue, set_ctx: {total: 1}')}}}]}}\n"
        f"{steps}- {{step: s{count}, tool: {NOOP}}}\n"
    )


def calls_of_a_large_workbook(count: int) -> str:
    steps = lines(lambda number: f"  - {{step: s{number}, tool: [{{a: {{kind: workbook, task: w0}}}}]}}", count)
    doubled = lines(
        lambda number: (
            f"    w{number}: [{{kind: workbook, task: w{number + 1}}}, {{kind: workbook, task: w{number + 1}}}]"
        ),
        8,
    )
    return f"{HEAD}workflow:\n{steps}workbook:\n  tasks:\n{doubled}    w8: {NOOP}\n"


def cycles_of_the_workbook(count: int) -> str:
    tasks = lines(
        lambda number: (
            f"    w{number}: [{{kind: workbook, task: w{number + 1}}}, {{kind: workbook, task: w{number // 2}}}]"
        ),
        count,
    )
    start = "workflow:\n  - {step: s, tool: [{a: {kind: workbook, task: w0}}]}\n"
    return f"{HEAD}{start}workbook:\n  tasks:\n{tasks}    w{count}: {NOOP}\n"


GROWING = [
    guard_of_many_paths,
    shadowed_arcs,
    steps_that_set_iter,
    admission_rules,
    writers_at_once,
    results_by_label,
]


def work(action: Callable[[], object]) -> int:
    """Return the number of calls, of Python's own functions too, that an action makes."""
    count = 0

    def counted(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(counted)
    try:
        action()
    finally:
        sys.setprofile(before)
    return count


def check(text: str) -> None:
    data = whole_playbook(text).encode()
    checked = check_bytes("playbook.yaml", data)
    render(OutputFormat.TEXT, Report(checked.rows(), ("playbook.yaml",), "1"))
    compile_playbooks([("playbook.yaml", data)])


@pytest.mark.parametrize("text_of", GROWING)
def test_four_times_as_much_takes_about_four_times_the_work(text_of: Callable[[int], str]) -> None:
    check(text_of(20))  # imports, and caches of what does not grow
    few, many = 60, 240
    assert work(lambda: check(text_of(many))) < 4.6 * work(lambda: check(text_of(few)))


class Keys(frozenset[str]):
    """A set whose look-ups count as work."""

    def __contains__(self, key: object) -> bool:
        return super().__contains__(key)


def test_the_writer_that_a_gate_waits_for_is_not_searched_for_among_all_steps() -> None:
    def net_of(count: int) -> Any:
        steps = [
            SimpleNamespace(index=at, writes=Keys({f"k{at + 1}"}), awaits=frozenset({f"k{at}"})) for at in range(count)
        ]
        return SimpleNamespace(net=SimpleNamespace(steps=steps))

    assert _ordered_by_gates(net_of(3)) == {0: {1}, 1: {0, 2}, 2: {1}}
    few, many = net_of(60), net_of(240)
    assert work(lambda: _ordered_by_gates(many)) < 4.6 * work(lambda: _ordered_by_gates(few))


def test_the_guard_that_covers_another_is_searched_for_among_those_with_its_operands() -> None:
    def found(count: int) -> dict[int, int]:
        guards = [OperandTest(f"ctx.a{number}", HOLDS) for number in range(count)] * 2
        return covering(guards, range(count, 2 * count))

    assert found(3) == {3: 0, 4: 1, 5: 2}
    assert work(lambda: found(400)) < 4.6 * work(lambda: found(100))


@pytest.mark.parametrize("text_of", [writers_at_once, long_ways, cycles_of_the_workbook])
def test_a_finding_is_as_long_in_a_large_playbook_as_in_a_small_one(text_of: Callable[[int], str]) -> None:
    findings = lint(text_of(300))
    assert len(findings) >= 100
    assert max(len(finding.message) for finding in findings) < 500


def test_all_steps_share_the_budget_for_calls_of_the_workbook(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("noetlc.canon.errors.INLINED_TASKS_MAX", 1_000)
    assert [finding.message for finding in lint(calls_of_a_large_workbook(40), "P120")] == [
        "workbook calls come to more than 1,000 tasks"
    ]
    few, many = (work(lambda count=count: lint(calls_of_a_large_workbook(count))) for count in (40, 160))
    assert many < 3 * few  # nearly all of it is for the first steps


def test_a_call_of_too_many_tasks_is_refused_before_any_is_made() -> None:
    def text(doublings: int) -> str:
        tasks = lines(
            lambda at: f"    w{at}: [{{kind: workbook, task: w{at + 1}}}, {{kind: workbook, task: w{at + 1}}}]",
            doublings,
        )
        start = "workflow:\n  - {step: s, tool: [{a: {kind: workbook, task: w0}}]}\n"
        return f"{HEAD}{start}workbook:\n  tasks:\n{tasks}    w{doublings}: {NOOP}\n"

    assert [finding.code for finding in lint(text(40))] == ["P120"]
    assert work(lambda: lint(text(40))) < 4 * work(lambda: lint(text(5)))


def test_calls_that_replace_different_arguments_are_followed_once_for_each_argument() -> None:
    def text(doublings: int) -> str:
        def call(at: int, name: str) -> str:
            return f"{{kind: workbook, task: w{(at + 1) % doublings}, args: {{{name}{at}: 1}}}}"

        tasks = lines(lambda at: f"    w{at}: [{call(at, 'a')}, {call(at, 'b')}]", doublings)
        start = "workflow:\n  - {step: s, tool: [{a: {kind: workbook, task: w0, args: {n: 1}}}]}\n"
        return f"{HEAD}{start}workbook:\n  tasks:\n{tasks}"

    lint(text(3))  # imports
    assert work(lambda: lint(text(12))) < 5 * work(lambda: lint(text(6)))  # not 2 ** 6 times as much


def test_a_race_of_hundreds_of_steps_lists_some_and_counts_all() -> None:
    count = OTHERS_MAX + 50
    first = lint(writers_at_once(count), "P512")[0]
    assert first.message.endswith(f"`s8` and {count - 9} more")


def test_long_names_get_no_suggestion_and_others_cost_by_their_length(monkeypatch: pytest.MonkeyPatch) -> None:
    long = "n" * WORD_CHARS_MAX
    assert nearest(f"{long[:-1]}m", [long]) == long
    assert nearest(f"{long}m", [f"{long}n"]) == ""

    def text(length: int) -> str:
        name = "k" * length
        return lines(lambda at: f"- {{step: {name}{at}, tool: {NOOP}, next: {{arcs: [{{step: {name}x{at}}}]}}}}", 20)

    monkeypatch.setattr("noetlvm.nearest.COMPARISONS_MAX", 4_000)  # both for 20 names instead of a thousand
    lint(text(10))
    assert work(lambda: lint(text(150))) < 30 * work(lambda: lint(text(10)))


def test_a_document_with_many_texts_is_parsed_once_and_then_forgotten() -> None:
    begin_document()
    texts = [f"{{{{ a{number} }}}}" for number in range(ENTRIES_MAX + 1)]
    trees = [parse_template(text) for text in texts]
    assert parse_template(texts[0]) is trees[0]
    begin_document()
    assert parse_template(texts[0]) is not trees[0]
