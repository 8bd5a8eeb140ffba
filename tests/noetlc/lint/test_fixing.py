from __future__ import annotations

import re
from typing import TYPE_CHECKING

from noetlc.finding import Edit, Finding, Fix, Severity
from noetlc.lint.fixing import ROUNDS_MAX, apply_edits, fix_text
from noetlc.syntax.span import Span

if TYPE_CHECKING:
    from collections.abc import Callable


def replacing(pattern: str, text: str, *, safe: bool = True, code: str = "P103") -> Callable[[str], list[Finding]]:
    """Make a checker that finds each match of a pattern and would replace it."""

    def check(source: str) -> list[Finding]:
        spans = [Span(*match.span()) for match in re.finditer(pattern, source)]
        return [
            Finding(code, Severity.ERROR, span, "wrong", "mend", (), Fix("mend it", (Edit(span, text),), safe))
            for span in spans
        ]

    return check


def test_all_safe_fixes_are_applied_and_counted() -> None:
    fixed = fix_text("bad, bad and bad", replacing("bad", "good"), unsafe=False)
    assert (fixed.text, fixed.count, fixed.problem) == ("good, good and good", 3, None)


def test_fixing_again_changes_nothing() -> None:
    check = replacing("bad", "good")
    once = fix_text("bad # bad", check, unsafe=False).text
    assert fix_text(once, check, unsafe=False).text == once


def test_unsafe_fixes_wait_to_be_requested() -> None:
    check = replacing("bad", "good", safe=False)
    assert fix_text("bad", check, unsafe=False).text == "bad"
    assert fix_text("bad", check, unsafe=True).text == "good"


def test_fixes_that_touch_each_other_take_two_rounds() -> None:
    fixed = fix_text("aaaa", replacing("a", "b"), unsafe=False)
    assert (fixed.text, fixed.count) == ("bbbb", 4)


def test_a_fix_that_makes_room_for_itself_ends() -> None:
    fixed = fix_text("x", replacing("x$", "xx"), unsafe=False)
    assert fixed.text == "x" * (ROUNDS_MAX + 1)


def test_a_fix_that_breaks_the_file_is_taken_back_and_reported() -> None:
    def check(source: str) -> list[Finding]:
        if "{" in source:
            return [Finding("P003", Severity.ERROR, Span(0, 1), "not YAML", "")]
        return replacing("bad", "{")(source)

    fixed = fix_text("bad", check, unsafe=False)
    assert fixed.text == "bad"
    assert fixed.problem is not None
    assert "mend it" in fixed.problem


def test_a_file_with_windows_line_breaks_keeps_them() -> None:
    assert fix_text("a\r\nbad\r\n", replacing("bad", "b\nc"), unsafe=False).text == "a\r\nb\r\nc\r\n"


def test_edits_of_one_fix_are_applied_from_the_end() -> None:
    edits = (Edit(Span(0, 1), "XXX"), Edit(Span(2, 3), ""), Edit(Span(3, 3), "!"))
    assert apply_edits("a-b", edits) == "XXX-!"


def test_two_findings_with_the_same_fix_are_fixed_by_one_edit() -> None:
    def check(source: str) -> list[Finding]:
        return replacing("bad", "good")(source) + replacing("bad", "good", code="P104")(source)

    fixed = fix_text("bad", check, unsafe=False)
    assert (fixed.text, fixed.count) == ("good", 2)
