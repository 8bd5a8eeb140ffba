"""What can be wrong with the debug map."""

from __future__ import annotations

from noetlvm.bytecode.codec.malformed import MalformedCode
from tests.noetlvm.bytecode.malformed.pieces import (
    EMPTY,
    MARKS,
    NIL,
    Case,
    Cases,
    array,
    bundle,
    debug,
    text,
    u,
)


def whole(fault: MalformedCode, data: bytes) -> Case:
    return Case(fault, bundle(debug=data), "debug")


def marks(fault: MalformedCode, data: bytes) -> Case:
    return whole(fault, debug(marks=data))


def first(fault: MalformedCode, move: bytes) -> Case:
    """The first mark, that of the step `start`, is this."""
    return marks(fault, MARKS[:1] + move + MARKS[2:])


FIELDS: Cases = {
    "debug without a payload": whole(MalformedCode.SECTION_EMPTY, b""),
    "files are a mapping": whole(MalformedCode.WRONG_TYPE, EMPTY),
    "files are null": whole(MalformedCode.WRONG_TYPE, NIL),
    "files and no constructs": whole(MalformedCode.TRUNCATED, array(text("a.yaml"))),
    "something after the debug map": whole(MalformedCode.LEFT_OVER, debug() + NIL),
    "files are a text": whole(MalformedCode.WRONG_TYPE, debug(files=text("a.yaml"))),
    "a file is a number": whole(MalformedCode.WRONG_TYPE, debug(files=array(u(1)))),
    "a file is no UTF-8": whole(MalformedCode.BAD_TEXT, debug(files=array(b"\xa1\xff"))),
    "constructs are null": whole(MalformedCode.WRONG_TYPE, debug(constructs=NIL)),
    "a construct is null": whole(MalformedCode.WRONG_TYPE, debug(constructs=array(text("step"), NIL))),
    "a construct twice": whole(MalformedCode.CONSTRUCT_TWICE, debug(constructs=array(text("step"), text("step")))),
    "a construct that nobody uses": whole(
        MalformedCode.CONSTRUCT_UNUSED, debug(constructs=array(text("step"), text("task"), text("arc")))
    ),
    "no constructs": whole(MalformedCode.CONSTRUCT_ORDER, debug(constructs=array())),
    "a construct that does not exist": whole(MalformedCode.CONSTRUCT_ORDER, debug(constructs=array(text("step")))),
    "a construct less than announced": whole(MalformedCode.TRUNCATED, array(text("a.yaml")) + b"\x92" + text("step")),
    "many files announced": whole(MalformedCode.TRUNCATED, b"\xdd\xff\xff\xff\xff"),
}

MOVES: Cases = {
    "no marks": marks(MalformedCode.CUT_INSTRUCTION, b""),
    "a construct without marks": marks(MalformedCode.CUT_INSTRUCTION, MARKS[:1]),
    "marks without the last byte": marks(MalformedCode.CUT_INSTRUCTION, MARKS[:-1]),
    "marks without the last step": marks(MalformedCode.CUT_INSTRUCTION, MARKS[:-3]),
    "half a move": marks(MalformedCode.CUT_INSTRUCTION, MARKS[:1] + b"\x80"),
    "a move to a line without a column": marks(MalformedCode.CUT_INSTRUCTION, MARKS[:1] + b"\x05"),
    "a mark too many": marks(MalformedCode.LEFT_OVER, MARKS + b"\x00"),
    "an address too many": marks(MalformedCode.LEFT_OVER, MARKS + b"\x00\x00"),
    "the second construct comes first": marks(MalformedCode.CONSTRUCT_ORDER, b"\x01" + MARKS[1:]),
    "a construct far away": marks(MalformedCode.CONSTRUCT_ORDER, b"\xff\x7f" + MARKS[1:]),
    "a padded construct": marks(MalformedCode.PADDED_OPERAND, b"\x80\x00" + MARKS[1:]),
    "a padded move": first(MalformedCode.PADDED_OPERAND, b"\x80\x00"),
    "a padded column": first(MalformedCode.PADDED_OPERAND, b"\x05\x81\x00"),
    "a huge move": first(MalformedCode.HUGE_OPERAND, b"\xff" * 5 + b"\x7f"),
    "a move without an end": first(MalformedCode.HUGE_OPERAND, b"\x80" * 20),
    "a huge column": first(MalformedCode.HUGE_OPERAND, b"\x05\x80\x80\x80\x80\x10"),
    "no files, and a mark that stays": whole(MalformedCode.NO_SUCH_FILE, debug(files=array())),
    "no files, and a mark that moves": whole(
        MalformedCode.NO_SUCH_FILE, debug(files=array(), marks=MARKS[:1] + b"\x04" + MARKS[2:])
    ),
    "a file that does not exist": first(MalformedCode.NO_SUCH_FILE, b"\x07\x01\x01"),
    "a file far away": first(MalformedCode.NO_SUCH_FILE, b"\xff\x7f\x01\x01"),
    "a move to the file it is in": first(MalformedCode.IDLE_MOVE, b"\x03\x02\x01"),
    "a move to the line it is on": first(MalformedCode.IDLE_MOVE, b"\x01\x05"),
    "line 0": first(MalformedCode.NO_SUCH_PLACE, b"\x05\x01"),
    "line -1": first(MalformedCode.NO_SUCH_PLACE, b"\x0d\x01"),
    "column 0, along the line": first(MalformedCode.NO_SUCH_PLACE, b"\x02"),
    "column -5, along the line": first(MalformedCode.NO_SUCH_PLACE, b"\x16"),
    "column 0 of another line": first(MalformedCode.NO_SUCH_PLACE, b"\x09\x00"),
    "column 0 of another file": whole(
        MalformedCode.NO_SUCH_PLACE,
        debug(files=array(text("a.yaml"), text("b.yaml")), marks=MARKS[:1] + b"\x07\x01\x00" + MARKS[2:]),
    ),
    "line 0 of another file": whole(
        MalformedCode.NO_SUCH_PLACE,
        debug(files=array(text("a.yaml"), text("b.yaml")), marks=MARKS[:1] + b"\x07\x00\x01" + MARKS[2:]),
    ),
}

CASES: Cases = FIELDS | MOVES
