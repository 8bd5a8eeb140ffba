"""What can be wrong with a value, wherever it stands; here it stands in the workload."""

from __future__ import annotations

import struct

from noetlvm.bytecode.codec.malformed import MalformedCode
from noetlvm.bytecode.limits import BIG_INTEGER_CHARS_MAX, DEPTH_MAX, TEXT_BYTES_MAX
from tests.noetlvm.bytecode.malformed.pieces import (
    NIL,
    Case,
    Cases,
    array,
    array32,
    binary,
    bundle,
    mapping,
    text,
    u,
    with_value,
)


def value(fault: MalformedCode, data: bytes) -> Case:
    return Case(fault, with_value(data), "workload")


def big(digits: bytes) -> bytes:
    """An integer beyond 64 bits, in digits."""
    if len(digits) < 256:
        return struct.pack(">BBb", 0xC7, len(digits), 1) + digits
    return struct.pack(">BHb", 0xC8, len(digits), 1) + digits


PADDED: Cases = {
    name: value(MalformedCode.PADDED_VALUE, data)
    for name, data in {
        "0 as uint8": b"\xcc\x00",
        "127 as uint8": b"\xcc\x7f",
        "128 as uint16": b"\xcd\x00\x80",
        "255 as uint16": b"\xcd\x00\xff",
        "256 as uint32": b"\xce\x00\x00\x01\x00",
        "65535 as uint32": b"\xce\x00\x00\xff\xff",
        "65536 as uint64": b"\xcf\x00\x00\x00\x00\x00\x01\x00\x00",
        "2**32 - 1 as uint64": b"\xcf\x00\x00\x00\x00\xff\xff\xff\xff",
        "1 as int8": b"\xd0\x01",
        "-1 as int8": b"\xd0\xff",
        "-32 as int8": b"\xd0\xe0",
        "128 as int16": b"\xd1\x00\x80",
        "-33 as int16": b"\xd1\xff\xdf",
        "-128 as int16": b"\xd1\xff\x80",
        "-129 as int32": b"\xd2\xff\xff\xff\x7f",
        "-32768 as int32": b"\xd2\xff\xff\x80\x00",
        "-32769 as int64": b"\xd3\xff\xff\xff\xff\xff\xff\x7f\xff",
        "2**40 as int64": b"\xd3\x00\x00\x01\x00\x00\x00\x00\x00",
        "an empty text as str8": b"\xd9\x00",
        "a text of 31 bytes as str8": b"\xd9\x1f" + b"x" * 31,
        "a text of 32 bytes as str16": b"\xda\x00\x20" + b"x" * 32,
        "a text of 255 bytes as str16": b"\xda\x00\xff" + b"x" * 255,
        "a text of 256 bytes as str32": b"\xdb\x00\x00\x01\x00" + b"x" * 256,
        "an empty list as array16": b"\xdc\x00\x00",
        "a list of 15 as array16": b"\xdc\x00\x0f" + b"\x00" * 15,
        "a list of 16 as array32": array32(16) + b"\x00" * 16,
        "an empty mapping as map16": b"\xde\x00\x00",
        "a mapping of one as map16": b"\xde\x00\x01\xa1a\x00",
        "a mapping of one as map32": b"\xdf\x00\x00\x00\x01\xa1a\x00",
    }.items()
}

FORBIDDEN: Cases = {
    name: value(MalformedCode.FORBIDDEN_TYPE, data)
    for name, data in {
        "the unused byte of msgpack": b"\xc1",
        "a float of 32 bits": b"\xca\x3f\x80\x00\x00",
        "fixext 1": b"\xd4\x01\x00",
        "fixext 2": b"\xd5\x01\x00\x00",
        "fixext 4, a timestamp": b"\xd6\xff\x00\x00\x00\x00",
        "fixext 8, a timestamp": b"\xd7\xff" + b"\x00" * 8,
        "fixext 16": b"\xd8\x01" + b"1" * 16,
        "ext 8 of type 0": b"\xc7\x14\x00" + b"1" * 20,
        "ext 8 of type 2": b"\xc7\x14\x02" + b"1" * 20,
        "ext 8 of type -1": b"\xc7\x0c\xff" + b"\x00" * 12,
        "ext 32": b"\xc9\x00\x00\x00\x14\x01" + b"1" * 20,
    }.items()
}

TYPES: Cases = {
    "bytes as a value": value(MalformedCode.WRONG_TYPE, binary(b"abc")),
    "bytes in a list": value(MalformedCode.WRONG_TYPE, array(binary(b""))),
    "a number as a key": value(MalformedCode.WRONG_TYPE, mapping(u(1), u(2))),
    "null as a key": value(MalformedCode.WRONG_TYPE, mapping(NIL, u(2))),
    "true as a key": value(MalformedCode.WRONG_TYPE, mapping(b"\xc3", u(2))),
    "bytes as a key": value(MalformedCode.WRONG_TYPE, mapping(binary(b"a"), u(2))),
    "a list as a key": value(MalformedCode.WRONG_TYPE, mapping(array(), u(2))),
    "a large integer as a key": value(MalformedCode.WRONG_TYPE, mapping(big(b"1" * 20), u(2))),
}

TEXTS: Cases = {
    name: value(MalformedCode.BAD_TEXT, bytes((0xA0 + len(raw),)) + raw)
    for name, raw in {
        "a lone continuation byte": b"\x80",
        "a lone lead byte": b"a\xc3",
        "an overlong slash": b"\xc0\xaf",
        "an overlong null": b"\xe0\x80\x80",
        "a surrogate": b"\xed\xa0\x80",
        "a pair of surrogates": b"\xed\xa0\xbd\xed\xb8\x80",
        "past the last character": b"\xf4\x90\x80\x80",
        "the byte ff": b"\xff",
        "Latin-1": b"caf\xe9",
    }.items()
}
TEXTS |= {
    "a key that is no UTF-8": value(MalformedCode.BAD_TEXT, mapping(b"\xa1\xff", u(1))),
    "a text longer than the limit": Case(
        MalformedCode.TOO_LONG,
        lambda: with_value(struct.pack(">BI", 0xDB, TEXT_BYTES_MAX + 1) + b"x" * (TEXT_BYTES_MAX + 1)),
    ),
}

KEYS: Cases = {
    "a key twice": value(MalformedCode.DUPLICATE_KEY, mapping(text("a"), u(1), text("a"), u(2))),
    "a key twice with equal values": value(MalformedCode.DUPLICATE_KEY, mapping(text("a"), u(1), text("a"), u(1))),
    "an empty key twice": value(MalformedCode.DUPLICATE_KEY, mapping(text(""), u(1), text("b"), u(1), text(""), u(1))),
    "a key twice, deep inside": value(
        MalformedCode.DUPLICATE_KEY, array(mapping(text("x"), mapping(text("a"), NIL, text("a"), NIL)))
    ),
    "a key of the workload twice": Case(
        MalformedCode.DUPLICATE_KEY, bundle(workload=mapping(text("a"), u(1), text("a"), u(1))), "workload"
    ),
}

INTEGERS: Cases = {
    name: value(MalformedCode.BAD_INTEGER, big(digits))
    for name, digits in {
        "a large integer of no digits": b"",
        "a small integer as a large one": b"7",
        "2**64 - 1 as a large one": str(2**64 - 1).encode(),
        "-2**63 as a large one": str(-(2**63)).encode(),
        "a leading zero": b"0" + b"1" * 20,
        "a plus sign": b"+" + b"1" * 20,
        "minus zero": b"-" + b"0" * 20,
        "two minus signs": b"--" + b"1" * 20,
        "blanks around": b" " + b"1" * 20 + b" ",
        "underscores between": b"1_" * 10 + b"1",
        "letters": b"x" * 20,
        "hexadecimal": b"0x" + b"f" * 20,
        "an exponent": b"1e30" + b"0" * 20,
        "Arabic digits": "\u0661".encode() * 20,
        "a null byte": b"1" * 20 + b"\0",
    }.items()
}
INTEGERS["a large integer past the limit"] = value(MalformedCode.TOO_LONG, big(b"1" * (BIG_INTEGER_CHARS_MAX + 1)))
INTEGERS["a large integer with a padded length"] = value(MalformedCode.PADDED_VALUE, b"\xc8\x00\x14\x01" + b"1" * 20)

FLOATS: Cases = {
    name: value(MalformedCode.BAD_FLOAT, b"\xcb" + bits.to_bytes(8, "big"))
    for name, bits in {
        "NaN with a sign": 0xFFF8_0000_0000_0000,
        "NaN with a payload": 0x7FF8_0000_0000_0001,
        "a signalling NaN": 0x7FF0_0000_0000_0001,
        "NaN of all ones": 0xFFFF_FFFF_FFFF_FFFF,
    }.items()
}

DEPTHS: Cases = {
    "lists nested one too deep": value(MalformedCode.TOO_DEEP, b"\x91" * DEPTH_MAX + u(1)),
    "mappings nested one too deep": value(MalformedCode.TOO_DEEP, b"\x81\xa1a" * DEPTH_MAX + u(1)),
    "a thousand nested lists": value(MalformedCode.TOO_DEEP, b"\x91" * 1_000),
    "a million nested lists": Case(MalformedCode.TOO_DEEP, lambda: with_value(b"\x91" * 1_000_000), "workload"),
    "a million nested mappings": Case(MalformedCode.TOO_DEEP, lambda: with_value(b"\x81\xa1a" * 1_000_000), "workload"),
}

CUTS: Cases = {
    name: value(MalformedCode.TRUNCATED, data)
    for name, data in {
        "no value after the key": b"",
        "uint8 without its byte": b"\xcc",
        "uint16 of one byte": b"\xcd\x01",
        "uint32 of three bytes": b"\xce\x01\x00\x00",
        "uint64 of seven bytes": b"\xcf" + b"\x01" * 7,
        "int8 without its byte": b"\xd0",
        "int64 of seven bytes": b"\xd3" + b"\x80" * 7,
        "a float of seven bytes": b"\xcb" + b"\x00" * 7,
        "a text without its last byte": b"\xa3ab",
        "str8 without a length": b"\xd9",
        "str8 without its text": b"\xd9\x20",
        "str16 with half a length": b"\xda\x01",
        "str32 longer than everything": b"\xdb\x00\x1f\xff\xff",
        "a list without its last value": b"\x92\x00",
        "array16 without a length": b"\xdc",
        "array16 without its values": b"\xdc\x00\x10",
        "array32 of 2**32 - 1 values": array32(2**32 - 1),
        "map32 of 2**32 - 1 pairs": b"\xdf\xff\xff\xff\xff",
        "a mapping without its last value": b"\x81\xa1a",
        "a mapping without its pair": b"\x81",
        "map16 without its pairs": b"\xde\x00\x10\xa1a",
        "ext 8 without a length": b"\xc7",
        "ext 8 without a type": b"\xc7\x14",
        "ext 8 without its last digit": b"\xc7\x14\x01" + b"1" * 19,
        "ext 16 with half a length": b"\xc8\x01",
    }.items()
}

CASES: Cases = PADDED | FORBIDDEN | TYPES | TEXTS | KEYS | INTEGERS | FLOATS | DEPTHS | CUTS
