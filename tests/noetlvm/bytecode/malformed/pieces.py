"""A small good bundle in hand-written bytes, with every field replaceable: the base of the malformed set.

Each argument is the bytes of one field, so `bundle(net=net(step(bits=u(16))))` is a bundle with one wrong field. This
states the format a second time, without the encoder. It is format 4, which has no checksum, so that changed bytes are
decoded; `sealed` makes format 5 of it. The numbers of opcodes and the order of operands come from the
table of instructions.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

from noetlvm.bytecode import isa
from noetlvm.bytecode.codec.malformed import MalformedCode

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class Case:
    """One malformed bundle and the code it is refused with."""

    fault: MalformedCode
    data: bytes | Callable[[], bytes]
    """A function where the bytes are many."""
    section: str | None = None
    """Where the fault must be found; None where the case does not care."""

    def bytes(self) -> bytes:
        return self.data if isinstance(self.data, bytes) else self.data()


Cases = dict[str, Case]

# -- msgpack, one form a function

NIL, FALSE, TRUE = b"\xc0", b"\xc2", b"\xc3"


def u(number: int) -> bytes:
    """An integer from 0 to 127 in its own byte."""
    return bytes((number,))


def text(value: str) -> bytes:
    """A text of at most 31 bytes."""
    raw = value.encode()
    return bytes((0xA0 + len(raw),)) + raw


def array(*items: bytes) -> bytes:
    """A list of at most 15 values."""
    return bytes((0x90 + len(items),)) + b"".join(items)


def mapping(*items: bytes) -> bytes:
    """A mapping of at most 15 pairs, keys and values in turn."""
    return bytes((0x80 + len(items) // 2,)) + b"".join(items)


def array32(count: int) -> bytes:
    """The head of a list of many values."""
    return struct.pack(">BI", 0xDD, count)


def binary(data: bytes) -> bytes:
    """Bytes as one value, in its shortest form."""
    if len(data) < 2**8:
        return struct.pack(">BB", 0xC4, len(data)) + data
    return (
        struct.pack(">BH", 0xC5, len(data)) + data if len(data) < 2**16 else struct.pack(">BI", 0xC6, len(data)) + data
    )


# -- LEB128


def leb(number: int) -> bytes:
    """A number in groups of seven bits."""
    groups = [number >> shift & 0x7F for shift in range(0, max(number.bit_length(), 1), 7)]
    return bytes(group | 0x80 for group in groups[:-1]) + bytes(groups[-1:])


def block(data: bytes) -> bytes:
    """Bytes, led by their number."""
    return leb(len(data)) + data


# -- the bundle

EMPTY = mapping()
NUMBERS = {
    "metadata": 2,
    "constants": 4,
    "expressions": 6,
    "net": 8,
    "pipelines": 10,
    "keychain": 12,
    "workload": 14,
    "debug": 15,
}


def header(
    magic: bytes = b"\x7fNBC", major: int = 4, minor: int = 0, instructions: int = isa.ISA_VERSION, reserved: int = 0
) -> bytes:
    return magic + bytes((major, minor, instructions, reserved))


HEADER = header()


def sealed(data: bytes) -> bytes:
    """A bundle of format 4 as one of format 5, which ends with a checksum."""
    inner = data[:4] + b"\x05" + data[5:7] + b"\x20" + data[8:]
    return inner + sha256(inner).digest()


def unsealed(data: bytes) -> bytes:
    """A bundle of format 5 as one of format 4; one of format 4 as it is."""
    return data if data[4:5] != b"\x05" else data[:4] + b"\x04" + data[5:7] + b"\0" + data[8:-32]


def section(number: int, payload: bytes) -> bytes:
    return leb(number) + block(payload)


def of(*framed: bytes) -> bytes:
    """A bundle of these sections."""
    return HEADER + leb(len(framed)) + b"".join(framed)


def playbook(
    name: bytes = NIL,
    path: bytes = text("x/p"),
    metadata: bytes = EMPTY,
    executor: bytes = EMPTY,
    entry: bytes = u(4),
    final: bytes = u(0),
    strict: bytes = FALSE,
) -> bytes:
    return array(name, path, metadata, executor, entry, final, strict)


CONSTANTS = (
    EMPTY,
    text("go"),
    text("fetch"),
    text("http"),
    text("start"),
    text("each"),
    text("n"),
    text("max"),
    text("done"),
)
"""0 {}, 1 go, 2 fetch, 3 http, 4 start, 5 each, 6 n, 7 max, 8 done."""

CONST, NAME, ATTR, TRUTH, RETURN, NOT, FILTER, COMPARE, JUMP = (
    isa.EXPRESSION[name].number
    for name in ("CONST", "NAME", "ATTR", "TRUTH", "RETURN", "NOT", "FILTER", "COMPARE", "JUMP")
)
ENTER, CALL, UNLESS, ON_ERROR, PATCH, CONTINUE, FAIL, END, RESET = (
    isa.PIPELINE[name].number
    for name in ("ENTER", "CALL", "UNLESS", "ON_ERROR", "PATCH", "CONTINUE", "FAIL", "END", "RESET")
)


def instruction(name: str, **operands: int) -> bytes:
    """An instruction of a pipeline; an operand that is not given by its kind is 0."""
    row = isa.PIPELINE[name]
    return bytes((row.number, *(operands.get(kind.name.lower(), 0) for kind in row.operands)))


EXPRESSION_0 = bytes((0, CONST, 0, RETURN))
"""No slots; `{}`."""
EXPRESSION_1 = bytes((0, NAME, 2, ATTR, 1, TRUTH, RETURN))
"""No slots; `ctx.go`."""
PIPELINE = bytes((0, ENTER, 2, CALL, 3, 0, 0, ON_ERROR, 4, CONTINUE, 5, FAIL, END))


def loop(
    collection: bytes = u(0),
    iterator: bytes = u(5),
    bits: bytes = u(1),
    width: bytes = u(8),
    rate: bytes = u(0),
    reducers: bytes = array(u(6), u(7)),
) -> bytes:
    return array(collection, iterator, bits, width, rate, reducers)


def arc(target: bytes = u(8), bits: bytes = u(1), guard: bytes = u(2), args: bytes = u(0)) -> bytes:
    return array(target, bits, guard, args)


def step(
    name: bytes = u(4),
    bits: bytes = u(8),
    admit: bytes = u(0),
    loops: bytes = array(loop()),
    arcs: bytes = array(arc()),
    settings: bytes = u(0),
) -> bytes:
    return array(name, bits, admit, loops, arcs, settings)


DONE = step(u(8), u(0), u(0), array(), array(), u(0))


def net(first: bytes = step(), second: bytes = DONE) -> bytes:
    return array(first, second)


def credential(name: bytes = text("token"), kind: bytes = text("secret"), settings: bytes = EMPTY) -> bytes:
    return array(name, kind, settings)


MARKS = b"".join(
    (
        # start: its construct, then file 0, line 1, column 1
        b"\x00\x00",
        # start/loop.1/in: two lines down at column 5, and the same again
        b"\x00\x11\x05\x00",
        # start/arc.1 and its guard: a line down, then along the line
        b"\x00\x09\x05",
        b"\x00\x00\x08\x00\x06",
        # start/tool and the two expressions of its call
        b"\x01\x05\x03\x00\x00\x00\x00\x00",
        b"\x01\x00\x00",
        b"\x01\x00\x00",
        # done
        b"\x00\x51\x01",
    )
)


def debug(
    files: bytes = array(text("a.yaml")), constructs: bytes = array(text("step"), text("task")), marks: bytes = MARKS
) -> bytes:
    return files + constructs + binary(marks)


PAYLOADS: dict[str, bytes] = {
    "metadata": playbook(),
    "constants": b"".join(CONSTANTS),
    "expressions": binary(EXPRESSION_0) + binary(EXPRESSION_1),
    "net": net(),
    "pipelines": binary(PIPELINE),
    "keychain": array(credential()),
    "workload": mapping(text("k"), u(1)),
    "debug": debug(),
}


def sections(**changed: bytes) -> list[bytes]:
    """The sections of the good bundle, some with another payload."""
    payloads = PAYLOADS | changed
    return [section(NUMBERS[id], payload) for id, payload in payloads.items()]


def bundle(**changed: bytes) -> bytes:
    """The good bundle, some sections with another payload."""
    return of(*sections(**changed))


GOOD = bundle()


# -- shorthands for the fields that many cases change


def with_value(value: bytes) -> bytes:
    """A bundle that has this value in its workload."""
    return bundle(workload=mapping(text("k"), value))


def with_expression(code: bytes) -> bytes:
    """A bundle whose first expression is this."""
    return bundle(expressions=binary(code) + binary(EXPRESSION_1))


def with_pipeline(code: bytes) -> bytes:
    """A bundle whose pipeline is this."""
    return bundle(pipelines=binary(code))


def with_marks(marks: bytes) -> bytes:
    """A bundle with these marks."""
    return bundle(debug=debug(marks=marks))
