"""Reading YAML: values, merges, limits, and what bad text gets."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noetlc.syntax.input import ReadLimits
from noetlc.syntax.nodes import Mapping, Scalar, plain
from noetlc.syntax.span import ProblemKind
from noetlc.syntax.yaml_reader import SYNTAX_ERRORS_MAX, decode, read_document


def data(text: str) -> object:
    document = read_document(text)
    assert document.problems == ()
    assert document.root is not None
    return plain(document.root)


def kinds(text: str, limits: ReadLimits | None = None) -> list[str]:
    return [problem.kind.value for problem in read_document(text, limits or ReadLimits()).problems]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("on", "on"),
        ("off", "off"),
        ("yes", "yes"),
        ("No", "No"),
        ("true", True),
        ("FALSE", False),
        ("null", None),
        ("~", None),
        ("12", 12),
        ("-0", 0),
        ("+7", 7),
        ("0o17", 15),
        ("017", 17),
        ("0xFf", 255),
        ("1_000", "1_000"),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("5.", 5.0),
        ("-.inf", -math.inf),
        ("12:30", "12:30"),
        ("2026-11-16", "2026-11-16"),
        ("'12'", "12"),
        ('"true"', "true"),
        ("!!str 12", "12"),
        ("!!int '12'", 12),
        ("!!float 3", 3.0),
        ("! 12", "12"),
    ],
)
def test_scalars_follow_the_core_schema_s7(text: str, value: object) -> None:
    assert data(f"key: {text}") == {"key": value}


def test_not_a_number_is_one() -> None:
    value = data("key: .nan")
    assert isinstance(value, dict)
    assert math.isnan(value["key"])


def test_aliases_share_and_merge_keys_merge_s7() -> None:
    text = """
base: &base {a: 1, b: 2}
copy: *base
one: {<<: *base, b: 3}
two: {<<: [*base, {c: 4, a: 9}], d: 5}
quoted: {"<<": 1}
"""
    assert data(text) == {
        "base": {"a": 1, "b": 2},
        "copy": {"a": 1, "b": 2},
        "one": {"a": 1, "b": 3},
        "two": {"a": 1, "b": 2, "c": 4, "d": 5},
        "quoted": {"<<": 1},
    }


@pytest.mark.parametrize(
    ("text", "kind", "offset"),
    [
        ("", "empty", 0),
        ("# only a comment\n", "empty", 0),
        ("null", "empty", 0),
        ("a: 1\na: 2\n", "duplicate-key", 5),
        ("a: 1\n---\nb: 2\n", "many-documents", 5),
        ("a: !Ref b\n", "tag", 3),
        ("a: !!python/object:os.system x\n", "tag", 3),
        ("a: !!int twelve\n", "tag", 3),
        ("a: *nowhere\n", "alias", 3),
        ("a: &a [*a]\n", "alias", 7),
        ("? [a, b]\n: c\n", "complex-key", 2),
        ("1: a\n", "non-string-key", 0),
        ("<<: 3\n", "merge-value", 0),
        ("a: 'open\n", "yaml-syntax", 3),
        ("a: [1, 2\nb: 3\n", "yaml-syntax", 3),
        ("a: [", "yaml-syntax", 3),
        ("a: {b: [1,\n", "yaml-syntax", 7),
        ("\ta: 1\n", "yaml-syntax", 0),
        ("a: b: c\n", "yaml-syntax", 4),
        ("a: \x00\n", "yaml-syntax", 3),
        ("a: \ud800\n", "yaml-syntax", 3),
        ("a: \x07\n", "yaml-syntax", 3),
    ],
)
def test_each_mistake_has_a_kind_and_a_place(text: str, kind: str, offset: int) -> None:
    problem = read_document(text).problems[0]
    assert (problem.kind.value, problem.span.start) == (kind, offset)
    assert problem.help


def test_every_syntax_error_is_found_and_the_rest_is_read() -> None:
    document = read_document("a: 1\nb: @no\nc: 2\nd: 1: 2\ne: 3\n")
    assert [(problem.kind.value, problem.span.start) for problem in document.problems] == [
        ("yaml-syntax", 8),
        ("yaml-syntax", 21),
    ]
    assert document.is_damaged
    assert document.root is not None
    assert plain(document.root) == {"a": 1, "c": 2, "e": 3}


def test_reading_gives_up_after_a_fixed_number_of_errors() -> None:
    document = read_document("a: @\n" * (SYNTAX_ERRORS_MAX + 5))
    assert len(document.problems) == SYNTAX_ERRORS_MAX


def test_an_unquoted_template_is_read_as_one() -> None:
    document = read_document("url: {{ workload.api }}\n")
    assert [problem.kind for problem in document.problems] == [ProblemKind.COMPLEX_KEY]
    assert isinstance(document.root, Mapping)
    value = document.root.entries[0].value
    assert isinstance(value, Scalar)
    assert value.text == "{{ workload.api }}"
    assert value.is_template


def test_a_byte_order_mark_moves_no_place() -> None:
    document = read_document("\ufeffa: 1\na: 2\n")
    assert document.problems[0].span == (6, 7)


@pytest.mark.parametrize(
    ("data", "kind"),
    [(b"a: \xff", "not-utf8"), ("a: é".encode("utf-16"), "not-utf8"), ("a: é".encode("latin-1"), "not-utf8")],
)
def test_other_encodings_are_refused_with_a_place(data: bytes, kind: str) -> None:
    text, problem = decode(data)
    assert problem is not None
    assert problem.kind.value == kind
    assert problem.span.start == len(text)


class TestLimits:
    def test_document_size(self) -> None:
        limits = ReadLimits(document_bytes_max=8)
        assert kinds("a: 4567\n", limits) == []
        assert kinds("a: 45678\n", limits) == ["too-large"]
        assert kinds("a: é67\n", limits) == []
        assert kinds("a: é678\n", limits) == ["too-large"]
        assert decode(b"123456789", limits)[1] is not None
        assert decode(b"12345678", limits)[1] is None

    def test_depth(self) -> None:
        assert kinds("[" * 64 + "]" * 64) == []
        assert kinds("[" * 65 + "]" * 65) == ["too-large"]

    def test_nodes(self) -> None:
        limits = ReadLimits(nodes_max=4)
        assert kinds("[1, 2, 3]", limits) == []
        assert kinds("[1, 2, 3, 4]", limits) == ["too-large"]

    def test_alias_weight(self) -> None:
        limits = ReadLimits(alias_nodes_max=6)
        assert kinds("[&a [1, 2], *a, *a]", limits) == []
        assert kinds("[&a [1, 2], *a, *a, *a]", limits) == ["too-large"]

    def test_merge_weight(self) -> None:
        limits = ReadLimits(alias_nodes_max=8)
        assert kinds("[&a {x: 1}, {<<: *a}, {<<: *a}]", limits) == []
        assert kinds("[&a {x: 1}, {<<: *a}, {<<: *a}, {<<: *a}]", limits) == ["too-large"]

    def test_integers_beyond_reason_stay_text(self) -> None:
        assert data("a: " + "9" * 1000) == {"a": 10**1000 - 1}
        assert data("a: " + "9" * 1001) == {"a": "9" * 1001}


@given(st.text(max_size=200))
def test_any_text_gives_nodes_or_problems(text: str) -> None:
    document = read_document(text)
    assert document.root is not None or document.problems


@given(st.binary(max_size=200))
def test_any_bytes_decode_or_say_why(data: bytes) -> None:
    text, problem = decode(data)
    assert problem is not None or text.encode() == data


@pytest.mark.parametrize("character", ["\x85", "\u2028", "\u2029"])
@pytest.mark.parametrize("value", ["'a {} b'", '"a {} b"', "a {} b", "|-\n  a {} b", ">-\n  a {} b", "&n 'a {} b'"])
def test_line_breaks_of_an_older_yaml_are_characters(character: str, value: str) -> None:
    document = read_document("n: " + value.format(character) + "\nm: 1\n")
    assert not document.problems
    assert plain(document.root) == {"n": f"a {character} b", "m": 1}


def test_characters_for_private_use_stay_beside_line_breaks_of_an_older_yaml() -> None:
    document = read_document("n: 'a \ue000\u2028\ue001 b'\n")
    assert plain(document.root) == {"n": "a \ue000\u2028\ue001 b"}
