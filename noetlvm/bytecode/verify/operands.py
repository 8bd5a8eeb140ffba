"""Whether an instruction's operands are as in the table: number, kind, range, values taken from the stack."""

from __future__ import annotations

from collections.abc import Callable
from reprlib import repr as shown
from typing import TypeAlias

from noetlvm.bytecode.isa import BACKOFFS, COMPARISONS, NAMES, OPCODES, Area, Operand
from noetlvm.bytecode.limits import CODE_MAX, LIMIT_MAX, OPERAND_MAX, SLOTS_MAX
from noetlvm.bytecode.program import ExpressionCode, Instruction, InvalidBundleError

INVALID: dict[str, str] = {
    # -- any code
    "V001": "an instruction belongs to the other machine",
    "V002": "an instruction has too few or too many operands",
    "V003": "an operand is not of its kind",
    "V004": "a target is not an instruction of the code",
    "V005": "a slot is not one of those declared",
    "V006": "a word is not in the instruction set's table",
    "V007": "there is no code",
    "V008": "there is more code than allowed",
    "V009": "more slots are declared than allowed",
    # -- expressions: the stack
    "V010": "more is taken off the stack than lies on it",
    "V011": "an iterator is taken for a value",
    "V012": "NEXT finds no iterator on top of the stack",
    "V013": "two paths meet with different stacks",
    "V014": "two paths meet with different texts begun",
    "V015": "no text has been begun",
    "V016": "something is left on the stack at the end",
    "V017": "a text is left unfinished at the end",
    "V018": "the code runs off its end",
    "V019": "an instruction is never reached from above",
    "V020": "a jump back goes to something other than a NEXT",
    "V021": "LOOP is inside fewer running for blocks",
    "V022": "APPEND would change a list that others may hold",
    "V023": "the stack grows beyond what is allowed",
    "V024": "for blocks are nested deeper than allowed",
    # -- expressions: what they name and give
    "V030": "a name is not visible in this place",
    "V031": "a server-side expression reads secrets",
    "V032": "`iter` is read outside a loop",
    "V033": "there is no such filter",
    "V034": "there is no such test",
    "V035": "there is no such function",
    "V036": "there is no such method",
    "V037": "the arguments do not fit",
    "V038": "an argument is named twice",
    "V039": "a guard must end with TRUTH",
    "V040": "what must be a mapping is not built as one",
    "V041": "a key stands twice in a mapping",
    # -- pipelines
    "V050": "an instruction for between tasks stands inside a task",
    "V051": "CALL does not follow its task's ENTER",
    "V052": "an instruction needs an outcome, and there is none yet",
    "V053": "an instruction needs a task, and there is none",
    "V054": "two paths meet in different states of a task",
    "V055": "the target is not a place between tasks",
    "V056": "RETRY does not go to its own task's CALL, nor to the rules before it",
    "V057": "a label stands twice",
    "V058": "a label is not a plain label, or too long",
    "V059": "the pipeline runs off its end",
    "V060": "an instruction of the pipeline is never reached",
    "V061": "RETRY allows no attempt",
    "V062": "the tool's kind has no name, or too long a one",
    "V063": "PATCH writes nothing",
    "V064": "`iter` is written outside a loop",
    "V065": "a key of a patch is not a plain name, or too long",
    # -- the net
    "V070": "there is no playbook",
    "V071": "a playbook has no step",
    "V072": "a playbook has no name or no path, or one that is too long or has a control character",
    "V073": "two playbooks have the same path",
    "V074": "the further playbooks are not sorted by path",
    "V075": "two steps have the same name",
    "V076": "a step's name is not a plain name, or too long",
    "V077": "the entry step does not exist",
    "V078": "the final step does not exist",
    "V079": "an arc leads to no step",
    "V080": "`handles_failure` disagrees with whether the guard reads `event`",
    "V081": "a loop lets no iteration run",
    "V082": "a sequential loop is wider than one",
    "V083": "an iterator's name is not a plain name of its own, or too long",
    "V084": "two levels of a loop have the same iterator",
    "V085": "there is no such reducer",
    "V086": "the reducers are not sorted by key, each once",
    "V087": "loops are nested deeper than allowed",
    "V088": "two credentials have the same name",
    "V089": "a credential's name is not a plain name, or too long",
    "V090": "a credential has no kind, or one with too long a name",
    # -- the debug map
    "V100": "the debug map lacks an address",
    "V101": "the debug map has an address too many",
    "V102": "the debug map has another address here",
    "V103": "an address has too few or too many marks",
    "V104": "a mark is in a file that is not listed",
    "V105": "a mark has no line or column",
    "V106": "a file is listed twice",
}


class CheckError(Exception):
    """A check failed at `offset`. `Located` adds the section and the address."""

    def __init__(self, code: str, offset: int, detail: str, part: str = "") -> None:
        self.code = code
        self.offset = offset
        self.detail = detail
        self.part = part
        """Which part of what stands at the address, such as `arc.2`."""
        super().__init__(code)

    def at_address(self, section: str, address: str) -> InvalidBundleError:
        """Return the error for the outside."""
        place = "/".join(filter(None, (address, self.part)))
        where = f"`{_shortened(place)}`: " if place else ""
        return InvalidBundleError(
            self.code, section, self.offset, f"{where}{INVALID[self.code]}: {_shortened(self.detail)}"
        )


def _shortened(text: str) -> str:
    """Bound a name that comes from the bundle and may have any length."""
    return text if len(text) <= _TEXT_MAX else f"{text[:_TEXT_MAX]}…"


_TEXT_MAX = 300


class Located:
    """A context that adds this section and address to a failed check.

    The address comes in parts, to be joined when it is needed: a playbook's path may be long, and stands before the
    name of each of its steps.
    """

    __slots__ = ("_address", "_section")

    def __init__(self, section: str, *address: str) -> None:
        self._section = section
        self._address = address

    def __enter__(self) -> None:
        return None

    def __exit__(self, _type: object, error: BaseException | None, _traceback: object) -> None:
        if isinstance(error, CheckError):
            raise error.at_address(self._section, "".join(self._address)) from None


def check_sizes(code: tuple[Instruction, ...], slots: int) -> None:
    """Refuse code that is empty, too long, or needs too many slots."""
    if not code:
        raise CheckError("V007", 0, "at least an instruction that ends it is needed")
    if len(code) > CODE_MAX:
        raise CheckError("V008", CODE_MAX, f"{len(code)} instructions, at most {CODE_MAX} may be")
    if not 0 <= slots <= SLOTS_MAX:
        raise CheckError("V009", 0, f"{slots}, at most {SLOTS_MAX} may be")


def check_operands(instruction: Instruction, at: int, area: Area, length: int, slots: int) -> None:
    """Refuse an instruction that the table does not allow in code of this length with this many slots."""
    opcode, operands = instruction.opcode, instruction.operands
    if opcode.area is not area:
        raise CheckError("V001", at, f"{opcode.name} is one of the {opcode.area} machine")
    checks = _CHECKS[opcode.number]
    if len(operands) != len(checks):
        raise CheckError("V002", at, f"{opcode.name} takes {len(checks)}, not {len(operands)}")
    for kind, check, value in zip(opcode.operands, checks, operands, strict=True):
        code = check(value, length, slots)
        if code is not None:
            raise CheckError(code, at, f"{opcode.name} takes a {kind}, not {shown(value)}")


_Check: TypeAlias = Callable[[object, int, int], "str | None"]
"""From an operand, the length of its code and the number of its slots to what is wrong with it."""


def _text(value: object, _length: int, _slots: int) -> str | None:
    return None if isinstance(value, str) else "V003"


def _words(value: object, _length: int, _slots: int) -> str | None:
    return None if isinstance(value, list) and all(isinstance(word, str) for word in value) else "V003"


def _count(value: object, _length: int, _slots: int) -> str | None:
    return None if type(value) is int and 0 <= value <= OPERAND_MAX else "V003"


def _limit(value: object, _length: int, _slots: int) -> str | None:
    return None if isinstance(value, ExpressionCode) or (type(value) is int and 0 <= value <= LIMIT_MAX) else "V003"


def _target(value: object, length: int, _slots: int) -> str | None:
    if type(value) is not int:
        return "V003"
    return None if 0 <= value < length else "V004"


def _slot(value: object, _length: int, slots: int) -> str | None:
    if type(value) is not int:
        return "V003"
    return None if 0 <= value < slots else "V005"


def _spread(value: object, _length: int, _slots: int) -> str | None:
    if type(value) is not int:
        return "V003"
    return None if 0 <= value <= 3 else "V006"


def _word_of(table: tuple[str, ...]) -> _Check:
    allowed = frozenset(table)

    def check(value: object, _length: int, _slots: int) -> str | None:
        if not isinstance(value, str):
            return "V003"
        return None if value in allowed else "V006"

    return check


_BY_KIND: dict[Operand, _Check] = {
    Operand.CONST: lambda _value, _length, _slots: None,
    Operand.TEXT: _text,
    Operand.WORDS: _words,
    Operand.EXPR: lambda value, _length, _slots: None if isinstance(value, ExpressionCode) else "V003",
    Operand.OPTIONAL_EXPR: lambda value, *_: None if value is None or isinstance(value, ExpressionCode) else "V003",
    Operand.TARGET: _target,
    Operand.COUNT: _count,
    Operand.LIMIT: _limit,
    Operand.SLOT: _slot,
    Operand.NAME: _word_of(NAMES),
    Operand.COMPARISON: _word_of(COMPARISONS),
    Operand.BACKOFF: _word_of(BACKOFFS),
    Operand.SPREAD: _spread,
    # Which of these exist is a question of calls, not of operands.
    Operand.FILTER: _text,
    Operand.TEST: _text,
    Operand.FUNCTION: _text,
    Operand.METHOD: _text,
}

_CHECKS: dict[int, tuple[_Check, ...]] = {
    opcode.number: tuple(_BY_KIND[kind] for kind in opcode.operands) for opcode in OPCODES
}


def count_taken(instruction: Instruction) -> int:
    """Return how many values an instruction takes: the table's number and one for each unit of its counts."""
    opcode = instruction.opcode
    return opcode.pops + sum(_units(instruction, index) * factor for index, factor in opcode.counts)


def _units(instruction: Instruction, index: int) -> int:
    operand = instruction.operands[index]
    if isinstance(operand, list):
        return len(operand)
    count = integer(instruction, index)
    return count.bit_count() if instruction.opcode.operands[index] is Operand.SPREAD else count


def integer(instruction: Instruction, index: int) -> int:
    """Return an operand that is a target, count or slot."""
    value = instruction.operands[index]
    assert isinstance(value, int)
    return value


def text(instruction: Instruction, index: int) -> str:
    """Return an operand that is a word."""
    value = instruction.operands[index]
    assert isinstance(value, str)
    return value
