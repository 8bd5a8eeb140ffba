"""Which keys of `ctx` a step reads and writes, by its code."""

from __future__ import annotations

from collections.abc import Iterator

from noetlvm.bytecode.program import Expression, Instruction, Transition
from noetlvm.bytecode.verify.stack import count_taken


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
    """Return the keys of the mapping that a patch makes: whichever way its code goes, it makes the same keys."""
    stack: list[object] = []
    at = 0
    while code[at].opcode.name != "RETURN":
        made = code[at]
        taken = count_taken(made)
        top = stack[len(stack) - taken :]
        del stack[len(stack) - taken :]
        if made.opcode.name == "CONST":
            stack.append(made.operands[0])
        elif made.opcode.name == "MAP":
            stack.append({str(key): None for key in top[::2]})
        else:
            stack += [None] * _pushed(made)
        at = _after(made, at)
    if isinstance(stack[-1], dict):
        yield from stack[-1]


def _pushed(instruction: Instruction) -> int:
    skips = instruction.opcode.name == "NEXT"  # a for block is left at once
    return (instruction.opcode.target_pushes or 0) if skips else instruction.opcode.pushes


def _after(instruction: Instruction, at: int) -> int:
    if instruction.opcode.name in ("JUMP", "NEXT"):
        target = instruction.operands[0]
        assert isinstance(target, int)
        return target
    return at + 1
