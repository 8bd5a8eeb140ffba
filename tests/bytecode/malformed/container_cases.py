"""What can be wrong with the header and the sections as such."""

from __future__ import annotations

from noetlvm.bytecode.limits import BUNDLE_BYTES_MAX
from noetlvm.bytecode.malformed import Fault
from tests.bytecode.malformed.pieces import (
    FALSE,
    GOOD,
    HEADER,
    NIL,
    PAYLOADS,
    TRUE,
    Case,
    Cases,
    array,
    array32,
    block,
    header,
    section,
    sections,
    text,
    u,
)

BODY = GOOD[len(HEADER) :]
GOOD_SECTIONS = sections()
ORDER = list(PAYLOADS)


def of(*framed: bytes) -> bytes:
    return HEADER + array(*framed)


def swapped(first: str, second: str) -> bytes:
    framed = dict(zip(ORDER, GOOD_SECTIONS, strict=True))
    framed[first], framed[second] = framed[second], framed[first]
    return of(*framed.values())


def without(id: str) -> bytes:
    return of(*(framed for name, framed in zip(ORDER, GOOD_SECTIONS, strict=True) if name != id))


def with_first(framed: bytes) -> bytes:
    """Another first section in place of the metadata."""
    return of(framed, *GOOD_SECTIONS[1:])


METADATA = PAYLOADS["metadata"]

HEADERS: Cases = {
    "nothing": Case(Fault.NOT_A_BUNDLE, b""),
    "a text file": Case(Fault.NOT_A_BUNDLE, b"apiVersion: noetl.io/v2\n"),
    "an ELF program": Case(Fault.NOT_A_BUNDLE, b"\x7fELF" + GOOD[4:]),
    "a zip file": Case(Fault.NOT_A_BUNDLE, b"PK\x03\x04" + GOOD[4:]),
    "magic with a wrong first byte": Case(Fault.NOT_A_BUNDLE, header(magic=b"\x00NBC") + BODY),
    "magic in small letters": Case(Fault.NOT_A_BUNDLE, header(magic=b"\x7fnbc") + BODY),
    "only msgpack": Case(Fault.NOT_A_BUNDLE, BODY),
    "a byte before the magic": Case(Fault.NOT_A_BUNDLE, b"\x00" + GOOD),
    "one byte of the magic": Case(Fault.TRUNCATED, b"\x7f"),
    "three bytes of the magic": Case(Fault.TRUNCATED, b"\x7fNB"),
    "only the magic": Case(Fault.TRUNCATED, b"\x7fNBC"),
    "no minor version": Case(Fault.TRUNCATED, HEADER[:5]),
    "no instruction set": Case(Fault.TRUNCATED, HEADER[:6]),
    "no reserved byte": Case(Fault.TRUNCATED, HEADER[:7]),
    "only the header": Case(Fault.TRUNCATED, HEADER),
    "format 0": Case(Fault.NEWER_FORMAT, header(major=0) + BODY),
    "format 2": Case(Fault.NEWER_FORMAT, header(major=2) + BODY),
    "format 255": Case(Fault.NEWER_FORMAT, header(major=255) + BODY),
    "newer format with unreadable rest": Case(Fault.NEWER_FORMAT, header(major=2) + b"\xc1"),
    "instruction set 0": Case(Fault.NEWER_INSTRUCTIONS, header(instructions=0) + BODY),
    "instruction set 2": Case(Fault.NEWER_INSTRUCTIONS, header(instructions=2) + BODY),
    "instruction set 255": Case(Fault.NEWER_INSTRUCTIONS, header(instructions=255) + BODY),
    "reserved 1": Case(Fault.RESERVED, header(reserved=1) + BODY),
    "reserved 255": Case(Fault.RESERVED, header(reserved=255) + BODY),
    "larger than the limit by a byte": Case(Fault.TOO_LARGE, lambda: GOOD.ljust(BUNDLE_BYTES_MAX + 1, b"\0")),
    "twice the limit": Case(Fault.TOO_LARGE, lambda: GOOD.ljust(2 * BUNDLE_BYTES_MAX, b"\0")),
    "as large as the limit, but padded": Case(Fault.LEFT_OVER, lambda: GOOD.ljust(BUNDLE_BYTES_MAX, b"\0")),
}

FRAMES: Cases = {
    "a byte after the sections": Case(Fault.LEFT_OVER, GOOD + b"\x00"),
    "the bundle twice": Case(Fault.LEFT_OVER, GOOD + GOOD),
    "a mapping of sections": Case(Fault.WRONG_TYPE, HEADER + b"\x80"),
    "null for the sections": Case(Fault.WRONG_TYPE, HEADER + NIL),
    "a text for the sections": Case(Fault.WRONG_TYPE, HEADER + text("metadata")),
    "a reserved msgpack byte for the sections": Case(Fault.FORBIDDEN_TYPE, HEADER + b"\xc1"),
    "no sections": Case(Fault.SECTION_MISSING, of()),
    "one section less than announced": Case(Fault.TRUNCATED, HEADER + b"\x99" + b"".join(GOOD_SECTIONS)),
    "one section more than announced": Case(Fault.LEFT_OVER, HEADER + b"\x97" + b"".join(GOOD_SECTIONS)),
    "padded number of sections": Case(Fault.PADDED_VALUE, HEADER + b"\xdc\x00\x08" + b"".join(GOOD_SECTIONS)),
    "doubly padded number of sections": Case(Fault.PADDED_VALUE, HEADER + array32(8) + b"".join(GOOD_SECTIONS)),
    "four thousand million sections": Case(Fault.TRUNCATED, HEADER + array32(2**32 - 1)),
    "more sections than the limit": Case(
        Fault.TOO_MUCH,
        HEADER + b"\xdc\x00\x41" + b"".join(section(f"x{number}", b"", TRUE) for number in range(65)),
    ),
    "a section that is no list": Case(Fault.WRONG_TYPE, with_first(text("metadata"))),
    "a section without a payload": Case(Fault.WRONG_LENGTH, with_first(array(text("metadata"), FALSE))),
    "a section with four fields": Case(
        Fault.WRONG_LENGTH, with_first(array(text("metadata"), FALSE, block(METADATA), NIL))
    ),
    "an empty section": Case(Fault.WRONG_LENGTH, with_first(array())),
    "a section's id is a number": Case(Fault.WRONG_TYPE, with_first(array(u(1), FALSE, block(METADATA)))),
    "a section's id is bytes": Case(Fault.WRONG_TYPE, with_first(array(block(b"metadata"), FALSE, block(METADATA)))),
    "a section's id is no UTF-8": Case(Fault.BAD_TEXT, with_first(array(b"\xa2\xc3\x28", FALSE, block(METADATA)))),
    "a section's flag is a number": Case(Fault.WRONG_TYPE, with_first(array(text("metadata"), u(0), block(METADATA)))),
    "a section's flag is null": Case(Fault.WRONG_TYPE, with_first(array(text("metadata"), NIL, block(METADATA)))),
    "a section's payload is not wrapped": Case(Fault.WRONG_TYPE, with_first(array(text("metadata"), FALSE, METADATA))),
    "a section's payload is a text": Case(Fault.WRONG_TYPE, with_first(array(text("metadata"), FALSE, text("x")))),
    "a payload with a padded length": Case(
        Fault.PADDED_VALUE,
        with_first(array(text("metadata"), FALSE, b"\xc5\x00" + bytes((len(METADATA),)) + METADATA)),
    ),
    "a payload with a doubly padded length": Case(
        Fault.PADDED_VALUE,
        with_first(array(text("metadata"), FALSE, b"\xc6\x00\x00\x00" + bytes((len(METADATA),)) + METADATA)),
    ),
    "a payload longer than the file": Case(
        Fault.TRUNCATED, with_first(array(text("metadata"), FALSE, b"\xc6\xff\xff\xff\xff" + METADATA))
    ),
    "a padded section id": Case(Fault.PADDED_VALUE, with_first(array(b"\xd9\x08metadata", FALSE, block(METADATA)))),
    "an unknown required section": Case(Fault.SECTION_UNKNOWN, of(*GOOD_SECTIONS, section("signature", b""))),
    "an unknown required section in front": Case(Fault.SECTION_UNKNOWN, of(section("zero", b""), *GOOD_SECTIONS)),
    "a known section misspelt": Case(Fault.SECTION_UNKNOWN, with_first(section("Metadata", METADATA))),
    "a section with an empty id": Case(Fault.SECTION_UNKNOWN, with_first(section("", METADATA))),
    "metadata twice": Case(Fault.SECTION_TWICE, of(GOOD_SECTIONS[0], *GOOD_SECTIONS)),
    "debug twice": Case(Fault.SECTION_TWICE, of(*GOOD_SECTIONS, GOOD_SECTIONS[-1])),
    "an unknown optional section twice": Case(
        Fault.SECTION_TWICE, of(*GOOD_SECTIONS, section("x", b"", TRUE), section("x", b"", TRUE))
    ),
    "debug that is required": Case(
        Fault.SECTION_FLAG, of(*GOOD_SECTIONS[:-1], section("debug", PAYLOADS["debug"], FALSE))
    ),
    "metadata that is optional": Case(Fault.SECTION_FLAG, with_first(section("metadata", METADATA, TRUE))),
    "workload that is optional": Case(
        Fault.SECTION_FLAG, of(*GOOD_SECTIONS[:6], section("workload", PAYLOADS["workload"], TRUE), GOOD_SECTIONS[7])
    ),
    "metadata after constants": Case(Fault.SECTION_ORDER, swapped("metadata", "constants")),
    "net after pipelines": Case(Fault.SECTION_ORDER, swapped("net", "pipelines")),
    "debug in front": Case(Fault.SECTION_ORDER, swapped("metadata", "debug")),
    "keychain after workload": Case(Fault.SECTION_ORDER, swapped("keychain", "workload")),
    "all in reverse": Case(Fault.SECTION_ORDER, of(*reversed(GOOD_SECTIONS))),
    **{f"without {id}": Case(Fault.SECTION_MISSING, without(id)) for id in ORDER if id != "debug"},
}


def _ends() -> list[int]:
    """Where each section begins, and where its id, its flag and its payload's head end."""
    places: list[int] = []
    at = len(HEADER) + 1
    for id, framed in zip(ORDER, GOOD_SECTIONS, strict=True):
        after_id = at + 2 + len(id)
        places += [at, at + 1, after_id, after_id + 1, after_id + 3]
        at += len(framed)
    return places


CUTS: Cases = {f"cut after {place} bytes": Case(Fault.TRUNCATED, GOOD[:place], "container") for place in _ends()}
CUTS["cut before the last byte"] = Case(Fault.TRUNCATED, GOOD[:-1], "container")

CASES: Cases = HEADERS | FRAMES | CUTS
