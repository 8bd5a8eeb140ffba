"""Proves that APPEND changes only lists that nobody else holds: a list could otherwise come to hold itself.

A list is *own* from LIST on for as long as the code has it in one place: on the stack, or in a slot together with
copies of that slot on the stack. Whatever else takes it, puts it in other data or shares it ends that. The stack's
depth has been proven before. A slot may change on the way round a loop, so the walk repeats until nothing changes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import TypeAlias

from noetlvm.bytecode.isa import Flow
from noetlvm.bytecode.program import Expression, Instruction
from noetlvm.bytecode.verifier_codes import Refused
from noetlvm.bytecode.verifier_stack import count_taken, integer

_OWN = -1
"""An own list that only the stack holds. A number from 0 on: the own list that the slot of this number holds."""

_Tags: TypeAlias = "dict[int, int]"
"""Height on the stack to what lies there; whatever is not an own list is left out."""

_TRACKED_MAX = 64
"""Own lists on the stack, and in slots, that are followed at once; of more, the others count as ordinary values."""

_CHANGES_MAX = 8
"""How often one instruction is looked at anew before everything before it counts as ordinary values."""


@dataclass(slots=True)
class _State:
    """What is known before an instruction."""

    depth: int
    stack: _Tags
    slots: frozenset[int]
    """Slots that hold an own list."""

    def tag(self, below_top: int) -> int | None:
        return self.stack.get(self.depth - 1 - below_top)

    def share(self, tag: int | None) -> None:
        """Take note that others hold this list now."""
        if tag is not None and tag != _OWN:
            self.forget(tag)

    def forget(self, slot: int) -> None:
        """Count the list of a slot, and what was read from the slot, as ordinary values."""
        if slot in self.slots:
            self.slots -= {slot}
            self.stack = {height: tag for height, tag in self.stack.items() if tag != slot}

    def take(self, count: int) -> None:
        """Drop values from the top without looking at them."""
        self.depth -= count
        for height in [height for height in self.stack if height >= self.depth]:
            del self.stack[height]

    def push(self, tag: int | None) -> None:
        if tag is not None and len(self.stack) < _TRACKED_MAX:
            self.stack[self.depth] = tag
        else:
            self.share(tag)
        self.depth += 1

    def copy(self) -> _State:
        return _State(self.depth, dict(self.stack), self.slots)


def check_appends(expression: Expression) -> None:
    """Refuse an expression whose APPEND may change a list that others hold."""
    code = expression.code
    before: dict[int, _State] = {0: _State(0, {}, frozenset())}
    changes = [0] * len(code)
    waiting = [0]
    while waiting:
        at = heappop(waiting)  # the topmost, so that paths have met before what lies below is looked at
        for target, state in _after(code[at], at, before[at].copy()):
            known = before.get(target)
            if known is None:
                before[target] = state
            elif not _weaken(known, state, changes[target]):
                continue
            changes[target] += 1
            heappush(waiting, target)


def _after(instruction: Instruction, at: int, state: _State) -> list[tuple[int, _State]]:
    """Return where control goes and with what."""
    opcode = instruction.opcode
    _PERFORM.get(opcode.name, _use)(instruction, at, state)
    if opcode.flow is Flow.END:
        return []
    if opcode.flow is Flow.NEXT:
        return [(at + 1, state)]
    target = state.copy()
    target.depth += (opcode.pushes if opcode.target_pushes is None else opcode.target_pushes) - opcode.pushes
    jumped = (integer(instruction, 0), target)
    return [jumped] if opcode.flow is Flow.JUMP else [jumped, (at + 1, state)]


def _weaken(known: _State, other: _State, changes: int) -> bool:
    """Keep in `known` only what holds in both; tell whether it lost anything."""
    was = (known.stack, known.slots)
    if changes >= _CHANGES_MAX:
        known.stack, known.slots = {}, frozenset()
        return was != ({}, frozenset())
    for height in known.stack.keys() | other.stack.keys():
        here, there = known.stack.get(height), other.stack.get(height)
        if here != there:
            known.stack = {place: tag for place, tag in known.stack.items() if place != height}
            known.share(here)
            known.share(there)
    for slot in known.slots - other.slots:
        known.forget(slot)
    return was != (known.stack, known.slots)


# ---- instructions; each changes the state


def _use(instruction: Instruction, _at: int, state: _State) -> None:
    """Whatever is taken may be held by others from now on; what is pushed is an ordinary value."""
    taken = count_taken(instruction)
    for tag in [tag for height, tag in state.stack.items() if height >= state.depth - taken]:
        state.share(tag)
    state.take(taken)
    state.depth += instruction.opcode.pushes


def _list(instruction: Instruction, at: int, state: _State) -> None:
    _use(instruction, at, state)
    state.depth -= 1
    state.push(_OWN)


def _append(instruction: Instruction, at: int, state: _State) -> None:
    state.share(state.tag(0))  # first, since it may be the list itself
    own = state.tag(1)
    if own is None:
        raise Refused("V022", at, "it must be made by LIST and kept in one place")
    state.take(2)
    state.push(own)


def _local(instruction: Instruction, _at: int, state: _State) -> None:
    slot = integer(instruction, 0)
    state.push(slot if slot in state.slots else None)


def _store(instruction: Instruction, _at: int, state: _State) -> None:
    slot, tag = integer(instruction, 0), state.tag(0)
    state.take(1)
    if tag == slot:
        return
    state.share(tag)
    state.forget(slot)
    if tag == _OWN and len(state.slots) < _TRACKED_MAX:
        state.slots |= {slot}


def _dup(_instruction: Instruction, _at: int, state: _State) -> None:
    state.share(state.tag(0))
    state.take(1)
    state.depth += 2


def _swap(_instruction: Instruction, _at: int, state: _State) -> None:
    _rearrange(state, (0, 1))


def _rot3(_instruction: Instruction, _at: int, state: _State) -> None:
    _rearrange(state, (0, 2, 1))


def _rearrange(state: _State, order: tuple[int, ...]) -> None:
    """Put back what lies so far below the top, in this order."""
    tags = [state.tag(below_top) for below_top in order]
    state.take(len(order))
    for tag in tags:
        state.push(tag)


def _unpack(instruction: Instruction, at: int, state: _State) -> None:
    _use(instruction, at, state)
    state.depth += integer(instruction, 0)


_PERFORM: dict[str, Callable[[Instruction, int, _State], None]] = {
    "LIST": _list,
    "APPEND": _append,
    "LOCAL": _local,
    "STORE": _store,
    "DUP": _dup,
    "SWAP": _swap,
    "ROT3": _rot3,
    "UNPACK": _unpack,
}
"""Instructions that keep a list own, or move it. All others use what they take."""
