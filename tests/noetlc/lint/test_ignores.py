from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noetlc.finding import Finding, Severity
from noetlc.lint.fixing import apply_edits, fix_text
from noetlc.lint.ignores import UNUSED_IGNORE, Ignore, apply_ignores, find_ignores
from noetlc.syntax.span import Source, Span
from noetlc.syntax.yaml_reader import read_document


def scalar_spans(text: str) -> list[Span]:
    return list(read_document(text).scalar_spans)


def ignores_in(text: str) -> list[Ignore]:
    return find_ignores(text, scalar_spans(text))


def finding(text: str, at: str, code: str = "P103") -> Finding:
    start = text.index(at)
    return Finding(code, Severity.ERROR, Span(start, start + len(at)), "wrong", "mend it")


def left_of(text: str, *findings: Finding, all_rules_ran: bool = True) -> list[str]:
    left = apply_ignores(findings, ignores_in(text), Source("a.yaml", text), all_rules_ran=all_rules_ran).reported
    return [one.code for one in left]


def test_a_comment_silences_its_own_line() -> None:
    text = "a: bad # noetlc: ignore[P103]\nb: bad\n"
    assert left_of(text, finding(text, "bad")) == []
    second = Finding("P103", Severity.ERROR, Span(text.rindex("bad"), len(text)), "wrong", "")
    assert left_of(text, finding(text, "bad"), second) == ["P103"]


def test_a_comment_alone_on_its_line_silences_the_next() -> None:
    text = "x:\n  # noetlc: ignore[P103]\n  a: bad\n"
    assert left_of(text, finding(text, "bad")) == []


def test_only_the_listed_codes_are_silenced_and_prefixes_count() -> None:
    text = "a: bad # noetlc: ignore[P501, P1]\n"
    found = [finding(text, "bad", code) for code in ("P103", "P203", "P501")]
    assert left_of(text, *found) == ["P203"]


def test_without_codes_everything_on_the_line_is_silenced() -> None:
    text = "a: bad # noetlc: ignore\n"
    assert left_of(text, finding(text, "bad"), finding(text, "bad", "P501")) == []


def test_a_reason_may_follow() -> None:
    text = "a: bad # noetlc: ignore[P103] the other side sends it so\n"
    assert left_of(text, finding(text, "bad")) == []


def test_ignore_file_silences_the_whole_file() -> None:
    text = "# etl\n# noetlc: ignore-file[P1]\n---\na: 1\nb: bad\n"
    assert left_of(text, finding(text, "bad")) == []


def test_ignore_file_must_stand_at_the_top() -> None:
    text = "a: 1\n# noetlc: ignore-file[P1]\nb: bad\n"
    assert left_of(text, finding(text, "bad")) == [UNUSED_IGNORE, "P103"]


@pytest.mark.parametrize(
    "text",
    [
        "a: 'x # noetlc: ignore'\n",
        'a: "x # noetlc: ignore"\n',
        "a: |\n  x # noetlc: ignore\n  # noetlc: ignore\n",
        "a: >-\n  x\n\n  # noetlc: ignore\nb: 1\n",
        "a: x#noetlc:ignore\n",
        "a: 'x\n  # noetlc: ignore\n  y'\n",
    ],
)
def test_text_inside_a_scalar_is_no_comment(text: str) -> None:
    assert ignores_in(text) == []


def test_the_header_of_a_block_scalar_speaks_for_the_block() -> None:
    text = "code: | # noetlc: ignore[P2]\n  one\n  bad\nnext: other\n"
    other = finding(text, "other", "P201")
    assert left_of(text, finding(text, "bad", "P201"), other) == ["P201"]


def test_a_comment_above_a_folded_scalar_speaks_for_all_of_it() -> None:
    text = "# noetlc: ignore[P2]\na: 'one\n  bad'\nb: 1\n"
    assert left_of(text, finding(text, "bad", "P201")) == []


def test_a_line_after_a_block_scalar_is_not_part_of_it() -> None:
    text = "x:\n  code: | # noetlc: ignore[P2]\n      one\n\n  b: bad\n"
    assert left_of(text, finding(text, "bad", "P201")) == [UNUSED_IGNORE, "P201"]


def test_an_ignore_that_silences_nothing_is_a_note_with_a_fix() -> None:
    text = "a: 1 # noetlc: ignore[P103]\n"
    (unused,) = apply_ignores([], ignores_in(text), Source("a.yaml", text), all_rules_ran=True).reported
    assert (unused.code, unused.severity) == (UNUSED_IGNORE, Severity.NOTE)
    assert text[unused.span.start : unused.span.end] == "# noetlc: ignore[P103]"
    assert unused.fix is not None
    assert apply_edits(text, unused.fix.edits) == "a: 1\n"


@pytest.mark.parametrize(
    ("text", "corrected"),
    [
        ("x:\n  # noetlc: ignore[P103]\n  a: 1\n", "x:\n  a: 1\n"),
        ("a: bad # noetlc: ignore[P103,P501]\n", "a: bad # noetlc: ignore[P103]\n"),
        ("a: 1 # noetlc: ignore", "a: 1"),
    ],
)
def test_the_fix_takes_away_what_is_idle_and_no_more(text: str, corrected: str) -> None:
    found = [finding(text, "bad")] if "bad" in text else []
    (unused,) = apply_ignores(found, ignores_in(text), Source("a.yaml", text), all_rules_ran=True).reported
    assert unused.fix is not None
    assert unused.fix.safe
    assert apply_edits(text, unused.fix.edits) == corrected


def test_a_reason_a_user_wrote_is_not_deleted() -> None:
    text = "a: 1 # noetlc: ignore[P103] because of the moon\n"
    (unused,) = apply_ignores([], ignores_in(text), Source("a.yaml", text), all_rules_ran=True).reported
    assert unused.fix is None


def test_nothing_is_said_of_idle_ignores_when_part_of_the_file_was_not_read() -> None:
    text = "a: 1 # noetlc: ignore[P103]\n"
    assert left_of(text, all_rules_ran=False) == []


def test_the_note_itself_can_be_silenced() -> None:
    assert left_of("a: 1 # noetlc: ignore[P103,P013]\n") == []


@pytest.mark.parametrize(
    ("comment", "hint"),
    [
        ("# noetlc: ignore P103", "ignore[CODE]"),
        ("# noetlc: ignor[P103]", "ignore[CODE]"),
        ("# noetlc: ignore[unknown-step]", "`unknown-step` is not a rule code"),
        ("# noetlc: ignore[]", "is not a rule code"),
    ],
)
def test_a_comment_that_is_not_understood_silences_nothing_and_says_so(comment: str, hint: str) -> None:
    text = f"a: bad {comment}\n"
    left = apply_ignores([finding(text, "bad")], ignores_in(text), Source("a.yaml", text), all_rules_ran=True).reported
    assert [one.code for one in left] == ["P103", UNUSED_IGNORE]
    assert re.search(re.escape(hint), left[1].message)


@given(
    st.lists(st.sampled_from(["# noetlc: ", "ignore", "-file", "[", "]", "P103", ",", " ", "\n", "\r\n", "a: 1", "|"]))
)
def test_any_text_is_answered_and_its_fixes_leave_nothing_to_fix(pieces: list[str]) -> None:
    text = "".join(pieces)

    def unused(text: str) -> list[Finding]:
        source = Source("a.yaml", text)
        return apply_ignores([], find_ignores(text, []), source, all_rules_ran=True).reported

    fixed = fix_text(text, unused, unsafe=False)
    assert fix_text(fixed.text, unused, unsafe=False).count == 0


def test_windows_line_breaks_change_nothing() -> None:
    text = "a: bad # noetlc: ignore[P103]\r\n# noetlc: ignore[P103]\r\nb: worse\r\n"
    assert left_of(text, finding(text, "bad"), finding(text, "worse")) == []


def test_a_text_without_the_mark_is_not_even_looked_at() -> None:
    assert find_ignores("a: 1 # a comment\n", iter(lambda: pytest.fail("scalars were requested"), None)) == []
