"""Looks for a secret in what a run left behind: the proof that redaction works.

It shares no code with the redactor, so that the two cannot be wrong together. Use a secret that occurs nowhere by
chance, of 16 characters or more.
"""

from __future__ import annotations

import base64
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, quote_plus

_NEAR = 200
"""Two halves of a secret with at most so many bytes between them are the secret, split."""
_NO_LETTERS = bytes(byte for byte in range(256) if byte >= 128 or not chr(byte).isalnum())
_SQLITE = b"SQLite format 3\x00"


class Hit(NamedTuple):
    """One place where a secret is."""

    form: str
    where: str
    offset: int


def find_canaries(artefact: Path | bytes, secret: str) -> list[Hit]:
    """Return every place of a folder, a file or some bytes where a secret is, in any of its forms."""
    return [
        Hit(form, where, offset)
        for where, data in _contents(artefact)
        for form, offset in (*_whole(data, secret), *_split(data, secret))
    ]


def _contents(artefact: Path | bytes) -> Iterator[tuple[str, bytes]]:
    if isinstance(artefact, bytes):
        yield "bytes", artefact
        return
    for path in sorted(artefact.rglob("*")) if artefact.is_dir() else [artefact]:
        if path.is_file():
            data = path.read_bytes()
            yield str(path), data
            if data.startswith(_SQLITE):
                yield from _rows(path)


def _rows(database: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the rows of a database: in the file, a long one is scattered over pages."""
    with closing(sqlite3.connect(f"file:{quote(str(database))}?mode=ro", uri=True)) as opened:
        opened.text_factory = bytes
        tables = [name.decode() for (name,) in opened.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        for table in tables:
            name = table.replace('"', '""')
            for number, row in enumerate(opened.execute(f'SELECT * FROM "{name}"')):
                cells = [cell if isinstance(cell, bytes) else str(cell).encode() for cell in row]
                yield f"{database}, row {number} of {table}", b"\n".join(cells)


def _whole(data: bytes, secret: str) -> Iterator[tuple[str, int]]:
    lowered = data.lower()
    for form, needle in _needles(secret):
        # Hexadecimal digits and escapes come in both cases.
        is_any_case = form.endswith(("hex", "url"))
        offset = lowered.find(needle.lower()) if is_any_case else data.find(needle)
        if offset >= 0:
            yield form, offset


def _needles(secret: str) -> Iterator[tuple[str, bytes]]:
    """Yield everything to look for, each under the plainest of its names."""
    once = [("raw", secret.encode()), *_encoded(secret)]
    twice = [(f"{form} in {outer}", found) for form, inner in once for outer, found in _encoded(inner.decode())]
    for needle, form in {needle: form for form, needle in reversed(once + twice)}.items():
        yield form, needle


def _encoded(secret: str) -> Iterator[tuple[str, bytes]]:
    raw = secret.encode()
    yield "reversed", secret[::-1].encode()
    yield "base32", base64.b32encode(raw).rstrip(b"=")[:-1]
    for order in ("utf-16-le", "utf-16-be"):
        yield "utf-16 hex", secret.encode(order).hex().encode()
        yield "utf-16 base64", base64.b64encode(secret.encode(order)).rstrip(b"=")[:-1]
    if not secret.isascii():
        yield "upper case", secret.upper().encode()
        yield "lower case", secret.lower().encode()
    yield "hex", raw.hex().encode()
    yield "hex", raw.hex().upper().encode()
    for text in (quote(secret, safe=""), quote(secret), quote_plus(secret), "".join(f"%{byte:02x}" for byte in raw)):
        yield "url", text.encode()
    for text in (json.dumps(secret), json.dumps(secret, ensure_ascii=False), json.dumps(json.dumps(secret)[1:-1])):
        yield "json", text[1:-1].encode()
    for before in (b"", b"x", b"xx"):
        encoded = base64.b64encode(before + raw)
        # The first and last characters depend on what stands around the secret.
        core = encoded.rstrip(b"=")[len(before) + (1 if before else 0) : -1]
        yield "base64", core
        yield "base64", core.replace(b"+", b"-").replace(b"/", b"_")


def _split(data: bytes, secret: str) -> Iterator[tuple[str, int]]:
    """Yield where the secret stands with something in between: between its halves, or all over."""
    raw = secret.encode()
    middle = len(raw) // 2
    first = data.find(raw[:middle])
    while first >= 0:
        end = first + middle
        if raw[middle:] in data[end + 1 : end + 1 + _NEAR + len(raw)]:
            yield "split", first
            break
        first = data.find(raw[:middle], first + 1)
    letters, wanted = _letters(data), _letters(raw)
    if raw not in data and wanted in letters:
        yield "split", letters.find(wanted)


def _letters(data: bytes) -> bytes:
    return data.translate(None, _NO_LETTERS)
