"""Input that wants to do harm gets an answer: findings, bounded memory, no exception, no hang."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable

import pytest

from noetlc.lint.check import check_bytes
from noetlc.report.report import OutputFormat, Report, render
from noetlc.rules.catalogue import whole_playbook

MEMORY_BYTES_MAX = 64 * 1024 * 1024


def merge_bomb() -> str:
    lines = ["a0: &a0 {k: 1}"]
    lines += [f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}], x: [*a{n - 1}, *a{n - 1}]}}" for n in range(1, 8)]
    return "\n".join(lines)


def billion_laughs() -> str:
    lines = ["a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    return "\n".join(lines)


def with_expression(expression: str) -> str:
    return whole_playbook(f"- step: start\n  tool: {{kind: http, url: '{{{{ {expression} }}}}'}}\n")


HOSTILE = {
    "merge-key bomb": (merge_bomb().encode(), "P004"),
    "billion laughs": (billion_laughs().encode(), "P004"),
    "200 kB of [": (b"[" * 200_000, "P004"),
    "200 kB of {": (b"{" * 200_000, "P004"),
    "200 kB of - ": (b"- " * 100_000, "P004"),
    "10 MB scalar": (b"a: " + b"x" * 10_000_000, "P004"),
    "NULs": (b"\0" * 1_000, "P003"),
    "NUL in a scalar": (b"a: b\0c", "P003"),
    "lone surrogate bytes": (b"a: \xed\xa0\x80", "P002"),
    "overlong UTF-8": (b"a: \xc0\xaf", "P002"),
    "escaped surrogate": (b'a: "\\ud800"', "P003"),
    "10,000 nested parentheses": (with_expression("(" * 10_000 + "1" + ")" * 10_000).encode(), "P209"),
    "10,000 open parentheses": (with_expression("(" * 10_000).encode(), "P209"),
    "10,000 nested lists": (with_expression("[" * 10_000 + "]" * 10_000).encode(), "P209"),
    "10,000 nots": (with_expression("not " * 10_000 + "x").encode(), "P209"),
    "10,000 minus signs": (with_expression("-" * 10_000 + "1").encode(), "P209"),
    "1 MB expression": (with_expression("1 + " * 250_000 + "1").encode(), "P209"),
    "long sum": (with_expression("ctx.a + " * 7_000 + "1").encode(), "P209"),
    "anchors all the way": (b"&a " * 50_000 + b"x", "P003"),
    "question marks": (b"? " * 50_000, "P004"),
    "many documents": (b"---\n" * 50_000, "P006"),
    "many duplicate keys": (b"a: 1\n" * 20_000, "P007"),
    "many unknown keys": (b"".join(b"k%d: 1\n" % n for n in range(20_000)), "P020"),
    "tag": (b"a: !!python/object/apply:os.system [id]", "P008"),
    "self-reference": (b"a: &a {b: *a}", "P009"),
    "tabs": (b"\t\t\ta: 1", "P003"),
    "escape sequences": (b"a: \x1b[31mred", "P003"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_input_is_answered_within_bounds(name: str) -> None:
    data, code = HOSTILE[name]
    check_bytes("warm-up.yaml", b"a: 1")
    tracemalloc.start()
    try:
        checked = check_bytes("playbook.yaml", data)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert code in {finding.code for finding in checked.findings}
    assert peak < MEMORY_BYTES_MAX + 4 * len(data)


def test_the_known_merge_bomb_is_small() -> None:
    assert len(merge_bomb()) < 349


def many_root_keys(count: int) -> str:
    return "".join(f"key{number}: 1\n" for number in range(count))


def many_steps_without_tools(count: int) -> str:
    return "workflow:\n" + "".join(f"  - step: s{number}\n    unknown: 1\n" for number in range(count))


def many_unknown_names(count: int) -> str:
    values = "".join(f'          k{number}: "{{{{ nothing{number}.x }}}}"\n' for number in range(count))
    return f"workflow:\n  - step: a\n    tool:\n      - one:\n          kind: python\n          args:\n{values}"


@pytest.mark.parametrize("text_of", [many_root_keys, many_steps_without_tools, many_unknown_names])
def test_four_times_as_many_mistakes_take_no_more_than_linear_time_allows(text_of: Callable[[int], str]) -> None:
    def seconds(count: int) -> float:
        data = text_of(count).encode()
        times = []
        for _ in range(3):
            start = time.process_time()
            checked = check_bytes("playbook.yaml", data)
            render(OutputFormat.TEXT, Report(checked.rows(), ("playbook.yaml",), "1"))
            times.append(time.process_time() - start)
        assert len(checked.findings) >= count
        return min(times)

    seconds(10)
    few, many = 400, 1_600
    assert seconds(many) < 10 * seconds(few)  # linear is 4, quadratic 16
