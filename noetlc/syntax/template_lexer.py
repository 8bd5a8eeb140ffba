"""Cuts template text into pieces: text, comments and raw blocks, opening marks, and the tokens between marks.

The patterns of tokens are the terminals of `grammar/expression.lark`; what is written here is how Jinja2 finds its
way between text and marks. The lexer never fails: what is not a token becomes one of the `Trouble` tokens, and each
stretch between marks ends with a token that says how. It must not decide what a mistake means.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from functools import cache
from typing import NamedTuple

from noetlc.syntax.input import EXPRESSION_DEPTH_MAX
from noetlc.syntax.lalr import load_grammar
from noetlc.syntax.span import Span

OUTPUT_CLOSE, TAG_CLOSE = "OUTPUT_CLOSE", "TAG_CLOSE"
CLOSING_BRACKET = {"(": ")", "[": "]", "{": "}"}


class Trouble(StrEnum):
    """Tokens that no grammar has."""

    UNKNOWN = "unknown"
    """A character that begins no token."""
    OPEN_QUOTE = "open-quote"
    """A quote that nothing closes."""
    TOO_DEEP = "too-deep"
    """A bracket inside too many others."""
    SINGLE_CLOSE = "single-close"
    """A `}` with no `{` before it: half of a closing mark. Ends the stretch."""
    UNCLOSED = "unclosed"
    """Another opening mark, or the end of the text. Ends the stretch."""


ENDS = frozenset({OUTPUT_CLOSE, TAG_CLOSE, Trouble.SINGLE_CLOSE, Trouble.UNCLOSED})


class TemplateToken(NamedTuple):
    """A terminal of the grammar, or a `Trouble`, and its place."""

    terminal: str
    span: Span


class Opening(NamedTuple):
    """An opening mark: `{{`, or `{%` together with the statement's word."""

    terminal: str
    """Terminal of the grammar, or an empty string for a statement that the grammar does not have."""
    span: Span
    keyword: str


class Piece(NamedTuple):
    """What the scanner finds next: text that comes out, then an opening mark unless a comment or the end is there."""

    data: tuple[Span, ...]
    opening: Opening | None
    resume: int
    """Where reading continues: inside the mark, or after the comment or raw block."""
    unclosed: Span | None = None
    """The opening of a comment or raw block that never ends."""


class Patterns(NamedTuple):
    """The lexer's regular expressions, built once from the grammar."""

    token: re.Pattern[str]
    string: re.Pattern[str]
    tag: re.Pattern[str]
    words: dict[str, str]
    operators: dict[str, str]


_MARK = re.compile(r"\{[{%#]([-+]?)")
_RAW = re.compile(r"\{%[-+]?\s*raw\s*(?:-%\}\s*|%\})")
_END_RAW = re.compile(r"\{%([-+]?)\s*endraw\s*(?:\+%\}|-%\}\s*|%\})")
_END_COMMENT = re.compile(r"\+#\}|-#\}\s*|#\}")
_KEYWORD = re.compile(r"\{%[-+]?\s*(\w*)")
_BLANKS = re.compile(r"\s*")


@cache
def patterns() -> Patterns:
    grammar = load_grammar("expression")
    words = {text: name for text, name in grammar.literals.items() if text.isidentifier()}
    operators = {text: name for text, name in grammar.literals.items() if not text.isidentifier()}
    choices = [
        *(f"(?P<{name}>{grammar.patterns[name]})" for name in (OUTPUT_CLOSE, TAG_CLOSE)),
        r"(?P<opening>\{[{%#]|\Z)",
        *(f"(?P<{name}>{grammar.patterns[name]})" for name in ("NAME", "FLOAT", "INTEGER")),
        "(?P<quote>['\"])",
        f"(?P<operator>{'|'.join(re.escape(text) for text in sorted(operators, key=len, reverse=True))})",
        r"(?P<unknown>[\s\S])",
    ]
    tags = [name for name in grammar.patterns if name.startswith("TAG_") and name != TAG_CLOSE]
    return Patterns(
        token=re.compile(rf"\s*(?:{'|'.join(choices)})"),
        string=re.compile(grammar.patterns["STRING"]),
        tag=re.compile("|".join(f"(?P<{name}>{grammar.patterns[name]})" for name in tags)),
        words=words,
        operators=operators,
    )


class TemplateLexer:
    """Reads one template text. Positions are handed in and out, so a reader may go back."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._patterns = patterns()
        self._open_quotes: set[str] = set()

    def piece(self, position: int) -> Piece:
        """Return the text from `position` on and the mark that ends it."""
        text = self._text
        mark = _MARK.search(text, position)
        if mark is None:
            return Piece(_text_at(position, len(text)), None, len(text))
        start = mark.start()
        data = self._before(position, start, mark[1])
        raw = _RAW.match(text, start)
        if raw is not None:
            return self._raw(data, raw)
        if mark[0].startswith("{#"):
            return self._comment(data, mark)
        opening = self._opening(mark)
        return Piece(data, opening, opening.span.end)

    def after_close(self, close: Span) -> int:
        """Return where text continues after a closing mark: `-}}` and `-%}` remove the white space that follows."""
        if self._text.startswith("-", close.start):
            return self._skip_blanks(close.end)
        return close.end

    def tokens(self, position: int) -> Iterator[TemplateToken]:
        """Yield the tokens of one stretch between marks; the last one is of `ENDS`."""
        match, words = self._patterns.token.match, self._patterns.words
        text, brackets = self._text, list[str]()
        while True:
            found = match(text, position)
            assert found is not None  # the last choice takes any character, `\Z` the end
            kind = found.lastgroup or ""
            start, position = found.span(kind)
            if kind == "NAME":
                word = text[start:position]
                is_name = word.isascii() or word.isidentifier()
                yield TemplateToken(words.get(word) or ("NAME" if is_name else Trouble.UNKNOWN), Span(start, position))
                continue
            token = self._token(kind, start, position, brackets)
            yield token
            if token.terminal in ENDS:
                return
            position = token.span.end

    def _token(self, kind: str, start: int, end: int, brackets: list[str]) -> TemplateToken:
        if kind == "operator":
            return self._operator(start, end, brackets)
        if kind == "quote":
            return self._string(start)
        if kind == OUTPUT_CLOSE and brackets and brackets[-1] == "}":
            return self._operator(start, start + 1, brackets)  # `}}` ends two mappings here
        if kind == "opening":
            return TemplateToken(Trouble.UNCLOSED, Span(start, start))
        return TemplateToken(Trouble.UNKNOWN if kind == "unknown" else kind, Span(start, end))

    def _operator(self, start: int, end: int, brackets: list[str]) -> TemplateToken:
        text = self._text[start:end]
        span = Span(start, end)
        if text in CLOSING_BRACKET:
            brackets.append(CLOSING_BRACKET[text])
            if len(brackets) > EXPRESSION_DEPTH_MAX:
                return TemplateToken(Trouble.TOO_DEEP, span)
        elif text == "}" and not brackets:
            return TemplateToken(Trouble.SINGLE_CLOSE, span)
        elif brackets and text == brackets[-1]:
            brackets.pop()
        return TemplateToken(self._patterns.operators[text], span)

    def _string(self, start: int) -> TemplateToken:
        quote = self._text[start]
        # Once a quote was found open, so is every later one of its kind: not looking again keeps this linear.
        found = None if quote in self._open_quotes else self._patterns.string.match(self._text, start)
        if found is None:
            self._open_quotes.add(quote)
            return TemplateToken(Trouble.OPEN_QUOTE, Span(start, start + 1))
        return TemplateToken("STRING", Span(start, found.end()))

    def _opening(self, mark: re.Match[str]) -> Opening:
        if mark[0].startswith("{{"):
            return Opening("OUTPUT_OPEN", Span(*mark.span()), "")
        tag = self._patterns.tag.match(self._text, mark.start())
        keyword = _KEYWORD.match(self._text, mark.start())
        assert keyword is not None  # the mark itself is `{%`
        return Opening((tag.lastgroup or "") if tag else "", Span(*keyword.span()), keyword[1])

    def _comment(self, data: tuple[Span, ...], mark: re.Match[str]) -> Piece:
        end = _END_COMMENT.search(self._text, mark.end())
        if end is None:
            return Piece(data, None, len(self._text), unclosed=Span(*mark.span()))
        return Piece(data, None, end.end())

    def _raw(self, data: tuple[Span, ...], begin: re.Match[str]) -> Piece:
        end = _END_RAW.search(self._text, begin.end())
        if end is None:
            return Piece(data, None, len(self._text), unclosed=Span(*begin.span()))
        return Piece(data + self._before(begin.end(), end.start(), end[1]), None, end.end())

    def _before(self, start: int, end: int, sign: str) -> tuple[Span, ...]:
        """Return the text between two marks; `-` in the second takes the blanks before it."""
        if sign == "-":
            end = start + len(self._text[start:end].rstrip())
        return _text_at(start, end)

    def _skip_blanks(self, position: int) -> int:
        found = _BLANKS.match(self._text, position)
        return found.end() if found else position


def _text_at(start: int, end: int) -> tuple[Span, ...]:
    return (Span(start, end),) if end > start else ()
