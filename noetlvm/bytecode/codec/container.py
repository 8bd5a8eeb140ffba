"""The container of a bundle: a header, numbered sections, a checksum. It is independent of the sections' contents.

Eight bytes of header: magic, format major and minor, instruction set, length of the checksum. Then the number of
sections, so that a bundle that was cut short is never a good one, and for each its number, its length and its payload,
the former in LEB128. Sections stand in the order of their numbers. One that holds nothing is left out, and one that
this version does not know is skipped if its number is odd. The last bytes are the SHA-256 of all bytes before them.

A reader reads format 4, which has no checksum, and any minor version.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256

from noetlvm.bytecode.codec import writer
from noetlvm.bytecode.codec.malformed import MalformedCode
from noetlvm.bytecode.codec.reader import ByteReader
from noetlvm.bytecode.isa import ISA_VERSION
from noetlvm.bytecode.limits import BUNDLE_BYTES_MAX, SECTIONS_MAX
from noetlvm.record import Record

MAGIC = b"\x7fNBC"
FORMAT_MAJOR = 5
FORMAT_MINOR = 0
CHECKSUM_BYTES = {4: 0, FORMAT_MAJOR: 32}
"""By major version that is read: the length of the checksum."""
HEADER = MAGIC + bytes((FORMAT_MAJOR, FORMAT_MINOR, ISA_VERSION, CHECKSUM_BYTES[FORMAT_MAJOR]))

DEBUG = "debug"
SECTIONS: dict[str, int] = {
    "metadata": 2,
    "constants": 4,
    "expressions": 6,
    "net": 8,
    "pipelines": 10,
    "keychain": 12,
    "workload": 14,
    DEBUG: 15,
}
"""The number of every section. An odd one is optional: a reader that does not support it skips it."""

REQUIRED = ("metadata", "constants", "net")
"""Sections that every bundle has; any other is left out where it would be empty."""

_CONTAINER = "container"
_NAMES = {number: id for id, number in SECTIONS.items()}


class Section(Record):
    """Where a section lies in a bundle."""

    id: str
    """Its name, or `#` and its number if this version does not support it."""
    frame: tuple[int, int]
    """From its head to its end."""
    payload: tuple[int, int]


def frame(payloads: Iterable[tuple[str, bytes]]) -> bytes:
    """Make a bundle of sections, which come in their order."""
    return _joined(HEADER, [writer.count(SECTIONS[id]) + writer.block(payload) for id, payload in payloads])


def sections(data: bytes) -> tuple[Section, ...]:
    """Find the sections of a bundle, unknown ones included; check header, checksum and the order of the known ones."""
    reader = ByteReader(data[: BUNDLE_BYTES_MAX + 1], _CONTAINER)
    _check_header(reader)
    _check_sum(reader)
    count = reader.count("the number of sections")
    if count > SECTIONS_MAX:
        reader.fail(MalformedCode.TOO_MUCH, f"a bundle has at most {SECTIONS_MAX} sections, not {count}", len(HEADER))
    found: dict[int, Section] = {}
    for _ in range(count):
        _find_section(reader, found)
    reader.close()
    missing = [id for id in REQUIRED if SECTIONS[id] not in found]
    if missing:
        reader.fail(MalformedCode.SECTION_MISSING, f"the section `{missing[0]}` is missing")
    return tuple(found.values())


def checksum(data: bytes) -> str | None:
    """Return the checksum of a bundle that `sections` accepts; None for a format without one."""
    length = data[len(HEADER) - 1]
    return data[-length:].hex() if length else None


def bundle_id(data: bytes) -> str:
    """Return the id of a bundle: the SHA-256 of everything but the debug section and the checksum.

    The header counts as that of format 4, so that a program has the same id in both formats.
    """
    frames = _frames_without_debug(data)
    major, length = len(MAGIC), len(HEADER) - 1
    return sha256(data[:major] + b"\4" + data[major + 1 : length] + b"\0" + b"".join(frames)).hexdigest()


def strip(data: bytes) -> bytes:
    """Return the bundle without its debug section. Its id stays the same."""
    return _joined(data[: len(HEADER)], _frames_without_debug(data))


def _joined(header: bytes, frames: list[bytes]) -> bytes:
    """Return a bundle of framed sections, with the checksum that its header announces."""
    data = header + writer.count(len(frames)) + b"".join(frames)
    return data + sha256(data).digest()[: header[-1]]


def _frames_without_debug(data: bytes) -> list[bytes]:
    return [data[slice(*section.frame)] for section in sections(data) if section.id != DEBUG]


def _check_header(reader: ByteReader) -> None:
    data = reader.data
    if data[: len(MAGIC)] != MAGIC[: len(data)] or not data:
        reader.fail(
            MalformedCode.NOT_A_BUNDLE, "a bundle begins with the bytes 7f 4e 42 43; was it made by `noetlc compile`?"
        )
    if len(data) > BUNDLE_BYTES_MAX:
        reader.fail(MalformedCode.TOO_LARGE, f"a bundle has at most {BUNDLE_BYTES_MAX} bytes")
    if len(data) < len(HEADER):
        reader.fail(MalformedCode.TRUNCATED, "the bytes end inside the header", len(data))
    major, _minor, instructions, length = data[len(MAGIC) : len(HEADER)]
    if major not in CHECKSUM_BYTES:
        reader.fail(MalformedCode.NEWER_FORMAT, _other_version("format", major, [*CHECKSUM_BYTES]), 4)
    if instructions != ISA_VERSION:
        reader.fail(MalformedCode.NEWER_INSTRUCTIONS, _other_version("instruction set", instructions, [ISA_VERSION]), 6)
    if length != CHECKSUM_BYTES[major]:
        wanted = f"{CHECKSUM_BYTES[major]} in format {major}"
        reader.fail(MalformedCode.RESERVED, f"the header's last byte is {wanted}, not {length}", 7)


def _check_sum(reader: ByteReader) -> None:
    """Refuse a bundle whose bytes changed after it was made, before any of them is decoded."""
    data, length = reader.data, reader.data[len(HEADER) - 1]
    end = max(len(data) - length, len(HEADER))
    if length and sha256(data[:end]).digest() != data[end:]:
        reader.fail(
            MalformedCode.CHECKSUM,
            "the checksum does not match: the file was changed or cut off after it was made; copy it again, or "
            "compile the playbook again",
            end,
        )
    reader.open(_CONTAINER, 0, end)
    reader.at = len(HEADER)


def _other_version(what: str, theirs: int, ours: list[int]) -> str:
    remedy = "upgrade to a version that does, or " if theirs > max(ours) else ""
    read = " and ".join(map(str, ours))
    return f"the bundle has {what} {theirs}, and this version reads {read}: {remedy}compile the playbook again"


def _find_section(reader: ByteReader, found: dict[int, Section]) -> None:
    start = reader.at
    number = reader.count("the number of a section")
    id = _NAMES.get(number, f"#{number}")
    if number in found:
        reader.fail(MalformedCode.SECTION_TWICE, f"the section `{id}` is there twice", start)
    if number not in _NAMES and number % 2 == 0:
        reader.fail(MalformedCode.SECTION_UNKNOWN, f"the section `{id}` is required and unknown to this version", start)
    late = next((other.id for known, other in found.items() if known > number), None)
    if late:
        reader.fail(MalformedCode.SECTION_ORDER, f"the section `{id}` comes before `{late}`", start)
    payload = reader.block("the length of a section")
    found[number] = Section(id, (start, reader.at), payload)
