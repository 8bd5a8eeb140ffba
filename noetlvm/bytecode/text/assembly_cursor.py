"""Reads assembly text from left to right: words, numbers, JSON, marks. Knows places and nothing of programs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from noetlvm.bytecode.limits import BIG_INTEGER_CHARS_MAX, DEPTH_MAX
from noetlvm.bytecode.program import Mark

TEXT_CHARS_MAX = 64 * 1024 * 1024
"""A longer text is refused unread. An eight-megabyte playbook is shorter in this form."""
PIECES_MAX = 4_000_000
"""Instructions, marks and elements of constants, as far as their punctuation tells before anything is read. Each costs
far more memory than its characters do."""
LONGEST_SHOWN = 40
"""Characters of a word that an error shows."""

_BLANK = re.compile(r"[ \t\r]*+")
_GAP = re.compile(r"(?:[ \t\r\n;]++|#[^\n]*+)*+")
_WORD = re.compile(r"[^\s();:#@\"]++")
_NUMBER = re.compile(r"[0-9]{1,20}(?![0-9A-Za-z_])")
_MARK = re.compile(r"@(?:([0-9]{1,10}):)?([0-9]{1,10}):([0-9]{1,10})(?![0-9:])")
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*+"')
_END = re.compile(r"[\n;#)]|\Z")


class AssemblyError(Exception):
    """The text is no program. Says where, and what to write instead."""

    def __init__(self, line: int, column: int, message: str) -> None:
        self.line = line
        self.column = column
        self.message = message
        super().__init__(f"line {line}, column {column}: {message}")


class Cursor:
    """A place in the text that moves on as things are read."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.at = 0
        if len(text) > TEXT_CHARS_MAX:
            raise self.error(f"the text has more than {TEXT_CHARS_MAX} characters; assemble fewer playbooks at once")
        if _pieces(text) > PIECES_MAX and _pieces(_STRING.sub("", text)) > PIECES_MAX:
            raise self.error(f"the text has more than {PIECES_MAX} parts; assemble fewer playbooks at once")

    def error(self, message: str, at: int | None = None) -> AssemblyError:
        """Make an error at an offset, by default at the place that was reached."""
        place = self.at if at is None else at
        line = self._text.count("\n", 0, place) + 1
        return AssemblyError(line, place - self._text.rfind("\n", 0, place), message)

    def skip_lines(self) -> None:
        """Go to the next line or part of a line that has something on it."""
        self.at = self._end_of(_GAP)

    def at_end(self) -> bool:
        return self.at == len(self._text)

    def end_line(self) -> None:
        """Insist that nothing more stands on the line or before the next `;`."""
        self.at = self._end_of(_BLANK)
        if not _END.match(self._text, self.at):
            raise self.error(f"{self._found()} is more than belongs here; go on in a new line or after `;`")

    def peek_word(self) -> str:
        """Return the word, or else the character, that comes next on the line, without going past it."""
        self.at = self._end_of(_BLANK)
        found = _WORD.match(self._text, self.at)
        return found[0] if found else self._text[self.at : self.at + 1].strip()

    def accept(self, *words: str) -> str:
        """Go past one of these words and return it, if it comes next."""
        found = self.peek_word()
        if found not in words:
            return ""
        self.at += len(found)
        return found

    def expect(self, word: str) -> None:
        if not self.accept(word):
            raise self.error(f"expected `{word}`, found {self._found()}")

    def accept_label(self, name: str) -> bool:
        """Go past `name:` if it comes next."""
        if not self._text.startswith(name + ":", self.at):
            return False
        self.at += len(name) + 1
        return True

    def choice(self, what: str, words: Iterable[str]) -> str:
        """Read one of these words, which may have spaces in them."""
        known = sorted(words, key=len, reverse=True)
        self.at = self._end_of(_BLANK)
        for word in known:
            if self._text.startswith(word, self.at) and not _WORD.match(self._text, self.at + len(word)):
                self.at += len(word)
                return word
        raise self.error(f"expected {what}, found {self._found()}; {hint(self.peek_word(), known)}")

    def number(self, what: str) -> int:
        self.at = self._end_of(_BLANK)
        found = _NUMBER.match(self._text, self.at)
        if not found:
            raise self.error(f"expected {what} (a number), found {self._found()}")
        self.at = found.end()
        return int(found[0])

    def string(self, what: str) -> str:
        start = self._here()
        if not self._text.startswith('"', start):
            raise self.error(f"expected {what} in double quotes, found {self._found()}")
        return str(self.value(what))

    def strings(self, what: str) -> list[str]:
        start = self._here()
        value = self.value(what)
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            return value
        raise self.error(f'expected {what}, a list of strings such as `["a", "b"]`', start)

    def mapping(self, what: str) -> dict[str, object]:
        start = self._here()
        value = self.value(what)
        if isinstance(value, dict):
            return value
        raise self.error(f'expected {what}, a mapping such as `{{"key": 1}}`', start)

    def value(self, what: str) -> object:
        """Read a constant: JSON, with `NaN`, `Infinity` and `-Infinity` besides."""
        start = self._here()
        if _END.match(self._text, start):
            raise self.error(f"expected {what}, found {self._found()}")
        try:
            value, self.at = _DECODER.raw_decode(self._text, start)
        except json.JSONDecodeError as error:
            raise self.error(f"this is no JSON: {error.msg}", error.pos) from None
        except ValueError as error:
            # A key given twice, or an integer of too many digits.
            raise self.error(str(error), start) from None
        except RecursionError:
            raise self.error(f"a constant is nested more than {DEPTH_MAX} levels deep", start) from None
        self._check(value, start)
        return value

    def construct(self) -> str | None:
        """Read `@"what the author wrote"`, if it comes next."""
        if not self._text.startswith('@"', self._here()):
            return None
        self.at += 1
        return self.string("a construct")

    def mark(self) -> Mark | None:
        """Read `@line:column` or `@file:line:column`, if it comes next."""
        start = self._here()
        if not self._text.startswith("@", start):
            return None
        found = _MARK.match(self._text, start)
        if not found:
            raise self.error("expected a place in the source: `@line:column`, or `@file:line:column`")
        self.at = found.end()
        return Mark(int(found[1] or 0), int(found[2]), int(found[3]))

    def _check(self, value: object, start: int) -> None:
        """Refuse what no bundle can hold: text that is not Unicode, and nesting without end."""
        level, depth = [value], 0
        while level:
            if not all(_is_unicode(item) for item in level if isinstance(item, str)):
                raise self.error("a string has half of a surrogate pair, which stands for no character", start)
            if depth >= DEPTH_MAX and any(isinstance(item, list | dict) for item in level):
                raise self.error(f"a constant is nested more than {DEPTH_MAX} levels deep", start)
            level = [inner for item in level for inner in _elements(item)]
            depth += 1

    def _here(self) -> int:
        self.at = self._end_of(_BLANK)
        return self.at

    def _end_of(self, pattern: re.Pattern[str]) -> int:
        found = pattern.match(self._text, self.at)
        return found.end() if found else self.at

    def _found(self) -> str:
        word = self.peek_word()
        if word and word not in "#;":
            return f"`{word[:LONGEST_SHOWN]}`"
        return "the end of the text" if self.at_end() else "the end of the line"


def hint(word: str, known: Iterable[str]) -> str:
    """Return which known word was probably meant, or all of them."""
    from difflib import get_close_matches

    by_letters = {name.lower(): name for name in sorted(known)}
    near = get_close_matches(word.lower(), by_letters, n=1)
    if near:
        return f"did you mean `{by_letters[near[0]]}`?"
    return f"write one of {', '.join(f'`{name}`' for name in by_letters.values())}"


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        rest = list(mapping)
        twice = next((key for (key, _), other in zip(pairs, rest, strict=False) if key != other), pairs[-1][0])
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
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_int=_integer)
