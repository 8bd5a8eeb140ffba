"""Which keys of `ctx` a step reads and writes, by its code."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from noetlvm.bytecode.program import Expression, Instruction, Transition


def ctx_reads(step: Transition) -> frozenset[str]:
    """Return the keys that some template of the step may read. A bare name may be one of them (S11)."""
    return frozenset(key for expression in _expressions(step) for key in _keys_read(expression.code))


def ctx_writes(step: Transition) -> frozenset[str]:
    """Return the keys that some rule of the step writes."""
    code = step.pipeline.code if step.pipeline else ()
    patches = [i.operands[1] for i in code if i.opcode.name == "PATCH"]
    return frozenset(key for patch in patches if isinstance(patch, Expression) for key in _keys_made(patch.code))


def _expressions(step: Transition) -> Iterator[Expression]:
    found: list[object] = [step.admit, *(loop.collection for loop in step.loops)]
    found += [part for arc in step.arcs for part in (arc.guard, arc.args)]
    found += [operand for i in (step.pipeline.code if step.pipeline else ()) for operand in i.operands]
    return (expression for expression in found if isinstance(expression, Expression))


def _keys_read(code: tuple[Instruction, ...]) -> Iterator[str]:
    for at, instruction in enumerate(code):
        if instruction.opcode.name == "BARE":
            yield str(instruction.operands[0])
        elif instruction.opcode.name == "NAME" and instruction.operands[0] == "ctx":
            yield from _key_after(code[at + 1 : at + 3])


def _key_after(following: tuple[Instruction, ...]) -> Iterator[str]:
    """`ctx.key` and `ctx['key']`; which key `ctx[…]` reads otherwise, only a run can tell."""
    first, last = following[0], following[-1]
    is_item = first.opcode.name == "CONST" and last.opcode.name in ("ITEM", "METHOD")
    if first.opcode.name == "ATTR" or is_item:
        yield str(first.operands[0])


def _keys_made(code: tuple[Instruction, ...]) -> Iterator[str]:
    """Return the keys that a patch can write: the verifier proved that each RETURN follows what makes the mapping."""
    for before, instruction in pairwise(code):
        if instruction.opcode.name == "RETURN":
            keys = before.operands[0]
            assert isinstance(keys, list | dict)
            yield from keys
