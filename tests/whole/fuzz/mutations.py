"""Random changes to bundles: to their bytes, to their sections, and to the program before it is encoded."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from noetlvm.bytecode.codec.container import sections
from noetlvm.bytecode.isa import BACKOFFS, COMPARISONS, EXPRESSION, NAMES, PIPELINE, REDUCERS, Opcode, Operand
from noetlvm.bytecode.program import (
    ExpressionCode,
    Instruction,
    LoopHeader,
    Pipeline,
    PlaybookCode,
    Program,
    Transition,
)
from noetlvm.language.filters import FILTERS, FUNCTIONS, TESTS
from noetlvm.language.methods import METHODS
from noetlvm.record import changed
from tests.noetlvm.bytecode.malformed.pieces import HEADER
from tests.whole.fuzz.parts import Code, each_expression, each_playbook, each_step, expressions

# ---- bytes


def _flip(random: Random, data: bytearray, _other: bytes) -> None:
    data[random.randrange(len(data))] ^= 1 << random.randrange(8)


def _set(random: Random, data: bytearray, _other: bytes) -> None:
    data[random.randrange(len(data))] = random.choice((0, 1, 0x7F, 0x80, 0x90, 0xC0, 0xC1, 0xC4, 0xDC, 0xFF))


def _delete(random: Random, data: bytearray, _other: bytes) -> None:
    start = random.randrange(len(data))
    del data[start : start + random.randint(1, 8)]


def _insert(random: Random, data: bytearray, _other: bytes) -> None:
    at = random.randrange(len(data) + 1)
    data[at:at] = random.randbytes(random.randint(1, 8))


def _repeat(random: Random, data: bytearray, _other: bytes) -> None:
    start = random.randrange(len(data))
    data[start:start] = data[start : start + random.randint(1, 16)]


def _splice(random: Random, data: bytearray, other: bytes) -> None:
    start, at = random.randrange(len(other)), random.randrange(len(data))
    data[at : at + 16] = other[start : start + random.randint(1, 16)]


def _cut(random: Random, data: bytearray, _other: bytes) -> None:
    del data[random.randrange(len(data)) :]


_BYTES: tuple[Callable[[Random, bytearray, bytes], None], ...] = (
    _flip,
    _flip,
    _set,
    _delete,
    _insert,
    _repeat,
    _splice,
    _cut,
)


def changed_bytes(random: Random, data: bytes, other: bytes) -> bytes:
    """Change some bytes of a bundle."""
    bent = bytearray(data)
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        if bent:
            random.choice(_BYTES)(random, bent, other)
    return bytes(bent)


def changed_sections(random: Random, data: bytes, other: bytes) -> bytes:
    """Leave out, repeat, exchange or replace whole sections."""
    frames = [data[slice(*section.frame)] for section in sections(data)]
    foreign = [other[slice(*section.frame)] for section in sections(other)]
    at = random.randrange(len(frames))
    match random.randrange(4):
        case 0:
            del frames[at]
        case 1:
            frames.insert(at, random.choice(frames))
        case 2:
            random.shuffle(frames)
        case _:
            frames[at] = foreign[min(at, len(foreign) - 1)]
    return HEADER + bytes((len(frames),)) + b"".join(frames)


# ---- instructions


def _operand(random: Random, kind: Operand, code: Code, slots: int, others: list[ExpressionCode]) -> object:
    """Return an operand that is often good."""
    choices: dict[Operand, Callable[[], object]] = {
        Operand.CONST: lambda: random.choice((None, True, 0, 1, -1, 2.5, "a", "", [], [1, [2]], {}, {"a": 1})),
        Operand.TEXT: lambda: random.choice(("a", "id", "index", "fetch", "rows", "")),
        Operand.WORDS: lambda: random.choice(([], [], ["a"], ["default_value"], ["a", "b"])),
        Operand.EXPR: lambda: random.choice(others),
        Operand.OPTIONAL_EXPR: lambda: random.choice((None, *others)),
        Operand.TARGET: lambda: random.randrange(len(code) + 1),
        Operand.COUNT: lambda: random.choice((0, 1, 1, 2, 3)),
        Operand.LIMIT: lambda: random.choice((0, 1, 2, 3, *others)),
        Operand.SLOT: lambda: random.randrange(slots + 1),
        Operand.NAME: lambda: random.choice(NAMES),
        Operand.COMPARISON: lambda: random.choice(COMPARISONS),
        Operand.BACKOFF: lambda: random.choice(BACKOFFS),
        Operand.SPREAD: lambda: random.choice((0, 0, 1, 2, 3)),
        Operand.FILTER: lambda: random.choice(tuple(FILTERS)),
        Operand.TEST: lambda: random.choice(tuple(TESTS)),
        Operand.FUNCTION: lambda: random.choice(tuple(FUNCTIONS)),
        Operand.METHOD: lambda: random.choice(tuple(METHODS)),
    }
    return choices[kind]()


class _Writer:
    """Changes one piece of code at random."""

    def __init__(self, random: Random, table: dict[str, Opcode], code: Code, slots: int, others: list[ExpressionCode]):
        self.random = random
        self.table = table
        self.code = list(code)
        self.slots = slots
        self.others = others

    def change(self) -> Code:
        for _ in range(self.random.choice((1, 1, 1, 2, 3))):
            self.random.choice(self._CHANGES)(self)
        return tuple(self.code)

    def _at(self) -> int:
        return self.random.randrange(len(self.code) or 1)

    def _any(self) -> Instruction:
        opcode = self.random.choice(tuple(self.table.values()))
        return Instruction(opcode, tuple(self._operand(kind) for kind in opcode.operands))

    def _operand(self, kind: Operand) -> object:
        return _operand(self.random, kind, tuple(self.code), self.slots, self.others)

    def _move_targets(self, after: int, by: int) -> None:
        """Let jumps go where they went before something was put in or taken out."""
        for at, instruction in enumerate(self.code):
            moved = tuple(
                value + by if kind is Operand.TARGET and isinstance(value, int) and value > after else value
                for kind, value in zip(instruction.opcode.operands, instruction.operands, strict=True)
            )
            self.code[at] = changed(instruction, operands=moved)

    def _insert(self) -> None:
        at = self._at()
        new = self._any()
        if self.random.random() < 0.8:
            self._move_targets(at - 1, 1)
        self.code.insert(at, new)

    def _insert_pair(self) -> None:
        """Put in code that leaves the stack as it was, to get past the first checks."""
        at = self._at()
        pairs = (
            ("CONST", "POP"),
            ("NAME", "POP"),
            ("TEXT_BEGIN", "TEXT_END", "POP"),
            ("DUP", "POP"),
            ("LOCAL", "STORE"),
            ("LIST", "CONST", "APPEND", "POP"),
            ("CONST", "CONST", "APPEND", "POP"),
            ("LIST", "DUP", "APPEND", "POP"),
            ("LIST", "STORE", "LOCAL", "LOCAL", "APPEND", "POP"),
            ("LIST", "STORE", "LOCAL", "CONST", "APPEND", "STORE"),
            ("NAME", "ATTR", "CONST", "APPEND", "POP"),
            ("DUP", "ITER", "NEXT"),
            ("LOOP", "POP"),
            ("SWAP", "SWAP"),
        )
        names = self.random.choice(pairs)
        if not all(name in self.table for name in names):
            return self._insert()
        new = [Instruction(o := self.table[name], tuple(map(self._operand, o.operands))) for name in names]
        self._move_targets(at - 1, len(new))
        self.code[at:at] = new
        return None

    def _delete(self) -> None:
        if len(self.code) > 1:
            at = self._at()
            del self.code[at]
            if self.random.random() < 0.8:
                self._move_targets(at, -1)

    def _duplicate(self) -> None:
        at = self._at()
        self._move_targets(at, 1)
        self.code.insert(at, self.code[at])

    def _reorder(self) -> None:
        first, second = self._at(), self._at()
        self.code[first], self.code[second] = self.code[second], self.code[first]

    def _replace(self) -> None:
        """Put another instruction with the same kinds of operands in place of one."""
        at = self._at()
        old = self.code[at]
        alike = [opcode for opcode in self.table.values() if opcode.operands == old.opcode.operands]
        self.code[at] = changed(old, opcode=self.random.choice(alike))

    def _edit(self) -> None:
        at = self._at()
        old = self.code[at]
        if old.operands:
            index = self.random.randrange(len(old.operands))
            operands = list(old.operands)
            operands[index] = self._operand(old.opcode.operands[index])
            self.code[at] = changed(old, operands=tuple(operands))

    def _retarget(self) -> None:
        """Move one jump by a little."""
        jumps = [at for at, instruction in enumerate(self.code) if Operand.TARGET in instruction.opcode.operands]
        if not jumps:
            return self._edit()
        at = self.random.choice(jumps)
        old = self.code[at]
        index = old.opcode.operands.index(Operand.TARGET)
        target = old.operands[index]
        assert isinstance(target, int)
        operands = list(old.operands)
        operands[index] = max(0, target + self.random.choice((-2, -1, 1, 2)))
        self.code[at] = changed(old, operands=tuple(operands))
        return None

    _CHANGES = (_insert, _insert_pair, _insert_pair, _delete, _duplicate, _reorder, _replace, _edit, _edit, _retarget)


# ---- programs


def _in_one_expression(random: Random, program: Program) -> Program:
    all_of_them = list(expressions(program))
    if not all_of_them:
        return program
    chosen = random.randrange(len(all_of_them))
    count = iter(range(len(all_of_them)))

    def edit(expression: ExpressionCode) -> ExpressionCode:
        if next(count) != chosen:
            return expression
        slots = max(0, expression.slots + random.choice((0, 0, 0, 0, 1, -1)))
        writer = _Writer(random, EXPRESSION, expression.code, slots, all_of_them)
        return ExpressionCode(writer.change(), slots)

    return each_expression(program, edit)


def _in_one_pipeline(random: Random, program: Program) -> Program:
    all_of_them = list(expressions(program))

    def edit(step: Transition) -> Transition:
        if step.pipeline is None or not all_of_them or random.random() < 0.4:
            return step
        old = step.pipeline
        writer = _Writer(random, PIPELINE, old.code, old.counters, all_of_them)
        return changed(step, pipeline=Pipeline(writer.change(), old.counters))

    return each_step(program, edit)


def _exchange_expressions(random: Random, program: Program) -> Program:
    """Let expressions stand in each other's places."""
    all_of_them = list(expressions(program))
    return each_expression(program, lambda old: random.choice(all_of_them) if random.random() < 0.2 else old)


def _name(random: Random, program: Program) -> str:
    names = [step.name for playbook in program.playbooks for step in playbook.steps]
    return random.choice((*names, "nowhere", "", "a b"))


def _in_the_net(random: Random, program: Program) -> Program:
    def loop(old: LoopHeader) -> LoopHeader:
        return random.choice(
            (
                old,
                changed(old, width=random.choice((0, 1, 2))),
                changed(old, parallel=not old.parallel),
                changed(old, iterator=random.choice(("item", "index", "a b"))),
                changed(old, reducers=tuple((random.choice("ab"), random.choice((*REDUCERS, "no"))) for _ in "ab")),
            )
        )

    def step(old: Transition) -> Transition:
        arcs = tuple(
            changed(arc, target=_name(random, program), handles_failure=random.random() < 0.5)
            if random.random() < 0.3
            else arc
            for arc in old.arcs
        )
        name = _name(random, program) if random.random() < 0.1 else old.name
        loops = tuple(map(loop, old.loops)) * random.choice((1, 1, 1, 0, 2))
        return changed(old, name=name, arcs=arcs, loops=loops)

    def playbook(old: PlaybookCode) -> PlaybookCode:
        return changed(old, entry_step=_name(random, program)) if random.random() < 0.1 else old

    return each_playbook(each_step(program, step), playbook)


_PROGRAM: tuple[Callable[[Random, Program], Program], ...] = (
    _in_one_expression,
    _in_one_expression,
    _in_one_expression,
    _in_one_pipeline,
    _exchange_expressions,
    _in_the_net,
)


def changed_program(random: Random, program: Program) -> Program:
    """Change the program itself; what comes out can be written down, valid or not."""
    return random.choice(_PROGRAM)(random, program)
