"""Code in one line an instruction, for tests to compare with."""

from __future__ import annotations

from noetlc.codegen.expressions import lower_template
from noetlc.syntax.template_parser import parse_template
from noetlvm.bytecode.program import ExpressionCode, Instruction, Pipeline


def listing(code: ExpressionCode | Pipeline) -> list[str]:
    """Return instructions as text, operands after a blank; an expression as an operand is its own code in brackets."""
    return [_line(instruction) for instruction in code.code]


def lowered(text: str, visible: frozenset[str] = frozenset({"ctx", "workload"}), require: str | None = None) -> str:
    """Return the code of a template, instructions separated by semicolons, without the final RETURN."""
    *code, last = listing(lower_template(parse_template(text), visible=visible, require=require).expression)
    assert last == "RETURN"
    return "; ".join(code)


def _line(instruction: Instruction) -> str:
    return " ".join([instruction.opcode.name, *(_operand(operand) for operand in instruction.operands)])


def _operand(operand: object) -> str:
    return f"[{'; '.join(listing(operand))}]" if isinstance(operand, ExpressionCode) else repr(operand)
