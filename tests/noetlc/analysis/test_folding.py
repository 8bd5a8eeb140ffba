"""Constant folding: what it does, and above all what it leaves alone."""

from __future__ import annotations

import pytest

from noetlc.analysis.folding import INTEGER_MAX, TEXT_MAX
from tests.noetlc.codegen.listing import lowered


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("1 + 2 * 3", 7),
        ("7 // 2", 3),
        ("-7 % 3", 2),
        ("1 / 4", 0.25),
        ("-(1)", -1),
        ("+1.5", 1.5),
        ("'a' + 'b'", "ab"),
        ("'a' ~ 'b' ~ 'c'", "abc"),
        ("not 1", False),
        ("not []", True),
        ("1 < 2 <= 2", True),
        ("1 == 1.0", True),
        ("'a' in 'abc'", True),
        ("3 in (1, 2)", False),
        ("'k' in {'k': 1}", True),
        ("[1, 'a', {'k': [none]}]", [1, "a", {"k": [None]}]),
        ("{'k': 1, 'k': 2}", {"k": 2}),
        ("0 or 'x'", "x"),
        ("1 and 0 and 2", 0),
        ("'a' if 1 > 2 else 'b'", "b"),
        (f"{INTEGER_MAX - 1} + 0", INTEGER_MAX - 1),
    ],
)
def test_constant(expression: str, value: object) -> None:
    assert lowered(f"{{{{ {expression} }}}}") == f"CONST {value!r}"


@pytest.mark.parametrize(
    "expression",
    [
        "1 / 0",
        "1 // 0",
        "1 % 0",
        "1 + 'a'",
        "'a' * 1000",
        "2 ** 3",
        "[1] + [2]",
        "'%s' % 1",
        "true + 1",
        "-'a'",
        "1 < 'a'",
        "1 in 'abc'",
        "1 in 5",
        "1 ~ 'a'",
        "1.0 ~ 'a'",
        "1e308 * 10",
        f"{INTEGER_MAX - 1} + 1",
        f"{INTEGER_MAX} * 1",
        f"'{'a' * TEXT_MAX}' + 'a'",
        "{1: 2}",
        "(1, 2)",
        "1 in (1, 2) == [1, 2]",
        "'a' | upper",
        "1 if false",
    ],
)
def test_what_may_fail_or_grow_is_left_to_the_machine(expression: str) -> None:
    code = lowered(f"{{{{ {expression} }}}}")
    assert not code.startswith("CONST") or ";" in code


@pytest.mark.parametrize(
    ("expression", "code"),
    [
        ("true and a", "BARE 'a'"),
        ("a and true and b", "BARE 'a'; KEEP_UNLESS 3; BARE 'b'"),
        ("a and false and b", "BARE 'a'; KEEP_UNLESS 3; CONST False"),
        ("a or 1 or b", "BARE 'a'; KEEP_IF 3; CONST 1"),
        ("a or '' or b", "BARE 'a'; KEEP_IF 3; BARE 'b'"),
        ("a if true else b", "BARE 'a'"),
        ("a + (1 + 2)", "BARE 'a'; CONST 3; ADD"),
    ],
)
def test_constants_decide_which_code_there_is(expression: str, code: str) -> None:
    assert lowered(f"{{{{ {expression} }}}}") == code
