"""Masks secrets in everything that would be recorded or shown (S45).

A secret is found as it is and in its common encodings: reversed, hexadecimal, base32 and base64 at any alignment,
UTF-16, escaped for URLs, JSON, HTML or Python, and one of these within another; each of them in upper or lower case,
with punctuation in between, and in pieces over neighbouring values. Of a long secret, one half is enough; of a shorter
one, both halves anywhere in one value. Other transformations (a cipher, a compressed file, every second letter) are not
found: the linter forbids such flows, and this is the second line of defence.

All texts of a value are searched at once: joined, without punctuation. Small values, which are most, are filtered
first: every occurrence of eight characters covers four at a position that divides by four.
In large ones, `in` for each form is several times faster than one regular expression for all of them.
"""

from __future__ import annotations

import json
import re
import sys
from base64 import b32encode, b32hexencode, b64encode, urlsafe_b64encode
from collections.abc import Iterable, Iterator
from html import escape
from typing import Any, NamedTuple, TypeAlias
from unicodedata import normalize
from urllib.parse import quote, quote_plus

from noetlvm.data.encoding import MASK
from noetlvm.data.references import ReferringList, ReferringMap

SHORT = 4
"""Secrets with fewer characters are masked only where they are a whole value: `ab` is in every text."""
DISTINCT = 8
"""Forms with fewer letters and digits are masked only where they stand exactly so."""
LONG = 2 * DISTINCT
"""Of forms with as many letters and digits, half is masked too."""
PAIRED = 10
"""Of a secret with as many letters and digits, both halves are masked if they stand in one value. Halves of fewer than
five would be everyday words and numbers."""
VARIED = 5
"""Different characters that make a half with little but punctuation distinctive: a row of dashes is in many texts."""
_TWICE_BYTES = 256
"""Secrets that are longer are looked for in one encoding only: a key file or a certificate is found by its lines."""
_LINE = 16
"""Lines of a secret that are as long are secrets themselves: a private key may be shown line by line."""
_NUMBER_BITS = 128
_BLOCK = DISTINCT // 2
_SIFTED_BYTES = 4096

_BETWEEN = b"\xff"
"""Stands between texts. UTF-8 never has it."""
_IGNORED = bytes(byte for byte in range(128) if not chr(byte).isalnum()) + _BETWEEN
_SEARCHED = re.compile(rb"[0-9A-Za-z\x80-\xfe]+")
_LOWER = bytes(range(256)).lower()
_MASK = MASK.encode()

Span: TypeAlias = tuple[int, int]


class _Clue(NamedTuple):
    """A text to search for, and the form that it is a part of."""

    part: bytes
    whole: bytes
    offset: int


class Redactor:
    """Masks known secrets in values. Without secrets it costs nothing."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._known: set[str] = set()
        self._short: frozenset[bytes] = frozenset()
        self._exact: tuple[bytes, ...] = ()
        self._clues: tuple[_Clue, ...] = ()
        self._pairs: tuple[tuple[_Clue, _Clue], ...] = ()
        self._blocks: frozenset[int] = frozenset()
        """Every four bytes in a row of every clue, as numbers."""
        self.learn(secrets)

    def learn(self, secrets: Iterable[str]) -> None:
        """Mask these too, from now on."""
        new = {secret for secret in secrets if secret} - self._known
        if not new:
            return
        self._known |= new
        every = {form for secret in self._known if len(secret) >= SHORT for form in forms(secret)}
        distinct = {_plain(form) for form in every}
        self._clues = tuple({clue.part: clue for whole in sorted(distinct) for clue in _clues(whole)}.values())
        self._blocks = frozenset(block for clue in self._clues for block in _blocks_within(clue.part))
        self._pairs = tuple(pair for whole in sorted(distinct) for pair in _pair(whole))
        exact = {part for form in every for part in _exact_parts(form)}
        exact |= {form for secret in self._known if len(secret) >= SHORT for form in _exact_forms(secret)}
        self._exact = tuple(sorted(exact))
        self._short = frozenset(_bytes(secret) for secret in self._known if len(secret) < SHORT)

    def redact(self, value: Any) -> Any:
        """Return a value without secrets: itself, if there are none in it."""
        if not self._known:
            return value
        values: list[bytes] = []
        keys: list[bytes] = []
        try:
            _collect(value, values, keys)
        except RecursionError:
            return MASK  # what cannot be searched must not be recorded
        texts = values + keys
        masked = self._masked(texts)
        if masked is None:
            return value
        return _rebuilt(value, iter(masked[: len(values)]), iter(masked[len(values) :]))

    def _masked(self, texts: list[bytes]) -> list[bytes | None] | None:
        """Return the masked form of each text, None for one without a secret; or None if no text has one."""
        stream = _BETWEEN.join(texts)
        plain = _plain(stream)
        found = self._distinct_spans(plain) if self._may_hold(plain) else []
        found += self._paired_spans(plain)
        spans = _in_stream(stream, _merged(found)) if found else []
        if self._exact:
            spans += self._exact_spans(stream)
        if not self._short.isdisjoint(texts):
            spans += self._short_spans(texts)
        return _cut_all(texts, _merged(_of_characters(stream, spans))) if spans else None

    def _may_hold(self, plain: bytes) -> bool:
        """Return whether a value can contain a secret at all, by a cheap test."""
        if len(plain) > _SIFTED_BYTES:
            return True
        aligned = memoryview(plain)[: len(plain) // _BLOCK * _BLOCK].cast("I")
        return not self._blocks.isdisjoint(aligned)

    def _exact_spans(self, stream: bytes) -> Iterator[Span]:
        for form in self._exact:
            for start in _occurrences(form, stream):
                yield start, start + len(form)

    def _distinct_spans(self, plain: bytes) -> list[Span]:
        return [span for clue in self._clues if clue.part in plain for span in _spans(clue, plain)]

    def _paired_spans(self, plain: bytes) -> list[Span]:
        return [
            span
            for pair in self._pairs
            if pair[0].part in plain and pair[1].part in plain
            for clue in pair
            for span in _spans(clue, plain)
        ]

    def _short_spans(self, texts: list[bytes]) -> Iterator[Span]:
        start = 0
        for text in texts:
            if text in self._short:
                yield start, start + len(text)
            start += len(text) + len(_BETWEEN)


# ---- what a secret looks like


def forms(secret: str) -> set[bytes]:
    """Return the encodings of a secret that tools and templates produce."""
    data = _bytes(secret)
    encoded = {*_base64_forms(data), data.hex().encode(), data.hex().upper().encode()}
    escaped = {_bytes(text) for text in _escaped(secret, data)}
    once = {data, _bytes(secret[::-1]), *encoded, *escaped}
    alone = {*_base32_forms(data), *_wide_forms(secret), *_other_letters(secret), *_misread(data)}
    alone |= {_bytes(text) for text in _numbered(secret, data)}
    twice = {form for inner in once for form in _base64_forms(inner)}
    twice |= {form for inner in encoded for form in (inner.hex().encode(), inner[::-1], _bytes(quote(inner, safe="")))}
    twice |= {_bytes(quote(inner, safe="")) for inner in escaped}
    lines = {_bytes(line) for line in secret.splitlines() if len(line) >= _LINE and not line.startswith("-----")}
    return once | alone | lines | (twice if len(data) <= _TWICE_BYTES else set())


def _base64_forms(data: bytes) -> Iterator[bytes]:
    """Yield the characters that no neighbour of the secret changes, wherever it stands in what is encoded."""
    for before in range(3):
        first, end = -(-8 * before // 6), 8 * (before + len(data)) // 6
        for encode in (b64encode, urlsafe_b64encode):
            yield encode(bytes(before) + data + bytes(2))[first:end]


def _base32_forms(data: bytes) -> Iterator[bytes]:
    """Yield the characters of base32 that no neighbour of the secret changes, at each alignment."""
    for before in range(5):
        first, end = -(-8 * before // 5), 8 * (before + len(data)) // 5
        for encode in (b32encode, b32hexencode):
            yield encode(bytes(before) + data + bytes(4))[first:end]


def _wide_forms(secret: str) -> Iterator[bytes]:
    """Yield UTF-16 in both byte orders, also encoded, and read in the other order: other systems write text so."""
    for order, other in (("utf-16-le", "utf-16-be"), ("utf-16-be", "utf-16-le")):
        data = secret.encode(order, "surrogatepass")
        yield from (data, *_misread(data), data.hex().encode(), *_base64_forms(data))
        yield _bytes(data.decode(other, "surrogatepass"))


def _misread(data: bytes) -> Iterator[bytes]:
    """Yield bytes as they are recorded by what took each for a character, as browsers do: Windows-1252 has gaps."""
    yield _bytes(data.decode("latin-1"))
    yield _bytes("".join(bytes((byte,)).decode("cp1252", "ignore") or chr(byte) for byte in data))


def _other_letters(secret: str) -> Iterator[bytes]:
    """Yield other cases and compositions of letters that are not ASCII: of ASCII letters, any case is found."""
    if secret.isascii():
        return
    for changed in _cases(secret) | {normalize(form, secret) for form in ("NFC", "NFD", "NFKC", "NFKD")}:
        yield _bytes(changed)
        for ascii_only in (True, False):
            yield _bytes(json.dumps(changed, ensure_ascii=ascii_only)[1:-1])


def _escaped(secret: str, data: bytes) -> Iterator[str]:
    for quoted in (quote(data, safe=""), quote(data), quote_plus(data)):
        yield quoted
        yield re.sub("%..", lambda found: found[0].lower(), quoted)
    for ascii_only in (True, False):
        yield json.dumps(secret, ensure_ascii=ascii_only)[1:-1]
    yield escape(secret)
    yield repr(data)[2:-1]
    yield ascii(secret)[1:-1]


def _numbered(secret: str, data: bytes) -> Iterator[str]:
    """Yield the secret with the numbers of its characters or bytes, of all of them or of those that are not ASCII."""
    yield from ("".join(f"{mark}{byte:02x}" for byte in data) for mark in ("\\x", "0x"))
    for numbered in ("&#{};", "&#x{:x};", "\\u{:04x}"):
        yield "".join(numbered.format(ord(character)) for character in secret)
    if not secret.isascii():
        for numbered in ("&#{};", "&#x{:x};"):
            yield "".join(escape(one) if one.isascii() else numbered.format(ord(one)) for one in secret)


def _cases(secret: str) -> set[str]:
    return {secret.upper(), secret.lower(), secret.title(), secret.capitalize(), secret.swapcase()}


def _exact_forms(secret: str) -> Iterator[bytes]:
    """Yield a secret of few letters in other cases, and with its characters apart; one of many is found so anyway."""
    if len(_plain(_bytes(secret))) >= DISTINCT:
        return
    yield from map(_bytes, _cases(secret))
    if len(secret) >= DISTINCT and len(set(secret)) >= VARIED:
        for between in _SEPARATORS:
            yield between.join(map(_bytes, secret))


_SEPARATORS = (_BETWEEN, b" ", b"-", b"_", b",", b", ", b".", b":", b";", b"/", b"|", b"\n", b"\t")


def _clues(whole: bytes) -> Iterator[_Clue]:
    if len(whole) < DISTINCT:
        return
    if len(whole) < LONG:
        yield _Clue(whole, whole, 0)
        return
    middle = len(whole) // 2
    yield _Clue(whole[:middle], whole, 0)
    yield _Clue(whole[middle:], whole, middle)


def _exact_parts(form: bytes) -> Iterator[bytes]:
    """Yield what is searched for as it is: a form of few letters, and the halves of one that is long by punctuation."""
    letters = len(_plain(form))
    if letters < DISTINCT:
        yield form
    if letters < LONG <= len(form):
        middle = len(form) // 2
        yield from (half for half in (form[:middle], form[middle:]) if len(set(half)) >= VARIED)


def _pair(whole: bytes) -> Iterator[tuple[_Clue, _Clue]]:
    """Yield the beginning and the end of a form that is too short for each to be distinctive alone."""
    if PAIRED <= len(whole) < LONG:
        size = max(PAIRED // 2, len(whole) // 2 - 1)  # cut one character off the middle, and it is found all the same
        end = len(whole) - size
        if whole[:size] != whole[end:]:
            yield _Clue(whole[:size], whole, 0), _Clue(whole[end:], whole, end)


def _blocks_within(part: bytes) -> Iterator[int]:
    for start in range(len(part) - _BLOCK + 1):
        yield int.from_bytes(part[start : start + _BLOCK], sys.byteorder)


# ---- looking


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _plain(data: bytes) -> bytes:
    return data.translate(_LOWER, _IGNORED)


def _occurrences(part: bytes, data: bytes) -> Iterator[int]:
    start = data.find(part)
    while start >= 0:
        yield start
        start = data.find(part, start + 1)


def _spans(clue: _Clue, plain: bytes) -> Iterator[Span]:
    for start in _occurrences(clue.part, plain):
        yield _extended(clue, plain, start)


def _extended(clue: _Clue, plain: bytes, start: int) -> Span:
    """Return as much of the whole form as stands around an occurrence of its part."""
    end, before, after = start + len(clue.part), clue.offset, clue.offset + len(clue.part)
    while before and start and plain[start - 1] == clue.whole[before - 1]:
        start, before = start - 1, before - 1
    while after < len(clue.whole) and end < len(plain) and plain[end] == clue.whole[after]:
        end, after = end + 1, after + 1
    return start, end


def _merged(spans: Iterable[Span]) -> list[Span]:
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _of_characters(stream: bytes, spans: Iterable[Span]) -> Iterator[Span]:
    """Yield spans that begin and end between characters: forms may have the first bytes of one in common."""
    for start, end in spans:
        while start and stream[start] & 0xC0 == 0x80:
            start -= 1
        while end < len(stream) and stream[end] & 0xC0 == 0x80:
            end += 1
        yield start, end


def _in_stream(stream: bytes, spans: list[Span]) -> list[Span]:
    """Return where spans of the plain text are in the text that it was made from."""
    wanted = [position for start, end in spans for position in (start, end - 1)]
    found: list[int] = []
    passed = 0
    for run in _SEARCHED.finditer(stream):
        start, end = run.span()
        while len(found) < len(wanted) and wanted[len(found)] < passed + end - start:
            found.append(start + wanted[len(found)] - passed)
        if len(found) == len(wanted):
            break
        passed += end - start
    return [(start, last + 1) for start, last in zip(found[::2], found[1::2], strict=True)]


def _cut_all(texts: list[bytes], spans: list[Span]) -> list[bytes | None]:
    masked: list[bytes | None] = []
    start = at = 0
    for text in texts:
        end = start + len(text)
        while at < len(spans) and spans[at][1] <= start:
            at += 1
        touched = bool(text) and at < len(spans) and spans[at][0] < end
        masked.append(_cut(text, start, spans, at) if touched else None)
        start = end + len(_BETWEEN)
    return masked


def _cut(text: bytes, start: int, spans: list[Span], at: int) -> bytes:
    """Return one text with the spans from `at` on masked, as far as they are in it."""
    pieces: list[bytes] = []
    seen = 0
    while at < len(spans) and spans[at][0] < start + len(text):
        pieces += (text[seen : max(0, spans[at][0] - start)], _MASK)
        seen = spans[at][1] - start
        at += 1
    return b"".join((*pieces, text[seen:]))


# ---- values


def _collect(value: Any, values: list[bytes], keys: list[bytes]) -> None:
    """Gather the texts of a value in order; keys apart, so that neighbouring values are neighbours."""
    if isinstance(value, str):
        values.append(_bytes(value))
    elif isinstance(value, dict):
        # As it is stored: this must not load results that are references.
        for key, item in dict.items(value):
            if isinstance(key, str):
                keys.append(_bytes(key))
            _collect(item, values, keys)
    elif isinstance(value, list | tuple):
        for item in _stored(value):
            _collect(item, values, keys)
    elif _is_text_like(value):
        values.append(_as_text(value))


def _rebuilt(value: Any, values: Iterator[bytes | None], keys: Iterator[bytes | None]) -> Any:
    """Return a value with its texts replaced, in the order in which they were gathered."""
    if isinstance(value, str):
        masked = next(values)
        return value if masked is None else masked.decode("utf-8", "surrogatepass")
    if isinstance(value, dict):
        changed = {_rebuilt_key(key, keys): _rebuilt(item, values, keys) for key, item in dict.items(value)}
        return ReferringMap(changed, value.load) if isinstance(value, ReferringMap) else changed
    if isinstance(value, list | tuple):
        items = [_rebuilt(item, values, keys) for item in _stored(value)]
        if isinstance(value, ReferringList):
            return ReferringList(items, value.load)
        return tuple(items) if isinstance(value, tuple) else items
    if not _is_text_like(value):
        return value
    masked = next(values)
    if masked is None:
        return value
    return masked if isinstance(value, bytes | bytearray) else MASK


def _rebuilt_key(key: Any, keys: Iterator[bytes | None]) -> Any:
    masked = next(keys) if isinstance(key, str) else None
    return key if masked is None else masked.decode("utf-8", "surrogatepass")


def _stored(value: list[Any] | tuple[Any, ...]) -> Iterator[Any]:
    return list.__iter__(value) if isinstance(value, list) else iter(value)


def _is_text_like(value: Any) -> bool:
    """Return whether it is bytes, or a number that may be a secret."""
    if isinstance(value, int):
        return not isinstance(value, bool) and value.bit_length() <= _NUMBER_BITS
    return isinstance(value, float | bytes | bytearray)


def _as_text(value: Any) -> bytes:
    return bytes(value) if isinstance(value, bytes | bytearray) else str(value).encode()
