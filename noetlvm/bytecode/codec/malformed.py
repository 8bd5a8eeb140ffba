"""Why a bundle cannot be decoded: one code for each reason."""

from __future__ import annotations

from enum import StrEnum


class Fault(StrEnum):
    """The codes. A code keeps its meaning for ever; a new reason gets a new number."""

    # The file
    NOT_A_BUNDLE = "M001"
    NEWER_FORMAT = "M002"
    NEWER_INSTRUCTIONS = "M003"
    RESERVED = "M004"
    TOO_LARGE = "M005"
    TRUNCATED = "M006"
    LEFT_OVER = "M007"
    # Values
    WRONG_TYPE = "M010"
    FORBIDDEN_TYPE = "M011"
    PADDED_VALUE = "M012"
    BAD_TEXT = "M013"
    TOO_DEEP = "M014"
    TOO_MUCH = "M015"
    TOO_LONG = "M016"
    DUPLICATE_KEY = "M017"
    BAD_INTEGER = "M018"
    BAD_FLOAT = "M019"
    WRONG_LENGTH = "M020"
    OUT_OF_RANGE = "M021"
    # Sections
    SECTION_MISSING = "M030"
    SECTION_UNKNOWN = "M031"
    SECTION_TWICE = "M032"
    SECTION_ORDER = "M033"
    # M034 was about a flag that sections had in format 1.
    NO_PLAYBOOK = "M035"
    SECTION_EMPTY = "M036"
    # Code
    UNKNOWN_OPCODE = "M040"
    WRONG_MACHINE = "M041"
    CUT_INSTRUCTION = "M042"
    PADDED_OPERAND = "M043"
    HUGE_OPERAND = "M044"
    NO_SUCH_CONSTANT = "M045"
    NO_SUCH_EXPRESSION = "M046"
    CONSTANT_TYPE = "M047"
    NO_SUCH_WORD = "M048"
    # Pools
    CONSTANT_TWICE = "M050"
    CONSTANT_ORDER = "M051"
    CONSTANT_UNUSED = "M052"
    EXPRESSION_TWICE = "M053"
    EXPRESSION_ORDER = "M054"
    EXPRESSION_UNUSED = "M055"
    PIPELINE_COUNT = "M056"
    # Debug map
    CONSTRUCT_ORDER = "M060"
    CONSTRUCT_UNUSED = "M061"
    CONSTRUCT_TWICE = "M062"
    NO_SUCH_FILE = "M063"
    NO_SUCH_PLACE = "M064"
    IDLE_MOVE = "M065"


MALFORMED: dict[Fault, str] = {
    Fault.NOT_A_BUNDLE: "The file is no bundle.",
    Fault.NEWER_FORMAT: "The bundle's format is another than this version reads.",
    Fault.NEWER_INSTRUCTIONS: "The bundle's instruction set is another than this version runs.",
    Fault.RESERVED: "A reserved byte is not zero.",
    Fault.TOO_LARGE: "The bundle is larger than the limit.",
    Fault.TRUNCATED: "The bytes end before the value does.",
    Fault.LEFT_OVER: "Bytes are left over after the last value.",
    Fault.WRONG_TYPE: "A value is of another type than its place requires.",
    Fault.FORBIDDEN_TYPE: "A type of msgpack that bundles do not use.",
    Fault.PADDED_VALUE: "A value, number or length is written longer than it needs to be.",
    Fault.BAD_TEXT: "A text is not UTF-8.",
    Fault.TOO_DEEP: "Lists and mappings are nested too deeply.",
    Fault.TOO_MUCH: "The bundle would take more memory than the limit.",
    Fault.TOO_LONG: "A text or a piece of code is longer than the limit.",
    Fault.DUPLICATE_KEY: "A mapping has a key twice.",
    Fault.BAD_INTEGER: "A large integer is not written as one.",
    Fault.BAD_FLOAT: "A NaN is not the one that bundles use.",
    Fault.WRONG_LENGTH: "A record or list has another length than its place requires.",
    Fault.OUT_OF_RANGE: "A number is out of its range.",
    Fault.SECTION_MISSING: "A required section is missing.",
    Fault.SECTION_UNKNOWN: "A required section is unknown to this version.",
    Fault.SECTION_TWICE: "A section occurs twice.",
    Fault.SECTION_ORDER: "The sections are not in their order.",
    Fault.NO_PLAYBOOK: "The bundle holds no playbook.",
    Fault.SECTION_EMPTY: "A section is there and holds nothing.",
    Fault.UNKNOWN_OPCODE: "No instruction has this number.",
    Fault.WRONG_MACHINE: "An instruction of the other machine.",
    Fault.CUT_INSTRUCTION: "The code ends inside an instruction.",
    Fault.PADDED_OPERAND: "An operand is written longer than it needs to be.",
    Fault.HUGE_OPERAND: "An operand is larger than the limit.",
    Fault.NO_SUCH_CONSTANT: "An index is past the end of the constants.",
    Fault.NO_SUCH_EXPRESSION: "An index is past the end of the expressions.",
    Fault.CONSTANT_TYPE: "A constant is of another type than its use requires.",
    Fault.NO_SUCH_WORD: "A number stands for no namespace, comparison, backoff or spread.",
    Fault.CONSTANT_TWICE: "A constant is in the pool twice.",
    Fault.CONSTANT_ORDER: "The constants are not in the order of their first use.",
    Fault.CONSTANT_UNUSED: "A constant is never used.",
    Fault.EXPRESSION_TWICE: "An expression is in the pool twice.",
    Fault.EXPRESSION_ORDER: "The expressions are not in the order of their first use.",
    Fault.EXPRESSION_UNUSED: "An expression is never used.",
    Fault.PIPELINE_COUNT: "There are more or fewer pipelines than steps that have one.",
    Fault.CONSTRUCT_ORDER: "The constructs of the debug map are not in the order of their first use.",
    Fault.CONSTRUCT_UNUSED: "A construct of the debug map is never used.",
    Fault.CONSTRUCT_TWICE: "A construct is in the debug map twice.",
    Fault.NO_SUCH_FILE: "A mark names a file that the debug map does not list.",
    Fault.NO_SUCH_PLACE: "A mark is before the first line or column, or too far.",
    Fault.IDLE_MOVE: "A mark is written as a move that does not move.",
}
"""What each code means."""
