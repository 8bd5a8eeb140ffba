"""Why a bundle cannot be decoded: one code for each reason."""

from __future__ import annotations

from enum import StrEnum


class MalformedCode(StrEnum):
    """The codes. A code keeps its meaning forever; a new reason gets a new number."""

    # The file
    NOT_A_BUNDLE = "M001"
    NEWER_FORMAT = "M002"
    NEWER_INSTRUCTIONS = "M003"
    RESERVED = "M004"
    TOO_LARGE = "M005"
    TRUNCATED = "M006"
    LEFT_OVER = "M007"
    CHECKSUM = "M008"
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


MALFORMED: dict[MalformedCode, str] = {
    MalformedCode.NOT_A_BUNDLE: "The file is not a bundle.",
    MalformedCode.NEWER_FORMAT: "The bundle's format is another than this version reads.",
    MalformedCode.NEWER_INSTRUCTIONS: "The bundle's instruction set is another than this version runs.",
    MalformedCode.RESERVED: "The header announces another length of the checksum than the format has.",
    MalformedCode.TOO_LARGE: "The bundle is larger than the limit.",
    MalformedCode.TRUNCATED: "The bytes end before the value does.",
    MalformedCode.LEFT_OVER: "Bytes are left over after the last value.",
    MalformedCode.CHECKSUM: "The bytes are not those from which the checksum was made.",
    MalformedCode.WRONG_TYPE: "A value is of another type than its place requires.",
    MalformedCode.FORBIDDEN_TYPE: "A type of msgpack that bundles do not use.",
    MalformedCode.PADDED_VALUE: "A value, number or length is written longer than it needs to be.",
    MalformedCode.BAD_TEXT: "A text is not UTF-8.",
    MalformedCode.TOO_DEEP: "Lists and mappings are nested too deeply.",
    MalformedCode.TOO_MUCH: "The bundle would take more memory than the limit.",
    MalformedCode.TOO_LONG: "A text or a piece of code is longer than the limit.",
    MalformedCode.DUPLICATE_KEY: "A mapping has a key twice.",
    MalformedCode.BAD_INTEGER: "A large integer is not written as one.",
    MalformedCode.BAD_FLOAT: "A NaN is not the one that bundles use.",
    MalformedCode.WRONG_LENGTH: "A record or list has another length than its place requires.",
    MalformedCode.OUT_OF_RANGE: "A number is out of its range.",
    MalformedCode.SECTION_MISSING: "A required section is missing.",
    MalformedCode.SECTION_UNKNOWN: "A required section is unknown to this version.",
    MalformedCode.SECTION_TWICE: "A section occurs twice.",
    MalformedCode.SECTION_ORDER: "The sections are not in their order.",
    MalformedCode.NO_PLAYBOOK: "The bundle holds no playbook.",
    MalformedCode.SECTION_EMPTY: "A section is there and holds nothing.",
    MalformedCode.UNKNOWN_OPCODE: "No instruction has this number.",
    MalformedCode.WRONG_MACHINE: "An instruction of the other machine.",
    MalformedCode.CUT_INSTRUCTION: "The code ends inside an instruction.",
    MalformedCode.PADDED_OPERAND: "An operand is written longer than it needs to be.",
    MalformedCode.HUGE_OPERAND: "An operand is larger than the limit.",
    MalformedCode.NO_SUCH_CONSTANT: "An index is past the end of the constants.",
    MalformedCode.NO_SUCH_EXPRESSION: "An index is past the end of the expressions.",
    MalformedCode.CONSTANT_TYPE: "A constant is of another type than its use requires.",
    MalformedCode.NO_SUCH_WORD: "A number stands for no namespace, comparison, backoff or spread.",
    MalformedCode.CONSTANT_TWICE: "A constant is in the pool twice.",
    MalformedCode.CONSTANT_ORDER: "The constants are not in the order of their first use.",
    MalformedCode.CONSTANT_UNUSED: "A constant is never used.",
    MalformedCode.EXPRESSION_TWICE: "An expression is in the pool twice.",
    MalformedCode.EXPRESSION_ORDER: "The expressions are not in the order of their first use.",
    MalformedCode.EXPRESSION_UNUSED: "An expression is never used.",
    MalformedCode.PIPELINE_COUNT: "There are more or fewer pipelines than steps that have one.",
    MalformedCode.CONSTRUCT_ORDER: "The constructs of the debug map are not in the order of their first use.",
    MalformedCode.CONSTRUCT_UNUSED: "A construct of the debug map is never used.",
    MalformedCode.CONSTRUCT_TWICE: "A construct is in the debug map twice.",
    MalformedCode.NO_SUCH_FILE: "A mark names a file that the debug map does not list.",
    MalformedCode.NO_SUCH_PLACE: "A mark is before the first line or column, or too far.",
    MalformedCode.IDLE_MOVE: "A mark is written as a move that does not move.",
}
"""What each code means."""
