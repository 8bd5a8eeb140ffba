"""Places inside scalars: every style of YAML scalar leads back to the characters that were written."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from noetlc.syntax.nodes import Mapping, Scalar
from noetlc.syntax.scalar_offsets import scalar_offsets, span_in_file
from noetlc.syntax.span import Source, Span
from noetlc.syntax.yaml_reader import read_document


def only_value(text: str) -> Scalar:
    root = read_document(text).root
    assert isinstance(root, Mapping)
    value = root.entries[-1].value
    assert isinstance(value, Scalar)
    return value


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("key: (a) X\n", 1, 10),
        ('key: "a X"\n', 1, 9),
        ("key: 'it''s X'\n", 1, 13),
        ('key: "\\u00e9\\t\\x41 X"\n', 1, 20),
        ('key: "日本 X"\n', 1, 10),
        ("key: 日本語 X\n", 1, 10),
        ("key: |\n  one\n  two X\n", 3, 7),
        ("key: |2\n    one\n    two X\n", 3, 9),
        ("key: |-  # comment with X\n  two X\n", 2, 7),
        ("key: >\n  folded\n  words X\n", 3, 9),
        ("key: >\n  para\n\n\n  second X\n", 5, 10),
        ("key: >\n  less\n    more X\n", 3, 10),
        ("key: plain\n  goes on X\n", 2, 11),
        ("key: 'single\n  goes on X'\n", 2, 11),
        ('key: "double\n  goes \\\n  on X"\n', 3, 6),
        ("first: 1\r\nkey: |\r\n  one\r\n  X\r\n", 4, 3),
        ("key: |\n  tab\there X\n", 2, 12),
        ("\ufeffkey: a X\n", 1, 9),
        ("# 日本\nkey: 'x X'\n", 2, 9),
        ('key: &n "a X"\n', 1, 12),
        ("key: !!str 'it''s X'\n", 1, 19),
        ("key: &n !!str # comment with X\n  'a X'\n", 2, 6),
        ("key: !!str &n a b X\n", 1, 19),
        ("key: &n |\n  one\n  two X\n", 3, 7),
        ("key: 'a\u2028 b X'\n", 1, 12),
        ("key: |\n  a \x85b X\n  c\n", 2, 8),
    ],
)
def test_the_marker_is_found_where_it_was_written(text: str, line: int, column: int) -> None:
    scalar = only_value(text)
    at = scalar.text.index("X")
    span = span_in_file(text, scalar, Span(at, at + 1))
    assert text[span.start : span.end] == "X"
    assert Source("file", text).position(span.start) == (line, column)


def test_an_empty_span_stays_empty_and_the_end_is_reachable() -> None:
    text = "key: 'abc'\n"
    scalar = only_value(text)
    assert span_in_file(text, scalar, Span(3, 3)) == (9, 9)
    assert span_in_file(text, scalar, Span(0, 99)) == (6, 9)


_SOFT = " \t\r\n\x85\u2028\u2029"


@given(
    st.text(
        st.characters(codec="utf-8", exclude_characters="\x7f", min_codepoint=32, max_codepoint=0x1F900), min_size=1
    ),
    st.sampled_from(['"', "'", "|", ">"]),
)
@example("\xa0", "|")
def test_every_visible_character_maps_to_itself(content: str, style: str) -> None:
    import yaml

    text = yaml.dump({"key": content}, default_style=style, allow_unicode=True, width=30)
    document = read_document(text)
    if document.problems or not isinstance(document.root, Mapping):
        return
    scalar = document.root.entries[0].value
    assert isinstance(scalar, Scalar)
    offsets = scalar_offsets(text, scalar)
    assert len(offsets) == len(scalar.text) + 1
    assert list(offsets) == sorted(offsets)
    for character, offset in zip(scalar.text, offsets, strict=False):
        if character not in _SOFT and text[offset] != "\\":
            assert text[offset] == character
