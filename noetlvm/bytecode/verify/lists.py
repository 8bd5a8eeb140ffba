"""Proves that APPEND changes only lists without aliases: a list could otherwise contain itself.

A list is *unaliased* (own) from its LIST instruction until a second reference to it exists; a slot and copies of that
slot on the stack count as one. Any other use ends it. The shape of the stack has been proven before.

Two walks, top to bottom. The first one ignores jumps back and notes where slots lose their own lists. In the second, a
for block begins without those that it loses itself, and every jump back must find what its for block began with.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable
from typing import TypeAlias

from noetlvm.bytecode.isa import ControlFlow, OpcodeName
from noetlvm.bytecode.program import ExpressionCode, Instruction
from noetlvm.bytecode.verify.operands import CheckError, count_taken, integer

_OWN = -1
"""An own list that only the stack holds. A number from 0 on: the own list that the slot of this number holds."""

_Tags: TypeAlias = "dict[int, int]"
"""Own lists on the stack, by their height; other values are left out."""

_Losses: TypeAlias = "dict[int, list[int]]"
"""By slot: the instructions at which it loses an own list, in ascending order."""

_TRACKED_MAX = 16
"""Own lists on the stack, and in slots, that are followed at once; of more, the oldest count as ordinary values. Our
compiler needs the newest: a filtered for block appends to its list, and is done with it before its body begins."""


class _State:
    """What is known before an instruction."""

    __slots__ = ("at", "depth", "losses", "slots", "stack")

    def __init__(self, depth: int, stack: _Tags, slots: frozenset[int], losses: list[tuple[int, int]]) -> None:
        self.at = 0
        self.depth = depth
        self.stack = stack
        self.slots = slots
        """Slots that hold an own list."""
        self.losses = losses
        """Slots that lost one, and where; common to all states of a walk."""

    def tag(self, below_top: int) -> int | None:
        return self.stack.get(self.depth - 1 - below_top)

    def share(self, tag: int | None) -> None:
        """Record that a list now has an alias."""
        if tag is not None and tag != _OWN:
            self.forget(tag)

    def forget(self, slot: int) -> None:
        """Count the list of a slot, and what was read from the slot, as ordinary values."""
        if slot in self.slots:
            self.losses.append((slot, self.at))
            self.slots -= {slot}
            self.stack = {height: tag for height, tag in self.stack.items() if tag != slot}

    def take(self, count: int) -> None:
        """Drop values from the top without looking at them."""
        self.depth -= count
        for height in [height for height in self.stack if height >= self.depth]:
            del self.stack[height]

    def push(self, tag: int | None) -> None:
        if tag is not None:
            if len(self.stack) >= _TRACKED_MAX:
                self.share(self.stack.pop(min(self.stack)))
            if tag == _OWN or tag in self.slots:  # it may be the one that was just given up
                self.stack[self.depth] = tag
        self.depth += 1

    def keep(self, slot: int) -> None:
        """Let a slot hold an own list."""
        if len(self.slots) >= _TRACKED_MAX:
            self.forget(min(self.slots))
        self.slots |= {slot}

    def meet(self, other: _State) -> None:
        """Keep only what holds in both."""
        for height in self.stack.keys() | other.stack.keys():
            here, there = self.stack.get(height), other.stack.get(height)
            if here != there:
                self.stack = {place: tag for place, tag in self.stack.items() if place != height}
                self.share(here)
                self.share(there)
        for slot in self.slots - other.slots:
            self.forget(slot)

    def holds(self, other: _State) -> bool:
        """Return whether this state implies the other."""
        return other.slots <= self.slots and other.stack.items() <= self.stack.items()

    def copy(self, depth: int) -> _State:
        return _State(depth, dict(self.stack), self.slots, self.losses)


def check_appends(expression: ExpressionCode) -> None:
    """Refuse an expression whose APPEND may change an aliased list."""
    code = expression.code
    losses: _Losses = defaultdict(list)
    for slot, at in sorted(_Walk(code, {}, {}).run()):
        losses[slot].append(at)
    _Walk(code, losses, _ends(code)).run()


def _ends(code: tuple[Instruction, ...]) -> dict[int, int]:
    """Return for each instruction that is jumped back to the last one that does so."""
    jumps = ((at, instruction) for at, instruction in enumerate(code) if instruction.opcode.flow in _JUMPS)
    return {target: at for at, instruction in jumps if (target := integer(instruction, 0)) <= at}


_JUMPS = frozenset({ControlFlow.JUMP, ControlFlow.BRANCH})


class _Walk:
    """One walk over the code. Without `ends`, jumps back are ignored."""

    def __init__(self, code: tuple[Instruction, ...], losses: _Losses, ends: dict[int, int]) -> None:
        self.code = code
        self.losses = losses
        self.ends = ends
        self.ahead: dict[int, _State] = {}
        """States with which jumps arrive further down."""
        self.began: dict[int, _State] = {}
        """States with which for blocks began that are jumped back to."""

    def run(self) -> list[tuple[int, int]]:
        """Return the slots that lost an own list, and where."""
        found: list[tuple[int, int]] = []
        state: _State | None = _State(0, {}, frozenset(), found)
        for at, instruction in enumerate(self.code):
            state = self._arrived(at, state)
            _PERFORM.get(instruction.opcode.name, _use)(instruction, at, state)
            flow = instruction.opcode.flow
            if flow in _JUMPS:
                self._jump(instruction, at, state)
            if flow is ControlFlow.JUMP or flow is ControlFlow.END:
                state = None
        return found

    def _arrived(self, at: int, state: _State | None) -> _State:
        """Join the paths into an instruction; there is at least one."""
        jumped = self.ahead.pop(at, None)
        if state is None:
            assert jumped is not None
            state = jumped
        state.at = at
        if jumped is not None and jumped is not state:
            state.meet(jumped)
        if at in self.ends:
            for slot in sorted(state.slots):
                if self._loses(slot, at):
                    state.forget(slot)
            self.began[at] = state.copy(state.depth)
        return state

    def _loses(self, slot: int, head: int) -> bool:
        """Return whether a slot loses an own list in the for block that begins here."""
        places = self.losses.get(slot, [])
        next_place = bisect_left(places, head)
        return next_place < len(places) and places[next_place] <= self.ends[head]

    def _jump(self, instruction: Instruction, at: int, state: _State) -> None:
        opcode, target = instruction.opcode, integer(instruction, 0)
        at_target = opcode.pushes if opcode.target_pushes is None else opcode.target_pushes
        arriving = state.copy(state.depth + at_target - opcode.pushes)
        if target <= at:
            if target in self.began and not arriving.holds(self.began[target]):
                raise CheckError(
                    "V022", at, "the for block would start again with a list that it does not own any more"
                )
            return
        known = self.ahead.setdefault(target, arriving)
        if known is not arriving:
            known.at = target
            known.meet(arriving)


# ---- instructions; each changes the state


def _use(instruction: Instruction, _at: int, state: _State) -> None:
    """Values that are popped may be aliased from now on; those pushed are ordinary values."""
    taken = count_taken(instruction)
    if state.stack:
        for tag in [tag for height, tag in state.stack.items() if height >= state.depth - taken]:
            state.share(tag)
        state.take(taken)
    else:
        state.depth -= taken
    state.depth += instruction.opcode.pushes


def _list(instruction: Instruction, at: int, state: _State) -> None:
    _use(instruction, at, state)
    state.depth -= 1
    state.push(_OWN)


def _append(instruction: Instruction, at: int, state: _State) -> None:
    state.share(state.tag(0))  # first, since it may be the list itself
    own = state.tag(1)
    if own is None:
        raise CheckError("V022", at, "it must be made by LIST and have no second reference")
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
    if tag == _OWN:
        state.keep(slot)


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


_PERFORM: dict[OpcodeName, Callable[[Instruction, int, _State], None]] = {
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
