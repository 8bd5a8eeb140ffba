"""Bundles that are small on disk and want to be large in memory."""

from __future__ import annotations

import struct

from noetlvm.bytecode.codec.malformed import MalformedCode
from noetlvm.bytecode.limits import CODE_BYTES_MAX
from tests.noetlvm.bytecode.malformed.pieces import (
    CONST,
    HEADER,
    JUMP,
    NOT,
    Case,
    Cases,
    array,
    array32,
    binary,
    bundle,
    debug,
    leb,
    of,
    section,
    sections,
    with_marks,
    with_value,
)

MANY = 10_000_000


def long_text(value: bytes) -> bytes:
    return struct.pack(">BI", 0xDB, len(value)) + value


def expressions_of(codes: list[bytes]) -> bytes:
    return bundle(expressions=b"".join(map(binary, codes)))


def jumps(targets: range) -> bytes:
    """Code that jumps to each of these."""
    return b"\x00" + b"".join(
        bytes((JUMP, target & 0x7F | 0x80, target >> 7 & 0x7F | 0x80, 1 + (target >> 14))) for target in targets
    )


CASES: Cases = {
    "ten million empty lists": Case(MalformedCode.TOO_MUCH, lambda: with_value(array32(MANY) + b"\x90" * MANY)),
    "ten million empty mappings": Case(MalformedCode.TOO_MUCH, lambda: with_value(array32(MANY) + b"\x80" * MANY)),
    "ten million nulls": Case(MalformedCode.TOO_MUCH, lambda: with_value(array32(MANY) + b"\xc0" * MANY)),
    "ten million empty constants": Case(MalformedCode.CONSTANT_TWICE, lambda: bundle(constants=b"\x90" * MANY)),
    "a million small constants": Case(
        MalformedCode.TOO_MUCH,
        lambda: bundle(
            constants=b"".join(b"\xce%c%c%c%c" % (1, *number.to_bytes(3, "big")) for number in range(1_000_000))
        ),
    ),
    "ten million playbooks": Case(MalformedCode.TOO_MUCH, lambda: bundle(net=b"\x90" * MANY)),
    "five million empty pipelines": Case(
        MalformedCode.TOO_MUCH, lambda: bundle(pipelines=b"\xc4\x01\x00" * (MANY // 2))
    ),
    "ten million files": Case(
        MalformedCode.TOO_MUCH, lambda: bundle(debug=debug(files=array32(MANY) + b"\xa0" * MANY))
    ),
    "lists of fifteen empty lists": Case(
        MalformedCode.TOO_MUCH, lambda: with_value(array32(600_000) + (b"\x9f" + b"\x90" * 15) * 600_000)
    ),
    "many lists of fifteen empty lists, each list announced small": Case(
        MalformedCode.TOO_MUCH, lambda: with_value(array32(100_000) + (b"\x9f" + b"\x90" * 15) * 100_000)
    ),
    "many mappings of one pair": Case(
        MalformedCode.TOO_MUCH, lambda: with_value(array32(300_000) + b"\x81\xa1a\x90" * 300_000)
    ),
    "a million short texts": Case(
        MalformedCode.TOO_MUCH, lambda: with_value(array32(1_000_000) + b"\xa2ab" * 1_000_000)
    ),
    "wide characters that make long texts four times as long": Case(
        MalformedCode.TOO_MUCH,
        lambda: with_value(array(*[long_text("😀".encode() + b"x" * 2_000_000)] * 7)),
    ),
    "half a million different jumps": Case(
        MalformedCode.TOO_MUCH,
        lambda: expressions_of([jumps(range(at, at + 60_000)) for at in range(0, 480_000, 60_000)]),
    ),
    "much code of one instruction": Case(
        MalformedCode.TOO_MUCH,
        lambda: expressions_of(
            [bytes((number, CONST, 0)) + bytes((NOT,)) * (CODE_BYTES_MAX - 9) for number in range(15)]
        ),
    ),
    "ten million marks for little code": Case(MalformedCode.LEFT_OVER, lambda: with_marks(b"\x00" * MANY), "debug"),
    "a huge section that nobody knows": Case(
        MalformedCode.SECTION_UNKNOWN, lambda: of(*sections(), section(16, b"\x90" * MANY))
    ),
    "a million sections": Case(MalformedCode.TOO_MUCH, lambda: HEADER + leb(1_000_000) + section(17, b"") * 1_000_000),
    "a payload of 4 GiB in a file of few bytes": Case(
        MalformedCode.TRUNCATED, HEADER + leb(1) + leb(17) + leb(2**32 - 1)
    ),
}
