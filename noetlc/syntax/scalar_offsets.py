"""From an offset inside a scalar's value to an offset in the file.

What YAML shows (folded, unescaped, unindented) is not what the file holds. Every character of the value still
stands somewhere in the raw text, in the same order, and only white space is dropped or changed between them. So the
map is found by walking both together; escapes are decoded first.
"""

from __future__ import annotations

import re
from typing import TypeAlias

from noetlc.syntax.nodes import Scalar
from noetlc.syntax.span import Span

_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|\r\n|.)", re.DOTALL)
_PROPERTIES = re.compile(r"(?:[&!]\S*(?:\s+(?:#[^\r\n]*)?)*)+")
_ESCAPED = {
    "0": "\0",
    "a": "\a",
    "b": "\b",
    "t": "\t",
    "n": "\n",
    "v": "\v",
    "f": "\f",
    "r": "\r",
    "e": "\x1b",
    "N": "\x85",
    "_": "\xa0",
    "L": "\u2028",
    "P": "\u2029",
}
_BREAKS = "\r\n"
_SOFT = " \t" + _BREAKS

Offsets: TypeAlias = range | list[int]
"""For each character of a value and one past its end, where it stands in the file."""

_Piece = tuple[str, int, bool]
"""A character, its offset, and whether it is soft: white space that YAML may fold or drop."""


def scalar_offsets(text: str, scalar: Scalar) -> Offsets:
    """Return, for each character of the value and one past its end, its offset in `text`."""
    if scalar.written is not None:
        written = scalar_offsets(text, scalar.written)
        return [written[at] for at in scalar.places]
    start, end = _without_properties(text, scalar.span)
    value = scalar.text
    quote = 1 if scalar.style in ("'", '"') else 0
    inner = start + quote
    if text[inner : inner + len(value)] == value and len(value) == end - start - 2 * quote:
        return range(inner, inner + len(value) + 1)
    offsets = _align(value, _pieces(text, Span(start, end), scalar.style))
    return offsets if offsets is not None else [start] * (len(value) + 1)


def span_in_file(text: str, scalar: Scalar, span: Span) -> Span:
    """Return where `span` of a scalar's value stands in the file."""
    return span_through(scalar_offsets(text, scalar), span)


def span_through(offsets: Offsets, span: Span) -> Span:
    """Return where `span` of a value stands, given where each of its characters does."""
    last = len(offsets) - 1
    start = offsets[min(span.start, last)]
    if span.end <= span.start:
        return Span(start, start)
    return Span(start, offsets[min(span.end, last) - 1] + 1)


def _without_properties(text: str, span: Span) -> Span:
    """Return a scalar's span without its anchor and tag, which no unquoted scalar begins with."""
    properties = _PROPERTIES.match(text, *span)
    return Span(properties.end(), span.end) if properties else span


def _pieces(text: str, span: Span, style: str) -> list[_Piece]:
    start, end = span
    if style == '"':
        return _double_quoted(text, start + 1, end - 1)
    if style == "'":
        return _single_quoted(text, start + 1, end - 1)
    if style in ("|", ">"):
        header = re.compile(r"[^\r\n]*(\r\n|[\r\n])?").match(text, start, end)
        start = header.end() if header else start
    return [(text[at], at, text[at] in _SOFT) for at in range(start, end)]


def _single_quoted(text: str, start: int, end: int) -> list[_Piece]:
    pieces: list[_Piece] = []
    at = start
    while at < end:
        pieces.append((text[at], at, text[at] in _SOFT))
        at += 2 if text.startswith("''", at) else 1
    return pieces


def _double_quoted(text: str, start: int, end: int) -> list[_Piece]:
    pieces: list[_Piece] = []
    at = start
    while at < end:
        escape = _ESCAPE.match(text, at, end)
        if escape is None:
            pieces.append((text[at], at, text[at] in _SOFT))
            at += 1
            continue
        code = escape.group(1)
        if code[0] in "xuU" and len(code) > 1:
            pieces.append((chr(int(code[1:], 16)), at, False))
        elif code[0] not in _BREAKS:
            pieces.append((_ESCAPED.get(code, code), at, False))
        at = escape.end()
        while code[0] in _BREAKS and text[at] in " \t":
            at += 1  # an escaped line break takes the next line's indentation with it
    return pieces


def _stands_for(written: str, character: str) -> bool:
    """A line break may be folded into a space, and reads as a line feed whatever it was."""
    return written == character or (written in _BREAKS and character in " \n")


def _align(value: str, pieces: list[_Piece]) -> list[int] | None:
    """Match each character of the value with a piece; None where they do not belong together."""
    offsets: list[int] = []
    index, count = 0, len(pieces)
    last = pieces[-1][1] + 1 if pieces else 0
    for character in value:
        while index < count and pieces[index][2] and not _stands_for(pieces[index][0], character):
            index += 1
        if index == count and character in _SOFT:
            offsets.append(last)  # the final line break of a block scalar lies outside its span
        elif index == count or not _stands_for(pieces[index][0], character):
            return None
        else:
            offsets.append(pieces[index][1])
            index += 1
    offsets.append(pieces[index][1] if index < count else last)
    return offsets
