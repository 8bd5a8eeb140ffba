"""What an instruction does, in a few words beside it: the table's formula with the operands and values filled in.

For stack code it follows the values along straight lines (`outcome.status == "error"`) and stops where paths meet.
It is a reading aid; nothing may depend on it.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from noetlc.assembly.lexer import LABEL_NAME
from noetlvm.bytecode.isa import COMPARISONS, Area, Operand
from noetlvm.bytecode.program import ExpressionCode, Instruction

WIDTH = 60
"""Characters of a value that are shown."""
UNKNOWN = "…"

_WORDS: dict[Operand, tuple[str, ...]] = {
    Operand.TARGET: ("target",),
    Operand.NAME: ("namespace",),
    Operand.COUNT: ("n",),
    Operand.LIMIT: ("n",),
    Operand.CONST: ("k",),
    Operand.TEXT: ("k", "kind"),
    Operand.SLOT: ("slot",),
    Operand.COMPARISON: ("comparison",),
    Operand.FILTER: ("filter",),
    Operand.TEST: ("test",),
    Operand.FUNCTION: ("f",),
    Operand.METHOD: ("m",),
}
"""What stands for an operand in a formula."""
_WORD = re.compile(r"\w+…?|…")
_WHOLE = frozenset('"[{(')
_OPENING = frozenset(("", "→", "|", "(", "[", "{", ",", ":"))
_CLOSING = frozenset(("", "→", "|", ")", "]", "}", ",", ":"))
"""What may stand around a value that has spaces in it."""


class Synopsis:
    """Follows one code, instruction by instruction."""

    def __init__(self, operand: Callable[[Operand, object], str]) -> None:
        self._operand = operand
        self._stack: list[str] = []

    def meet(self) -> None:
        """Forget the values: other paths lead here too."""
        self._stack.clear()

    def of(self, instruction: Instruction) -> str:
        """Return what the instruction does, if that adds to the instruction itself."""
        opcode = instruction.opcode
        words = self._operand_words(instruction)
        if opcode.area is Area.PIPELINE:
            return _filled(opcode.formula, words)
        before, arrow, after = (part.strip() for part in opcode.formula.partition("→"))
        values = self._pop(_pops(instruction))
        if not arrow:
            return ""
        words |= _values_by_word(before.split(), values)
        if not opcode.pushes:
            return _filled(opcode.formula, words) if values else ""
        made = [after] if opcode.pushes == 1 else after.partition("|")[0].split()
        self._stack += [_shortened(_filled(template, words)) for template in made]
        return " ".join(self._stack[-len(made) :]) if values else ""

    def _pop(self, count: int) -> list[str]:
        known = self._stack[len(self._stack) - count :] if count < len(self._stack) else list(self._stack)
        del self._stack[len(self._stack) - len(known) :]
        return [UNKNOWN] * min(count - len(known), WIDTH) + known

    def _operand_words(self, instruction: Instruction) -> dict[str, str]:
        words: dict[str, str] = {}
        for kind, value in zip(instruction.opcode.operands, instruction.operands, strict=True):
            if kind in _WORDS and not isinstance(value, ExpressionCode):
                words |= dict.fromkeys(_WORDS[kind], self._shown(kind, value))
        return words

    def _shown(self, kind: Operand, value: object) -> str:
        if kind is Operand.SLOT:
            return f"slot{value}"
        if kind is not Operand.CONST and isinstance(value, str) and LABEL_NAME.fullmatch(value):
            return value
        return _shortened(self._operand(kind, value))


def _pops(instruction: Instruction) -> int:
    """Count what the instruction takes off the stack."""
    more = 0
    for index, factor in instruction.opcode.counts:
        kind, value = instruction.opcode.operands[index], instruction.operands[index]
        if isinstance(value, list):
            more += len(value)
        elif isinstance(value, int):
            more += (value.bit_count() if kind is Operand.SPREAD else value) * factor
    return instruction.opcode.pops + more


def _values_by_word(words: list[str], values: list[str]) -> dict[str, str]:
    """Give each word before the arrow its value; the one that ends in `…` takes all that is left."""
    found = {}
    left = list(values)
    for word in words:
        if word == UNKNOWN:
            found[word] = UNKNOWN if left else ""
        elif word.endswith(UNKNOWN):
            found[word] = _shortened(", ".join(left))
        else:
            found[word] = left.pop(0) if left else ""
    return found


def _filled(template: str, words: dict[str, str]) -> str:
    for word, value in words.items():
        if not value:
            template = re.sub(rf"[,: ]*{re.escape(word)}(?!\w)", "", template)
    return _WORD.sub(lambda found: _placed(found, words), template).strip()


def _placed(found: re.Match[str], words: dict[str, str]) -> str:
    """Return the value for a word, in parentheses where an operator next to it binds tighter."""
    value = words.get(found[0], found[0])
    if " " not in value or value[0] in _WHOLE or value in COMPARISONS:
        return value
    before, after = found.string[: found.start()].rstrip()[-1:], found.string[found.end() :].lstrip()[:1]
    return value if before in _OPENING and after in _CLOSING else f"({value})"


def _shortened(text: str) -> str:
    line = " ".join(text.split("\n"))
    return line if len(line) <= WIDTH else line[: WIDTH - 1] + UNKNOWN
