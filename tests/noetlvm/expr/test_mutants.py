"""Verified code runs the same translated and interpreted, and without an internal error, however odd it is.

The compiler's code for generated templates is changed at random. What the verifier still accepts must give the same
value, or the same error at the same instruction, and use the same fuel.
"""

from __future__ import annotations

from contextlib import suppress
from random import Random

import pytest

from noetlc.codegen.expressions import lower_template
from noetlc.syntax.template_parser import parse_template
from noetlvm.bytecode.isa import EXPRESSION, Operand
from noetlvm.bytecode.program import ExpressionCode, Instruction
from noetlvm.bytecode.verify.expressions import prove
from noetlvm.bytecode.verify.operands import CheckError
from noetlvm.expr.errors import ExpressionError, Fuel
from noetlvm.record import changed
from tests.noetlvm.expr.evaluation import run
from tests.whole.oracle.generator import CONTEXT, Generator

_PLAIN = [opcode for opcode in EXPRESSION.values() if not opcode.operands]
_FUEL = Fuel(20_000, 1 << 20)


def mutant(random: Random, expression: ExpressionCode) -> ExpressionCode:
    """Return the code with one to three changes."""
    code = list(expression.code)
    for _ in range(random.randint(1, 3)):
        at = random.randrange(len(code))
        change = random.choice((_removed, _doubled, _exchanged, _replaced, _retargeted, _inserted))
        change(random, code, at)
        if not code:
            return expression
    return changed(expression, code=tuple(code))


def _removed(_random: Random, code: list[Instruction], at: int) -> None:
    del code[at]


def _doubled(_random: Random, code: list[Instruction], at: int) -> None:
    code.insert(at, code[at])


def _exchanged(random: Random, code: list[Instruction], at: int) -> None:
    other = random.randrange(len(code))
    code[at], code[other] = code[other], code[at]


def _replaced(random: Random, code: list[Instruction], at: int) -> None:
    alike = [opcode for opcode in EXPRESSION.values() if opcode.operands == code[at].opcode.operands]
    code[at] = Instruction(random.choice(alike), code[at].operands)


def _inserted(random: Random, code: list[Instruction], at: int) -> None:
    code.insert(at, Instruction(random.choice(_PLAIN), ()))


def _retargeted(random: Random, code: list[Instruction], at: int) -> None:
    jumps = [index for index, i in enumerate(code) if Operand.TARGET in i.opcode.operands]
    if jumps:
        chosen = random.choice(jumps)
        code[chosen] = Instruction(code[chosen].opcode, (random.randrange(len(code)),))


def is_verified(expression: ExpressionCode) -> bool:
    try:
        prove(expression, {})
    except CheckError:
        return False
    return True


@pytest.mark.parametrize("seed", range(4))
def test_verified_mutants_run_the_same_both_ways(seed: int) -> None:
    random, generator = Random(seed), Generator(seed)
    verified = 0
    for _ in range(150):
        original = lower_template(parse_template(generator.template())).expression
        for _ in range(8):
            other = mutant(random, original)
            if not is_verified(other):
                continue
            verified += 1
            with suppress(ExpressionError):  # that both ways raise it is what `run` makes sure of
                run(other, CONTEXT, _FUEL)
    assert verified > 100
