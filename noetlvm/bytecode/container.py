"""The container of a bundle: a header, then named sections. It knows nothing of what is in them.

Eight bytes of header: magic, format major and minor, instruction set, a reserved zero. Then one msgpack list of
sections, each `[id, optional, payload]`, in the order of `SECTIONS`; a section that this version does not know is
skipped if it is optional. A reader refuses a newer major version and reads any minor one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from noetlvm.bytecode.isa import ISA_VERSION
from noetlvm.bytecode.limits import BUNDLE_BYTES_MAX, SECTIONS_MAX
from noetlvm.bytecode.malformed import Fault
from noetlvm.bytecode.reader import Reader
from noetlvm.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterable

MAGIC = b"\x7fNBC"
FORMAT_MAJOR = 1
FORMAT_MINOR = 0
HEADER = MAGIC + bytes((FORMAT_MAJOR, FORMAT_MINOR, ISA_VERSION, 0))

DEBUG = "debug"
SECTIONS: dict[str, bool] = {
    "metadata": False,
    "constants": False,
    "expressions": False,
    "net": False,
    "pipelines": False,
    "keychain": False,
    "workload": False,
    DEBUG: True,
}
"""Every section in its order, and whether it may be missing."""

_CONTAINER = "container"


class Section(Record):
    """Where a section lies in a bundle."""

    id: str
    frame: tuple[int, int]
    """From its head to its end."""
    payload: tuple[int, int]


def frame(payloads: Iterable[tuple[str, bytes]]) -> bytes:
    """Make a bundle of sections, which come in their order."""
    from noetlvm.bytecode import writer

    frames = [
        writer.array([writer.text(id), writer.value(SECTIONS[id]), writer.block(payload)]) for id, payload in payloads
    ]
    return HEADER + writer.array(frames)


def sections(data: bytes) -> tuple[Section, ...]:
    """Find the sections of a bundle, unknown ones included, and check the header and the order of the known ones."""
    reader = Reader(data[: BUNDLE_BYTES_MAX + 1], _CONTAINER)
    _check_header(reader)
    count = reader.array("the list of sections")
    if count > SECTIONS_MAX:
        reader.fail(Fault.TOO_MUCH, f"a bundle has at most {SECTIONS_MAX} sections, not {count}", len(HEADER))
    found: dict[str, Section] = {}
    for _ in range(count):
        section = _section(reader, found)
        found[section.id] = section
    reader.close()
    missing = [id for id, optional in SECTIONS.items() if not optional and id not in found]
    if missing:
        reader.fail(Fault.SECTION_MISSING, f"the section `{missing[0]}` is missing")
    return tuple(found.values())


def bundle_id(data: bytes) -> str:
    """Return the id of a bundle: the SHA-256 of everything but the debug section."""
    from hashlib import sha256

    return sha256(data[: len(HEADER)] + b"".join(_frames_without_debug(data))).hexdigest()


def strip(data: bytes) -> bytes:
    """Return the bundle without its debug section. Its id stays the same."""
    from noetlvm.bytecode import writer

    return data[: len(HEADER)] + writer.array(_frames_without_debug(data))


def _frames_without_debug(data: bytes) -> list[bytes]:
    return [data[slice(*section.frame)] for section in sections(data) if section.id != DEBUG]


def _check_header(reader: Reader) -> None:
    data = reader.data
    if data[: len(MAGIC)] != MAGIC[: len(data)] or not data:
        reader.fail(Fault.NOT_A_BUNDLE, "a bundle begins with the bytes 7f 4e 42 43; was it made by `noetlc compile`?")
    if len(data) > BUNDLE_BYTES_MAX:
        reader.fail(Fault.TOO_LARGE, f"a bundle has at most {BUNDLE_BYTES_MAX} bytes")
    if len(data) < len(HEADER):
        reader.fail(Fault.TRUNCATED, "the bytes end inside the header", len(data))
    major, _minor, instructions, reserved = data[len(MAGIC) : len(HEADER)]
    if major != FORMAT_MAJOR:
        reader.fail(Fault.NEWER_FORMAT, _other_version("format", major, FORMAT_MAJOR), 4)
    if instructions != ISA_VERSION:
        reader.fail(Fault.NEWER_INSTRUCTIONS, _other_version("instruction set", instructions, ISA_VERSION), 6)
    if reserved:
        reader.fail(Fault.RESERVED, f"the header's last byte is reserved and zero, not {reserved}", 7)
    reader.at = len(HEADER)


def _other_version(what: str, theirs: int, ours: int) -> str:
    remedy = "upgrade to a version that does, or" if theirs > ours else "that version never was;"
    return f"the bundle has {what} {theirs}, and this version reads {ours}: {remedy} compile the playbook again"


def _section(reader: Reader, found: dict[str, Section]) -> Section:
    start = reader.at
    reader.record("a section", 3)
    at = reader.at
    id = reader.text("the id of a section")
    optional = reader.flag("whether a section is optional")
    payload = reader.block("the payload of a section")
    if id in found:
        reader.fail(Fault.SECTION_TWICE, f"the section `{id[:80]}` is there twice", at)
    if id not in SECTIONS:
        if not optional:
            reader.fail(Fault.SECTION_UNKNOWN, f"the section `{id[:80]}` is required and unknown to this version", at)
    elif optional is not SECTIONS[id]:
        reader.fail(Fault.SECTION_FLAG, f"the section `{id}` is {'required' if optional else 'optional'}", at)
    else:
        _check_order(reader, id, found, at)
    return Section(id, (start, reader.at), payload)


def _check_order(reader: Reader, id: str, found: dict[str, Section], at: int) -> None:
    order = list(SECTIONS)
    late = next((other for other in order[order.index(id) + 1 :] if other in found), None)
    if late:
        reader.fail(Fault.SECTION_ORDER, f"the section `{id}` comes before `{late}`", at)
