"""What can be wrong with the header and the sections as such."""

from __future__ import annotations

from noetlvm.bytecode.codec.malformed import MalformedCode
from noetlvm.bytecode.limits import BUNDLE_BYTES_MAX
from tests.noetlvm.bytecode.malformed.pieces import (
    GOOD,
    HEADER,
    PAYLOADS,
    Case,
    Cases,
    block,
    bundle,
    header,
    leb,
    of,
    sealed,
    section,
    sections,
)

BODY = GOOD[len(HEADER) :]
GOOD_SECTIONS = sections()
ORDER = list(PAYLOADS)


def swapped(first: str, second: str) -> bytes:
    framed = dict(zip(ORDER, GOOD_SECTIONS, strict=True))
    framed[first], framed[second] = framed[second], framed[first]
    return of(*framed.values())


def without(id: str) -> bytes:
    return of(*(framed for name, framed in zip(ORDER, GOOD_SECTIONS, strict=True) if name != id))


def with_first(framed: bytes) -> bytes:
    """Another first section in place of the metadata."""
    return of(framed, *GOOD_SECTIONS[1:])


def padded(number: bytes) -> bytes:
    """The same number, written with a group more."""
    return number[:-1] + bytes((number[-1] | 0x80, 0))


METADATA = PAYLOADS["metadata"]

HEADERS: Cases = {
    "nothing": Case(MalformedCode.NOT_A_BUNDLE, b""),
    "a text file": Case(MalformedCode.NOT_A_BUNDLE, b"apiVersion: noetl.io/v2\n"),
    "an ELF program": Case(MalformedCode.NOT_A_BUNDLE, b"\x7fELF" + GOOD[4:]),
    "a zip file": Case(MalformedCode.NOT_A_BUNDLE, b"PK\x03\x04" + GOOD[4:]),
    "magic with a wrong first byte": Case(MalformedCode.NOT_A_BUNDLE, header(magic=b"\x00NBC") + BODY),
    "magic in small letters": Case(MalformedCode.NOT_A_BUNDLE, header(magic=b"\x7fnbc") + BODY),
    "only msgpack": Case(MalformedCode.NOT_A_BUNDLE, BODY),
    "a byte before the magic": Case(MalformedCode.NOT_A_BUNDLE, b"\x00" + GOOD),
    "one byte of the magic": Case(MalformedCode.TRUNCATED, b"\x7f"),
    "three bytes of the magic": Case(MalformedCode.TRUNCATED, b"\x7fNB"),
    "only the magic": Case(MalformedCode.TRUNCATED, b"\x7fNBC"),
    "no minor version": Case(MalformedCode.TRUNCATED, HEADER[:5]),
    "no instruction set": Case(MalformedCode.TRUNCATED, HEADER[:6]),
    "no reserved byte": Case(MalformedCode.TRUNCATED, HEADER[:7]),
    "only the header": Case(MalformedCode.TRUNCATED, HEADER),
    "format 0": Case(MalformedCode.NEWER_FORMAT, header(major=0) + BODY),
    "format 1": Case(MalformedCode.NEWER_FORMAT, header(major=1) + BODY),
    "format 2": Case(MalformedCode.NEWER_FORMAT, header(major=2) + BODY),
    "format 3": Case(MalformedCode.NEWER_FORMAT, header(major=3) + BODY),
    "format 255": Case(MalformedCode.NEWER_FORMAT, header(major=255) + BODY),
    "newer format with unreadable rest": Case(MalformedCode.NEWER_FORMAT, header(major=6) + b"\xc1"),
    "instruction set 0": Case(MalformedCode.NEWER_INSTRUCTIONS, header(instructions=0) + BODY),
    "instruction set 1": Case(MalformedCode.NEWER_INSTRUCTIONS, header(instructions=1) + BODY),
    "instruction set 255": Case(MalformedCode.NEWER_INSTRUCTIONS, header(instructions=255) + BODY),
    "reserved 1": Case(MalformedCode.RESERVED, header(reserved=1) + BODY),
    "reserved 255": Case(MalformedCode.RESERVED, header(reserved=255) + BODY),
    "format 5 without a length of the checksum": Case(MalformedCode.RESERVED, header(major=5) + BODY),
    "a checksum in format 4": Case(MalformedCode.RESERVED, sealed(GOOD)[:4] + b"\x04" + sealed(GOOD)[5:]),
    "larger than the limit by a byte": Case(MalformedCode.TOO_LARGE, lambda: GOOD.ljust(BUNDLE_BYTES_MAX + 1, b"\0")),
    "twice the limit": Case(MalformedCode.TOO_LARGE, lambda: GOOD.ljust(2 * BUNDLE_BYTES_MAX, b"\0")),
    "as large as the limit, but padded": Case(MalformedCode.LEFT_OVER, lambda: GOOD.ljust(BUNDLE_BYTES_MAX, b"\0")),
}

CHECKSUMS: Cases = {
    "no checksum": Case(MalformedCode.CHECKSUM, sealed(GOOD)[:-32]),
    "half a checksum": Case(MalformedCode.CHECKSUM, sealed(GOOD)[:-16]),
    "only the header of format 5": Case(MalformedCode.CHECKSUM, sealed(GOOD)[: len(HEADER)]),
    "a byte after the checksum": Case(MalformedCode.CHECKSUM, sealed(GOOD) + b"\0"),
    "the checksum of another bundle": Case(
        MalformedCode.CHECKSUM, sealed(GOOD)[:-32] + sealed(bundle(debug=b""))[-32:]
    ),
    "undecodable bytes with another checksum": Case(MalformedCode.CHECKSUM, sealed(bundle(net=b"\xc1"))[:-1] + b"\0"),
}

FRAMES: Cases = {
    "a byte after the sections": Case(MalformedCode.LEFT_OVER, GOOD + b"\x00"),
    "the bundle twice": Case(MalformedCode.LEFT_OVER, GOOD + GOOD),
    "no sections": Case(MalformedCode.SECTION_MISSING, of()),
    "one section less than announced": Case(MalformedCode.TRUNCATED, HEADER + leb(9) + b"".join(GOOD_SECTIONS)),
    "one section more than announced": Case(MalformedCode.LEFT_OVER, HEADER + leb(7) + b"".join(GOOD_SECTIONS)),
    "padded number of sections": Case(MalformedCode.PADDED_VALUE, HEADER + b"\x88\x00" + b"".join(GOOD_SECTIONS)),
    "doubly padded number of sections": Case(
        MalformedCode.PADDED_VALUE, HEADER + b"\x88\x80\x00" + b"".join(GOOD_SECTIONS)
    ),
    "half a number of sections": Case(MalformedCode.TRUNCATED, HEADER + b"\x88"),
    "four thousand million sections": Case(MalformedCode.TOO_MUCH, HEADER + leb(2**32 - 1)),
    "more sections than any number": Case(MalformedCode.OUT_OF_RANGE, HEADER + leb(2**32)),
    "a number of sections without an end": Case(MalformedCode.OUT_OF_RANGE, HEADER + b"\xff" * 20),
    "more sections than the limit": Case(
        MalformedCode.TOO_MUCH, HEADER + leb(65) + b"".join(section(2 * number + 1, b"") for number in range(65))
    ),
    "a section without a length": Case(MalformedCode.TRUNCATED, HEADER + b"\x01\x02"),
    "a section without a payload": Case(MalformedCode.TRUNCATED, HEADER + b"\x01\x02" + leb(len(METADATA))),
    "a section's payload is not led by its length": Case(MalformedCode.TRUNCATED, with_first(b"\x02" + METADATA)),
    "a padded length": Case(MalformedCode.PADDED_VALUE, with_first(b"\x02" + padded(leb(len(METADATA))) + METADATA)),
    "a doubly padded length": Case(
        MalformedCode.PADDED_VALUE, with_first(b"\x02" + padded(padded(leb(len(METADATA)))) + METADATA)
    ),
    "half a length": Case(MalformedCode.TRUNCATED, HEADER + b"\x01\x02\x80"),
    "a payload longer than the file": Case(MalformedCode.TRUNCATED, with_first(b"\x02" + leb(2**32 - 1) + METADATA)),
    "a payload longer than any number": Case(MalformedCode.OUT_OF_RANGE, with_first(b"\x02" + leb(2**32) + METADATA)),
    "a length without an end": Case(MalformedCode.OUT_OF_RANGE, with_first(b"\x02" + b"\xff" * 20 + METADATA)),
    "a padded section number": Case(MalformedCode.PADDED_VALUE, with_first(padded(b"\x02") + block(METADATA))),
    "half a section number": Case(MalformedCode.TRUNCATED, HEADER + b"\x01\x82"),
    "a section number past 32 bits": Case(MalformedCode.OUT_OF_RANGE, with_first(section(2**32, METADATA))),
    "an unknown required section": Case(MalformedCode.SECTION_UNKNOWN, of(*GOOD_SECTIONS, section(16, b"x"))),
    "an unknown required section in front": Case(MalformedCode.SECTION_UNKNOWN, of(section(0, b""), *GOOD_SECTIONS)),
    "an unknown required section of many bits": Case(
        MalformedCode.SECTION_UNKNOWN, of(*GOOD_SECTIONS, section(2**32 - 2, b""))
    ),
    "metadata as an unknown section": Case(MalformedCode.SECTION_MISSING, with_first(section(1, METADATA))),
    "metadata twice": Case(MalformedCode.SECTION_TWICE, of(GOOD_SECTIONS[0], *GOOD_SECTIONS)),
    "debug twice": Case(MalformedCode.SECTION_TWICE, of(*GOOD_SECTIONS, GOOD_SECTIONS[-1])),
    "an unknown optional section twice": Case(
        MalformedCode.SECTION_TWICE, of(*GOOD_SECTIONS, section(17, b""), section(17, b""))
    ),
    "debug that is required": Case(
        MalformedCode.SECTION_UNKNOWN, of(*GOOD_SECTIONS[:-1], section(16, PAYLOADS["debug"]))
    ),
    "net that is optional": Case(
        MalformedCode.SECTION_MISSING, of(*GOOD_SECTIONS[:3], section(9, PAYLOADS["net"]), *GOOD_SECTIONS[4:])
    ),
    "metadata after constants": Case(MalformedCode.SECTION_ORDER, swapped("metadata", "constants")),
    "net after pipelines": Case(MalformedCode.SECTION_ORDER, swapped("net", "pipelines")),
    "debug in front": Case(MalformedCode.SECTION_ORDER, swapped("metadata", "debug")),
    "keychain after workload": Case(MalformedCode.SECTION_ORDER, swapped("keychain", "workload")),
    "all in reverse": Case(MalformedCode.SECTION_ORDER, of(*reversed(GOOD_SECTIONS))),
    "an unknown optional section out of its order": Case(
        MalformedCode.SECTION_ORDER, of(*GOOD_SECTIONS, section(3, b""))
    ),
    "unknown optional sections in the wrong order": Case(
        MalformedCode.SECTION_ORDER, of(*GOOD_SECTIONS, section(19, b""), section(17, b""))
    ),
    "without metadata": Case(MalformedCode.SECTION_MISSING, without("metadata")),
    "without net": Case(MalformedCode.SECTION_MISSING, without("net")),
    "without constants": Case(MalformedCode.SECTION_MISSING, without("constants")),
    "without expressions": Case(MalformedCode.CONSTANT_ORDER, without("expressions"), "pipelines"),
    "without pipelines": Case(MalformedCode.CONSTANT_ORDER, without("pipelines"), "net"),
}


def _ends() -> list[int]:
    """Where each section begins, and where its number, its length and its first byte end."""
    places: list[int] = []
    at = len(HEADER) + 1
    for framed in GOOD_SECTIONS:
        places += [at, at + 1, at + 2, at + 3]
        at += len(framed)
    return places


CUTS: Cases = {
    f"cut after {place} bytes": Case(MalformedCode.TRUNCATED, GOOD[:place], "container") for place in _ends()
}
CUTS["cut before the last byte"] = Case(MalformedCode.TRUNCATED, GOOD[:-1], "container")

CASES: Cases = HEADERS | CHECKSUMS | FRAMES | CUTS
