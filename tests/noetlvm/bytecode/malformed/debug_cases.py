"""What can be wrong with the debug map."""

from __future__ import annotations

from noetlvm.bytecode.codec.malformed import Fault
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


def whole(fault: Fault, data: bytes) -> Case:
    return Case(fault, bundle(debug=data), "debug")


def marks(fault: Fault, data: bytes) -> Case:
    return whole(fault, debug(marks=data))


def first(fault: Fault, move: bytes) -> Case:
    """The first mark, that of the step `start`, is this."""
    return marks(fault, MARKS[:1] + move + MARKS[2:])


FIELDS: Cases = {
    "debug without a payload": whole(Fault.SECTION_EMPTY, b""),
    "files are a mapping": whole(Fault.WRONG_TYPE, EMPTY),
    "files are null": whole(Fault.WRONG_TYPE, NIL),
    "files and no constructs": whole(Fault.TRUNCATED, array(text("a.yaml"))),
    "something after the debug map": whole(Fault.LEFT_OVER, debug() + NIL),
    "files are a text": whole(Fault.WRONG_TYPE, debug(files=text("a.yaml"))),
    "a file is a number": whole(Fault.WRONG_TYPE, debug(files=array(u(1)))),
    "a file is no UTF-8": whole(Fault.BAD_TEXT, debug(files=array(b"\xa1\xff"))),
    "constructs are null": whole(Fault.WRONG_TYPE, debug(constructs=NIL)),
    "a construct is null": whole(Fault.WRONG_TYPE, debug(constructs=array(text("step"), NIL))),
    "a construct twice": whole(Fault.CONSTRUCT_TWICE, debug(constructs=array(text("step"), text("step")))),
    "a construct that nobody uses": whole(
        Fault.CONSTRUCT_UNUSED, debug(constructs=array(text("step"), text("task"), text("arc")))
    ),
    "no constructs": whole(Fault.CONSTRUCT_ORDER, debug(constructs=array())),
    "a construct that does not exist": whole(Fault.CONSTRUCT_ORDER, debug(constructs=array(text("step")))),
    "a construct less than announced": whole(Fault.TRUNCATED, array(text("a.yaml")) + b"\x92" + text("step")),
    "many files announced": whole(Fault.TRUNCATED, b"\xdd\xff\xff\xff\xff"),
}

MOVES: Cases = {
    "no marks": marks(Fault.CUT_INSTRUCTION, b""),
    "a construct without marks": marks(Fault.CUT_INSTRUCTION, MARKS[:1]),
    "marks without the last byte": marks(Fault.CUT_INSTRUCTION, MARKS[:-1]),
    "marks without the last step": marks(Fault.CUT_INSTRUCTION, MARKS[:-3]),
    "half a move": marks(Fault.CUT_INSTRUCTION, MARKS[:1] + b"\x80"),
    "a move to a line without a column": marks(Fault.CUT_INSTRUCTION, MARKS[:1] + b"\x05"),
    "a mark too many": marks(Fault.LEFT_OVER, MARKS + b"\x00"),
    "an address too many": marks(Fault.LEFT_OVER, MARKS + b"\x00\x00"),
    "the second construct comes first": marks(Fault.CONSTRUCT_ORDER, b"\x01" + MARKS[1:]),
    "a construct far away": marks(Fault.CONSTRUCT_ORDER, b"\xff\x7f" + MARKS[1:]),
    "a padded construct": marks(Fault.PADDED_OPERAND, b"\x80\x00" + MARKS[1:]),
    "a padded move": first(Fault.PADDED_OPERAND, b"\x80\x00"),
    "a padded column": first(Fault.PADDED_OPERAND, b"\x05\x81\x00"),
    "a huge move": first(Fault.HUGE_OPERAND, b"\xff" * 5 + b"\x7f"),
    "a move without an end": first(Fault.HUGE_OPERAND, b"\x80" * 20),
    "a huge column": first(Fault.HUGE_OPERAND, b"\x05\x80\x80\x80\x80\x10"),
    "no files, and a mark that stays": whole(Fault.NO_SUCH_FILE, debug(files=array())),
    "no files, and a mark that moves": whole(
        Fault.NO_SUCH_FILE, debug(files=array(), marks=MARKS[:1] + b"\x04" + MARKS[2:])
    ),
    "a file that does not exist": first(Fault.NO_SUCH_FILE, b"\x07\x01\x01"),
    "a file far away": first(Fault.NO_SUCH_FILE, b"\xff\x7f\x01\x01"),
    "a move to the file it is in": first(Fault.IDLE_MOVE, b"\x03\x02\x01"),
    "a move to the line it is on": first(Fault.IDLE_MOVE, b"\x01\x05"),
    "line 0": first(Fault.NO_SUCH_PLACE, b"\x05\x01"),
    "line -1": first(Fault.NO_SUCH_PLACE, b"\x0d\x01"),
    "column 0, along the line": first(Fault.NO_SUCH_PLACE, b"\x02"),
    "column -5, along the line": first(Fault.NO_SUCH_PLACE, b"\x16"),
    "column 0 of another line": first(Fault.NO_SUCH_PLACE, b"\x09\x00"),
    "column 0 of another file": whole(
        Fault.NO_SUCH_PLACE,
        debug(files=array(text("a.yaml"), text("b.yaml")), marks=MARKS[:1] + b"\x07\x01\x00" + MARKS[2:]),
    ),
    "line 0 of another file": whole(
        Fault.NO_SUCH_PLACE,
        debug(files=array(text("a.yaml"), text("b.yaml")), marks=MARKS[:1] + b"\x07\x00\x01" + MARKS[2:]),
    ),
}

CASES: Cases = FIELDS | MOVES
