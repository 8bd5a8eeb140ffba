"""The words of the text form, and its tokens with their places: words, JSON, labels, marks, ends of lines."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from noetlvm.bytecode.isa import BACKOFFS, COMPARISONS, NAMES, Operand
from noetlvm.bytecode.limits import BIG_INTEGER_CHARS_MAX, DEPTH_MAX
from noetlvm.bytecode.program import Mark

CHOICES: dict[Operand, tuple[str, ...]] = {
    Operand.NAME: NAMES,
    Operand.COMPARISON: COMPARISONS,
    Operand.BACKOFF: BACKOFFS,
}
"""Operands that are one of a few words, written bare."""

STRINGS = frozenset({Operand.TEXT, Operand.FILTER, Operand.TEST, Operand.FUNCTION, Operand.METHOD})
"""Operands that are written as a JSON string."""

NUMBERS = frozenset({Operand.COUNT, Operand.LIMIT, Operand.SLOT, Operand.SPREAD})

NO_EXPRESSION = "none"

PLAYBOOK_FLAGS = ("no_next_is_error",)
STEP_FLAGS = ("drops_denied", "best_effort", "inclusive")
LOOP_FLAGS = ("parallel", "distributed")
ARC_FLAGS = ("handles_failure",)
"""Attributes that are true where their word stands."""

LABEL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
GENERATED_LABEL = re.compile(r"L[0-9]+")

TEXT_CHARS_MAX = 64 * 1024 * 1024
"""A longer text is refused unread. An eight-megabyte playbook is shorter in this form."""
PIECES_MAX = 4_000_000
"""Instructions, marks and elements of constants, estimated from punctuation before anything is parsed: each takes far
more memory than its characters do."""
SHOWN_CHARS_MAX = 40
"""Characters of a token that an error shows."""

END, LABEL, WORD, JSON, MARK, CONSTRUCT, SYMBOL = "END", "LABEL", "WORD", "JSON", "MARK", "CONSTRUCT", "SYMBOL"
END_OF_TEXT = "end of text"

_BLANK = re.compile(r"[ \t\r]*+")
_GAP = re.compile(r"(?:[ \t\r\n;]++|#[^\n]*+)++")
_WORD = re.compile(r"[^\s();:#@\"\[\]{}]++")
_MARK = re.compile(r"@(?:([0-9]{1,10}):)?([0-9]{1,10}):([0-9]{1,10})(?![0-9:])")
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*+"')


class AssemblyError(Exception):
    """The text is not a valid program. The message states what to write instead."""

    def __init__(self, line: int, column: int, message: str) -> None:
        self.line = line
        self.column = column
        self.message = message
        super().__init__(f"line {line}, column {column}: {message}")


class AssemblyToken(NamedTuple):
    """A piece of the text. `value` is the word, the decoded JSON, the `Mark` or the name of a label."""

    kind: str
    value: Any
    at: int


class Lexer:
    """One text, its tokens, and errors at places in it."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.at = 0
        """Where the token begins that was read last."""
        if len(text) > TEXT_CHARS_MAX:
            raise self.error(f"the text has more than {TEXT_CHARS_MAX} characters; assemble fewer playbooks at once")
        if _pieces(text) > PIECES_MAX and _pieces(_STRING.sub("", text)) > PIECES_MAX:
            raise self.error(f"the text has more than {PIECES_MAX} parts; assemble fewer playbooks at once")

    def error(self, message: str, at: int | None = None) -> AssemblyError:
        """Make an error at an offset, by default at the last token."""
        offset = self.at if at is None else at
        line = self._text.count("\n", 0, offset) + 1
        return AssemblyError(line, offset - self._text.rfind("\n", 0, offset), message)

    def tokens(self) -> Iterator[AssemblyToken]:
        """Yield all tokens. There is an END before each `)` and at the end of the text, and never two in a row."""
        text, at, ended = self._text, _end(_GAP, self._text, 0), True
        while True:
            self.at = at = _end(_BLANK, text, at)
            character = text[at : at + 1]
            if not ended and (character in ("", "\n", ";", "#", ")")):
                yield AssemblyToken(END, None, at)
                ended = True
                at = _end(_GAP, text, at)
                continue
            if character in ("\n", ";", "#"):
                at = _end(_GAP, text, at)
                continue
            if not character:
                yield AssemblyToken(END_OF_TEXT, None, at)
                return
            token, at = self._token(character, at)
            ended = False
            yield token

    def found(self, token: AssemblyToken) -> str:
        if token.kind in (END, END_OF_TEXT):
            return "the end of the line" if self._text[token.at :].lstrip(" \t\r;") else "the end of the text"
        rest = self._text[token.at : token.at + SHOWN_CHARS_MAX]
        shown = _WORD.match(rest) or _STRING.match(rest)
        return f"`{shown[0] if shown else rest[:1]}`"

    def decoded(self, text: str, at: int) -> Any:
        """Return the value of a whole JSON text, such as `-1` or `true`, with `NaN` and `Infinity` besides."""
        value, end = self._json(text, 0, at)
        if end < len(text):
            raise self.error(f"this is not JSON: `{text[:SHOWN_CHARS_MAX]}`", at)
        return value

    def _token(self, character: str, at: int) -> tuple[AssemblyToken, int]:
        text = self._text
        if character in '"[{':
            value, end = self._json(text, at, at)
            return AssemblyToken(JSON, value, at), end
        if character == "@":
            return self._annotation(at)
        found = _WORD.match(text, at)
        if not found:
            return AssemblyToken(SYMBOL, character, at), at + 1
        if text.startswith(":", found.end()):
            return AssemblyToken(LABEL, found[0], at), found.end() + 1
        return AssemblyToken(SYMBOL if character == "." else WORD, found[0], at), found.end()

    def _annotation(self, at: int) -> tuple[AssemblyToken, int]:
        if self._text.startswith('"', at + 1):
            value, end = self._json(self._text, at + 1, at + 1)
            return AssemblyToken(CONSTRUCT, value, at), end
        found = _MARK.match(self._text, at)
        if not found:
            raise self.error("expected a place in the source: `@line:column`, or `@file:line:column`")
        return AssemblyToken(MARK, Mark(int(found[1] or 0), int(found[2]), int(found[3])), at), found.end()

    def _json(self, text: str, start: int, at: int) -> tuple[Any, int]:
        """Decode JSON that begins at `start`; `at` is where that is in the whole text."""
        try:
            value, end = _DECODER.raw_decode(text, start)
        except json.JSONDecodeError as error:
            raise self.error(f"this is not JSON: {error.msg}", at + error.pos - start) from None
        except ValueError as error:
            # A duplicate key, or an integer of too many digits.
            raise self.error(str(error), at) from None
        except RecursionError:
            raise self.error(f"a constant is nested more than {DEPTH_MAX} levels deep", at) from None
        self._check(value, at)
        return value, end

    def _check(self, value: object, at: int) -> None:
        """Refuse what no bundle can hold: text that is not Unicode, and excessive nesting."""
        level, depth = [value], 0
        while level:
            if not all(_is_unicode(item) for item in level if isinstance(item, str)):
                raise self.error("a string has half of a surrogate pair, which stands for no character", at)
            if depth >= DEPTH_MAX and any(isinstance(item, list | dict) for item in level):
                raise self.error(f"a constant is nested more than {DEPTH_MAX} levels deep", at)
            level = [inner for item in level for inner in _elements(item)]
            depth += 1


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found else at


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ValueError(f"the key {json.dumps(twice)} is given twice; keep one of the two")
    return mapping


def _integer(digits: str) -> int:
    if len(digits) > BIG_INTEGER_CHARS_MAX:
        raise ValueError(f"an integer has more than {BIG_INTEGER_CHARS_MAX} digits")
    return int(digits)


def _pieces(text: str) -> int:
    return sum(map(text.count, ",[{@;\n"))


def _elements(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return [*value, *value.values()]
    return value if isinstance(value, list) else ()


def _is_unicode(text: str) -> bool:
    return text.isascii() or text.encode(errors="replace").decode() == text


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_int=_integer)
