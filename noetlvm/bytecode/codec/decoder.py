"""Reads a bundle back into a program, or refuses it with one `MalformedBundleError`. `layout` defines what is where.

Decoding is canonical: a bundle is read only if encoding the program again would give the same bytes (a newer minor
version and unknown optional sections aside). That is not tried out but made sure of on the way: values and operands in
their shortest form, nothing left over, no key, constant or expression twice, none unused, and all of them in the order
of their first use.

Equal instructions become one object, which saves most of the time and memory. Whether the code is sound is for the
verifier to check.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple, NoReturn

from noetlvm.bytecode.codec import layout
from noetlvm.bytecode.codec.container import DEBUG, REQUIRED, sections
from noetlvm.bytecode.codec.debug_section import decode_debug
from noetlvm.bytecode.codec.malformed import MalformedCode
from noetlvm.bytecode.codec.reader import ByteReader
from noetlvm.bytecode.isa import BACKOFFS, BY_NUMBER, COMPARISONS, NAMES, OPCODES, Area, Operand
from noetlvm.bytecode.limits import (
    CODE_BYTES_MAX,
    CODE_COST,
    CONSTANT_COST,
    INSTRUCTION_COST,
    NEW_INSTRUCTION_COST,
    OPERAND_MAX,
    SLOTS_MAX,
)
from noetlvm.bytecode.program import (
    ArcCode,
    DebugMap,
    ExpressionCode,
    Instruction,
    KeychainEntry,
    LoopHeader,
    Pipeline,
    PlaybookCode,
    Program,
    Transition,
    Value,
    usual_name,
)

_Head = tuple[str, str, dict[str, Value], dict[str, Value], str, str | None, bool]
"""The fields of a playbook's metadata, in the order of `Playbook`."""


def decode(data: bytes, *, debug: bool = True) -> Program:
    """Read a bundle; raise `MalformedBundleError` if there is anything wrong with it.

    Without `debug` the debug section stays unread: it is most of the work, and nothing runs by it.
    """
    return _Decoder(data).program(debug)


class _Decoder:
    """Reads the sections of one bundle, each after those it refers to."""

    def __init__(self, data: bytes) -> None:
        self.payloads = {section.id: section.payload for section in sections(data)}
        self.reader = ByteReader(data, "container")
        self.pools = Pools(self.reader)

    def program(self, debug: bool) -> Program:
        """Read everything."""
        self._open("constants")
        self.pools.read_constants()
        if self._open("expressions"):
            self.pools.read_expressions()
        pipelines = self.pools.read_pipelines() if self._open("pipelines") else []
        self._open("net")
        nets = self._nets(pipelines)
        self._open("metadata")
        heads = [self._head() for _ in nets]
        keychains = self._keychains(len(nets)) if self._open("keychain") else [()] * len(nets)
        workloads = self._workloads(len(nets)) if self._open("workload") else [{} for _ in nets]
        self.reader.close()
        self.pools.check_all_used()
        parts = zip(heads, workloads, keychains, nets, strict=True)
        program = Program(
            tuple(PlaybookCode(*head, workload, keychain, net) for head, workload, keychain, net in parts)
        )
        return Program(program.playbooks, self._debug(program)) if debug and DEBUG in self.payloads else program

    def _open(self, section: str) -> bool:
        """Go to a section, if the bundle has it; the section before it must have been read to its end."""
        if self.reader.section in self.payloads:
            self.reader.close()
        if section not in self.payloads:
            return False
        start, end = self.payloads[section]
        self.reader.open(section, start, end)
        if start == end and section not in REQUIRED:
            self._fail_empty()
        return True

    def _fail_empty(self) -> NoReturn:
        reader = self.reader
        reader.fail(
            MalformedCode.SECTION_EMPTY,
            f"the section `{reader.section}` is left out where it holds nothing",
            reader.start,
        )

    def _debug(self, program: Program) -> DebugMap:
        self._open(DEBUG)
        debug = decode_debug(self.reader, program)
        self.reader.close()
        return debug

    # -- sections with one value for each playbook

    def _nets(self, pipelines: list[Pipeline]) -> list[tuple[Transition, ...]]:
        """Read the nets. There are as many playbooks."""
        reader = self.reader
        pipelines.reverse()
        nets: list[tuple[Transition, ...]] = []
        while reader.at < reader.end:
            nets.append(tuple([self._step(pipelines) for _ in range(reader.array("the list of steps"))]))
        if not nets:
            reader.fail(MalformedCode.NO_PLAYBOOK, "a bundle holds at least one playbook")
        if pipelines:
            reader.fail(MalformedCode.PIPELINE_COUNT, f"{len(pipelines)} pipelines belong to no step")
        return nets

    def _keychains(self, count: int) -> list[tuple[KeychainEntry, ...]]:
        reader = self.reader
        keychains = [tuple([self._credential() for _ in range(reader.array("a keychain"))]) for _ in range(count)]
        if not any(keychains):
            self._fail_empty()
        return keychains

    def _workloads(self, count: int) -> list[dict[str, Value]]:
        workloads = [self.reader.mapping("a workload") for _ in range(count)]
        if not any(workloads):
            self._fail_empty()
        return workloads

    # -- records

    def _head(self) -> _Head:
        reader = self.reader
        reader.record("a playbook", 7)
        return (
            *self._name_and_path(),
            reader.mapping("the metadata of a playbook"),
            reader.mapping("the executor of a playbook"),
            self.pools.text(*self._number("the entry step")),
            self.pools.optional_text(*self._number("the final step")),
            reader.flag("whether a missing next is an error"),
        )

    def _name_and_path(self) -> tuple[str, str]:
        reader = self.reader
        at = reader.at
        name = None if reader.is_null() else reader.text("the name of a playbook")
        path = reader.text("the path of a playbook")
        usual = usual_name(path)
        if name == usual:
            reader.fail(MalformedCode.PADDED_VALUE, "a name that is the last part of the path is left out", at)
        return usual if name is None else name, path

    def _credential(self) -> KeychainEntry:
        reader = self.reader
        reader.record("a credential", 3)
        return KeychainEntry(
            reader.text("the name of a credential"),
            reader.text("the kind of a credential"),
            reader.mapping("the settings of a credential"),
        )

    def _step(self, pipelines: list[Pipeline]) -> Transition:
        reader = self.reader
        reader.record("a step", 6)
        name = self.pools.text(*self._number("the name of a step"))
        at = reader.at
        bits = reader.number("the bits of a step", layout.STEP_BITS)
        if bits & layout.HAS_PIPELINE and not pipelines:
            reader.fail(MalformedCode.PIPELINE_COUNT, "the step has a pipeline, but there are no more", at)
        return Transition(
            name=name,
            admit=self.pools.optional_expression(*self._number("the admission of a step")),
            drops_denied=bool(bits & layout.DROPS_DENIED),
            loops=tuple([self._loop() for _ in range(reader.array("the loops of a step"))]),
            best_effort=bool(bits & layout.BEST_EFFORT),
            pipeline=pipelines.pop() if bits & layout.HAS_PIPELINE else None,
            inclusive=bool(bits & layout.INCLUSIVE),
            arcs=tuple([self._arc() for _ in range(reader.array("the arcs of a step"))]),
            settings=self.pools.mapping(*self._number("the settings of a step")),
        )

    def _loop(self) -> LoopHeader:
        reader = self.reader
        reader.record("a loop", 6)
        collection = self.pools.expression(*self._number("the collection of a loop"))
        iterator = self.pools.text(*self._number("the iterator of a loop"))
        bits = reader.number("the bits of a loop", layout.LOOP_BITS)
        return LoopHeader(
            collection=collection,
            iterator=iterator,
            parallel=bool(bits & layout.PARALLEL),
            width=self.pools.limit(*self._number("the width of a loop")),
            rate=self.pools.optional_expression(*self._number("the rate of a loop")),
            distributed=bool(bits & layout.DISTRIBUTED),
            reducers=self._reducers(),
        )

    def _reducers(self) -> tuple[tuple[str, str], ...]:
        at = self.reader.at
        count = self.reader.array("the reducers of a loop")
        if count % 2:
            self.reader.fail(MalformedCode.WRONG_LENGTH, "reducers come in pairs of a key and a reducer", at)
        words = [self.pools.text(*self._number("a word of the reducers")) for _ in range(count)]
        return tuple(zip(words[::2], words[1::2], strict=True))

    def _arc(self) -> ArcCode:
        reader = self.reader
        reader.record("an arc", 4)
        target = self.pools.text(*self._number("the target of an arc"))
        bits = reader.number("the bits of an arc", layout.ARC_BITS)
        return ArcCode(
            target=target,
            guard=self.pools.optional_expression(*self._number("the guard of an arc")),
            args=self.pools.optional_expression(*self._number("the arguments of an arc")),
            handles_failure=bool(bits & layout.HANDLES_FAILURE),
        )

    def _number(self, what: str) -> tuple[int, int]:
        """Read the number of something in a pool; return it and where it is written."""
        at = self.reader.at
        return self.reader.number(what, OPERAND_MAX), at


_NUMBER: Final = rb"[\x80-\xff]{0,5}[\x00-\x7f]"


def _instruction_pattern(area: Area) -> re.Pattern[bytes]:
    """Return what an instruction of a machine looks like: an opcode, and as many numbers as it has operands."""
    by_count: dict[int, list[bytes]] = {}
    for opcode in OPCODES:
        if opcode.area is area:
            by_count.setdefault(len(opcode.operands), []).append(b"\\x%02x" % opcode.number)
    return re.compile(
        b"|".join(b"[%s]%s" % (b"".join(numbers), _NUMBER * count) for count, numbers in by_count.items())
    )


_INSTRUCTION: Final = {area: _instruction_pattern(area) for area in Area}


class _Piece(NamedTuple):
    """An expression or pipeline that was surveyed: how many slots it has, and where its instructions are."""

    slots: int
    at: int
    end: int


class Pools:
    """The constants and expressions of a bundle, how far they have been used, and the code that uses them."""

    def __init__(self, reader: ByteReader) -> None:
        self.reader = reader
        self.constants: list[Value] = []
        self.expressions: list[ExpressionCode] = []
        self._constants_used = 0
        self._expressions_used = 0
        self._word_lists: set[int] = set()
        self._words: set[bytes] = set()
        """The bytes of instructions that were surveyed."""
        self._known: dict[bytes, Instruction] = {}
        """Those that have become instructions."""

    # -- sections

    def read_constants(self) -> None:
        """Read the section of constants, each there once."""
        reader = self.reader
        seen: set[object] = set()
        while reader.at < reader.end:
            at = reader.at
            reader.spend(CONSTANT_COST, "a constant")
            value = reader.value()
            # Equal bytes are equal constants; a text stands for itself, which saves a copy.
            key = value if type(value) is str else reader.data[at : reader.at]
            if key in seen:
                reader.fail(MalformedCode.CONSTANT_TWICE, f"the constant {len(self.constants)} is there before", at)
            seen.add(key)
            self.constants.append(value)

    def read_expressions(self) -> None:
        """Read the section of expressions, each there once."""
        for slots, code in self._codes(Area.EXPRESSION):
            self.expressions.append(ExpressionCode(code, slots))

    def read_pipelines(self) -> list[Pipeline]:
        """Read the section of pipelines; those of two steps may be alike."""
        return [Pipeline(code, counters) for counters, code in self._codes(Area.PIPELINE)]

    def check_all_used(self) -> None:
        """Refuse a pool with an entry that no code uses."""
        if self._constants_used < len(self.constants):
            self.reader.fail(MalformedCode.CONSTANT_UNUSED, f"the constant {self._constants_used} is never used")
        if self._expressions_used < len(self.expressions):
            self.reader.fail(MalformedCode.EXPRESSION_UNUSED, f"the expression {self._expressions_used} is never used")

    # -- code

    def _codes(self, area: Area) -> Iterator[tuple[int, tuple[Instruction, ...]]]:
        """Read a section of code: first the memory that each piece will take, then the instructions."""
        reader = self.reader
        seen: set[bytes] = set()
        pieces: list[_Piece] = []
        while reader.at < reader.end:
            at = reader.at
            reader.spend(CODE_COST, "code")
            start, end = reader.binary("a code")
            if area is Area.EXPRESSION:
                key = reader.data[start:end]
                if key in seen:
                    reader.fail(MalformedCode.EXPRESSION_TWICE, f"the expression {len(pieces)} is there before", at)
                seen.add(key)
            pieces.append(self._surveyed(start, end, area))
        for piece in pieces:
            yield piece.slots, self._instructions(piece, area)

    def _surveyed(self, start: int, end: int, area: Area) -> _Piece:
        """Find out how many instructions there are, and how many new ones, at C's speed; spend the memory for them."""
        reader, words = self.reader, self._words
        if end - start > CODE_BYTES_MAX:
            reader.fail(MalformedCode.TOO_LONG, f"code has at most {CODE_BYTES_MAX} bytes, not {end - start}", start)
        # Charge as if each byte were an instruction; the surplus is refunded below.
        reader.spend((end - start) * INSTRUCTION_COST, "code")
        slots, at = reader.varint(start, end)
        if slots > SLOTS_MAX:
            reader.fail(MalformedCode.OUT_OF_RANGE, f"code has at most {SLOTS_MAX} slots, not {slots}", start)
        before = len(words)
        cut = self._cut(at, end, area)
        words.update(cut)
        reader.memory += (end - start - len(cut)) * INSTRUCTION_COST
        reader.spend((len(words) - before) * NEW_INSTRUCTION_COST, "code")
        return _Piece(slots, at, end)

    def _cut(self, at: int, end: int, area: Area) -> list[bytes]:
        words: list[bytes] = _INSTRUCTION[area].findall(self.reader.data, at, end)
        if sum(map(len, words)) != end - at:
            self._fail_where_it_breaks(at, end, area)
        return words

    def _instructions(self, piece: _Piece, area: Area) -> tuple[Instruction, ...]:
        # The hot spot of loading. Most instructions have occurred before, and then no Python loop runs here.
        words = self._cut(piece.at, piece.end, area)
        known, at, reached = self._known, piece.at, 0
        for word in dict.fromkeys(words):
            if word not in known:
                place = words.index(word, reached)
                at += sum(map(len, words[reached:place]))
                reached = place
                known[word] = self._new_instruction(at, piece.end)
        return tuple(map(known.__getitem__, words))

    def _new_instruction(self, at: int, end: int) -> Instruction:
        opcode = BY_NUMBER[self.reader.data[at]]
        operands: list[object] = []
        place = at + 1
        for kind in opcode.operands:
            number, stop = self.reader.varint(place, end)
            operands.append(_RESOLVE[kind](self, number, place))
            place = stop
        return Instruction(opcode, tuple(operands))

    def _fail_where_it_breaks(self, at: int, end: int, area: Area) -> NoReturn:
        """Report the first bytes that are not an instruction."""
        reader, pattern = self.reader, _INSTRUCTION[area]
        while word := pattern.match(reader.data, at, end):
            at = word.end()
        opcode = BY_NUMBER.get(reader.data[at])
        if opcode is None:
            reader.fail(MalformedCode.UNKNOWN_OPCODE, f"no instruction has the number {reader.data[at]}", at)
        if opcode.area is not area:
            reader.fail(
                MalformedCode.WRONG_MACHINE, f"{opcode.name} is {opcode.area} code and stands in {area} code", at
            )
        place = at + 1
        while True:
            # One of the operands is cut off or too long, so that this call raises.
            _, place = reader.varint(place, end)

    # -- what a number stands for; `at` is where it is written

    def constant(self, number: int, at: int) -> Value:
        """Return a constant; one that was not used before must be the next."""
        if number >= self._constants_used:
            if number >= len(self.constants):
                self.reader.fail(MalformedCode.NO_SUCH_CONSTANT, f"there is no constant {number}", at)
            if number > self._constants_used:
                expected = self._constants_used
                self.reader.fail(MalformedCode.CONSTANT_ORDER, f"the constant {number} is used before {expected}", at)
            self._constants_used += 1
        return self.constants[number]

    def text(self, number: int, at: int) -> str:
        value = self.constant(number, at)
        if type(value) is not str:
            self.reader.fail(MalformedCode.CONSTANT_TYPE, f"the constant {number} must be a text here", at)
        return value

    def optional_text(self, number: int, at: int) -> str | None:
        """Return a constant that is a text, or none for 0."""
        return self.text(number - 1, at) if number else None

    def mapping(self, number: int, at: int) -> dict[str, Value]:
        value = self.constant(number, at)
        if type(value) is not dict:
            self.reader.fail(MalformedCode.CONSTANT_TYPE, f"the constant {number} must be a mapping here", at)
        return value

    def words(self, number: int, at: int) -> Value:
        """Return a constant that is a list of texts."""
        value = self.constant(number, at)
        if number not in self._word_lists:
            if type(value) is not list or not all(type(word) is str for word in value):
                self.reader.fail(MalformedCode.CONSTANT_TYPE, f"the constant {number} must be a list of texts here", at)
            self._word_lists.add(number)
        return value

    def expression(self, number: int, at: int) -> ExpressionCode:
        """Return an expression; one that was not used before must be the next."""
        if number >= self._expressions_used:
            if number >= len(self.expressions):
                self.reader.fail(MalformedCode.NO_SUCH_EXPRESSION, f"there is no expression {number}", at)
            if number > self._expressions_used:
                expected = self._expressions_used
                self.reader.fail(
                    MalformedCode.EXPRESSION_ORDER, f"the expression {number} is used before {expected}", at
                )
            self._expressions_used += 1
        return self.expressions[number]

    def optional_expression(self, number: int, at: int) -> ExpressionCode | None:
        """Return an expression, or none for 0."""
        return self.expression(number - 1, at) if number else None

    def limit(self, number: int, at: int) -> int | ExpressionCode:
        """Return a number, or the expression that gives it."""
        return self.expression(number >> 1, at) if number & 1 else number >> 1

    def _spread(self, number: int, at: int) -> int:
        if number > layout.SPREAD_BITS:
            self.reader.fail(MalformedCode.NO_SUCH_WORD, f"a spread is at most {layout.SPREAD_BITS}, not {number}", at)
        return number


def _word_of(words: tuple[str, ...]) -> Callable[[Pools, int, int], str]:
    def word(pools: Pools, number: int, at: int) -> str:
        if number >= len(words):
            pools.reader.fail(MalformedCode.NO_SUCH_WORD, f"{number} stands for none of {', '.join(words)}", at)
        return words[number]

    return word


_RESOLVE: Final[dict[Operand, Callable[[Pools, int, int], object]]] = {
    Operand.CONST: Pools.constant,
    Operand.WORDS: Pools.words,
    Operand.EXPR: Pools.expression,
    Operand.OPTIONAL_EXPR: Pools.optional_expression,
    Operand.LIMIT: Pools.limit,
    Operand.NAME: _word_of(NAMES),
    Operand.COMPARISON: _word_of(COMPARISONS),
    Operand.BACKOFF: _word_of(BACKOFFS),
    Operand.SPREAD: Pools._spread,
    **dict.fromkeys((Operand.TEXT, Operand.FILTER, Operand.TEST, Operand.FUNCTION, Operand.METHOD), Pools.text),
    **dict.fromkeys((Operand.TARGET, Operand.COUNT, Operand.SLOT), lambda _pools, number, _at: number),
}
"""What an operand's number becomes."""
