"""From the text form (`assembly_grammar`) to a program. Proves nothing: what it makes is for the verifier to judge.

One pass from left to right; nesting is that of the grammar, so hostile text cannot make it deep.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeGuard, TypeVar

from noetlvm.bytecode.addresses import addresses
from noetlvm.bytecode.isa import EXPRESSION, ISA_VERSION, PIPELINE, Opcode, Operand
from noetlvm.bytecode.program import (
    Arc,
    Credential,
    DebugEntry,
    DebugMap,
    Expression,
    Instruction,
    LoopHeader,
    Mark,
    Pipeline,
    Playbook,
    Program,
    Transition,
)
from noetlvm.bytecode.text.assembly_cursor import AssemblyError, Cursor, hint
from noetlvm.bytecode.text.assembly_grammar import (
    ARC_FLAGS,
    CHOICES,
    LABEL,
    LOOP_FLAGS,
    NO_EXPRESSION,
    NUMBERS,
    ORDER,
    PLAYBOOK_FLAGS,
    STEP_FLAGS,
    STRINGS,
)

__all__ = ["AssemblyError", "assemble"]

_Part = TypeVar("_Part")


def assemble(text: str) -> Program:
    """Return the program that the text describes, or raise `AssemblyError`."""
    return _Assembler(Cursor(text)).program()


class _Label(NamedTuple):
    """A target whose place is not known yet."""

    name: str
    at: int


@dataclass(slots=True)
class _Trail:
    """The marks of one address as they are read."""

    construct: str
    current: Mark | None
    marks: list[Mark] = field(default_factory=list)


class _Places:
    """The debug map as it grows: one trail for each address, in the order of the text, which is that of `addresses`."""

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor
        self._trails: list[_Trail] = []
        self._construct: str | None = None
        self.files: tuple[str, ...] | None = None

    def begin_step(self) -> None:
        """Forget the construct of the step before: each step's text stands for itself."""
        self._construct = None

    def enter(self) -> _Trail:
        """Read the annotation of an address."""
        start = self._cursor.at
        construct, mark = self._cursor.construct(), self._mark()
        if self.files is None and construct is not None:
            raise self._cursor.error("there is no debug map to hold this; write `.files` after `.isa`", start)
        if self.files is not None and construct is None and self._construct is None:
            raise self._cursor.error('what did the author write here? Write it like `@"step" @12:5`')
        self._construct = construct if construct is not None else self._construct
        trail = _Trail(self._construct or "", mark)
        self._trails.append(trail)
        return trail

    def add(self, trail: _Trail) -> None:
        """Read the mark after an instruction; without one that of the instruction before holds."""
        trail.current = self._mark() or trail.current
        self._record(trail)

    def end(self, trail: _Trail) -> None:
        """End an address. One that has no instructions has one mark, that of its annotation."""
        if not trail.marks:
            self._record(trail)

    def debug_map(self, program: Program) -> DebugMap | None:
        if self.files is None:
            return None
        pairs = zip(addresses(program), self._trails, strict=True)
        entries = (DebugEntry(address.name, trail.construct, tuple(trail.marks)) for address, trail in pairs)
        return DebugMap(self.files, tuple(entries))

    def _record(self, trail: _Trail) -> None:
        if self.files is None:
            return
        if trail.current is None:
            raise self._cursor.error("where was this written? Write `@line:column`, or leave `.files` out")
        trail.marks.append(trail.current)

    def _mark(self) -> Mark | None:
        start = self._cursor.at
        mark = self._cursor.mark()
        if mark is not None and self.files is None:
            raise self._cursor.error("there is no debug map to hold this mark; write `.files` after `.isa`", start)
        return mark


class _Assembler:
    """Reads a program, part by part, each in the order of the grammar."""

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor
        self._places = _Places(cursor)

    def program(self) -> Program:
        cursor = self._cursor
        if not self._directive(".isa"):
            raise cursor.error(f"expected `.isa {ISA_VERSION}` at the beginning")
        version = cursor.number("the version of the instruction set")
        if version != ISA_VERSION:
            raise cursor.error(f"this is for version {version} of the instruction set; only {ISA_VERSION} is known")
        cursor.end_line()
        if self._directive(".files"):
            self._places.files = tuple(cursor.strings("the source files"))
            cursor.end_line()
        program = Program(tuple(self._all(".playbook", self._playbook)))
        debug = self._spelled_out() if self._directive(".debug") else self._places.debug_map(program)
        cursor.skip_lines()
        if not cursor.at_end():
            raise self._misplaced()
        return Program(program.playbooks, debug)

    def _playbook(self) -> Playbook:
        cursor = self._cursor
        path, name = cursor.string("the playbook's path"), cursor.string("the playbook's name")
        flags = self._flags(PLAYBOOK_FLAGS)
        cursor.end_line()
        metadata, executor = self._mapping(".metadata"), self._mapping(".executor")
        entry_step, final_step = self._name(".entry"), self._name(".final")
        if entry_step is None:
            raise cursor.error('expected `.entry "step"`: a playbook names the step it begins with')
        return Playbook(
            name=name,
            path=path,
            metadata=metadata,
            executor=executor,
            entry_step=entry_step,
            final_step=final_step,
            workload=self._mapping(".workload"),
            keychain=tuple(self._all(".credential", self._credential)),
            steps=tuple(self._all(".step", self._step)),
            **flags,
        )

    def _credential(self) -> Credential:
        cursor = self._cursor
        name, kind = cursor.string("the credential's name"), cursor.string("the credential's kind")
        settings: dict[str, Any] = cursor.mapping("the credential's settings")
        cursor.end_line()
        return Credential(name, kind, settings)

    def _step(self) -> Transition:
        self._places.begin_step()
        name = self._cursor.string("the step's name")
        flags = self._flags(STEP_FLAGS)
        self._place()
        return Transition(
            name=name,
            settings=self._mapping(".settings"),
            admit=self._optional_expression(".admit"),
            loops=tuple(self._all(".loop", self._loop)),
            arcs=tuple(self._all(".arc", self._arc)),
            pipeline=self._pipeline() if self._directive(".tool") else None,
            **flags,
        )

    def _loop(self) -> LoopHeader:
        cursor = self._cursor
        iterator = cursor.string("the iterator's name")
        cursor.expect("width")
        width = cursor.number("the width")
        flags = self._flags(LOOP_FLAGS)
        reducers = self._reducers() if cursor.accept("reduce") else ()
        cursor.end_line()
        collection = self._optional_expression(".in")
        if collection is None:
            raise cursor.error("expected `.in (…)`: a loop has a collection")
        return LoopHeader(collection=collection, iterator=iterator, width=width, reducers=reducers, **flags)

    def _reducers(self) -> tuple[tuple[str, str], ...]:
        start = self._cursor.at
        value = self._cursor.value("the reducers")
        pairs = value if isinstance(value, list) else [value]
        reducers = [(pair[0], pair[1]) for pair in pairs if _is_pair(pair)]
        if len(reducers) < len(pairs):
            raise self._cursor.error('expected reducers, a list of pairs such as `[["total", "sum"]]`', start)
        return tuple(reducers)

    def _arc(self) -> Arc:
        target = self._cursor.string("the target step")
        flags = self._flags(ARC_FLAGS)
        self._place()
        guard, args = self._optional_expression(".when"), self._optional_expression(".args")
        return Arc(target=target, guard=guard, args=args, **flags)

    def _place(self) -> None:
        """Read the annotation of a step or an arc, which ends its line."""
        self._places.end(self._places.enter())
        self._cursor.end_line()

    def _pipeline(self) -> Pipeline:
        pipeline = Pipeline(*_Code(self._cursor, self._places, PIPELINE, self._expression).read())
        self._cursor.end_line()
        return pipeline

    def _optional_expression(self, directive: str) -> Expression | None:
        if not self._directive(directive):
            return None
        expression = self._expression()
        self._cursor.end_line()
        return expression

    def _expression(self) -> Expression:
        return Expression(*_Code(self._cursor, self._places, EXPRESSION, self._expression).read())

    def _spelled_out(self) -> DebugMap:
        """Read a debug map that stands apart from the code."""
        cursor = self._cursor
        if self._places.files is not None:
            raise cursor.error("there are `.files` already: the debug map is either in the code or spelled out here")
        files = tuple(cursor.strings("the source files"))
        cursor.end_line()
        return DebugMap(files, tuple(self._all(".entry", self._entry)))

    def _entry(self) -> DebugEntry:
        cursor = self._cursor
        address, construct = cursor.string("the address"), cursor.string("the construct")
        marks = []
        while mark := cursor.mark():
            marks.append(mark)
        cursor.end_line()
        return DebugEntry(address, construct, tuple(marks))

    def _directive(self, directive: str) -> bool:
        self._cursor.skip_lines()
        return bool(self._cursor.accept(directive))

    def _all(self, directive: str, read: Callable[[], _Part]) -> list[_Part]:
        found = []
        while self._directive(directive):
            found.append(read())
        return found

    def _mapping(self, directive: str) -> dict[str, Any]:
        if not self._directive(directive):
            return {}
        mapping = self._cursor.mapping(f"what belongs to `{directive}`")
        self._cursor.end_line()
        return mapping

    def _name(self, directive: str) -> str | None:
        if not self._directive(directive):
            return None
        name = self._cursor.string("a step's name")
        self._cursor.end_line()
        return name

    def _flags(self, names: tuple[str, ...]) -> dict[str, bool]:
        found = set()
        while word := self._cursor.accept(*names):
            found.add(word)
        return {name: name in found for name in names}

    def _misplaced(self) -> AssemblyError:
        word = self._cursor.peek_word()
        if word in ORDER:
            return self._cursor.error(f"`{word}` cannot stand here; it belongs {ORDER[word]}")
        if word.startswith("."):
            return self._cursor.error(f"there is no directive `{word}`; {hint(word, ORDER)}")
        return self._cursor.error(f"expected a directive such as `.step`, found `{word}`")


class _Code:
    """Reads one code: instructions and labels between parentheses."""

    def __init__(
        self, cursor: Cursor, places: _Places, opcodes: dict[str, Opcode], expression: Callable[[], Expression]
    ) -> None:
        self._cursor = cursor
        self._places = places
        self._opcodes = opcodes
        self._expression = expression
        self._code: list[Instruction] = []
        self._labels: dict[str, int] = {}

    def read(self) -> tuple[tuple[Instruction, ...], int]:
        """Return the instructions and how many slots or counters they use."""
        cursor = self._cursor
        cursor.expect("(")
        trail = self._places.enter()
        cursor.skip_lines()
        slots = cursor.number("how many") if cursor.accept(".slots") else 0
        while not self._closed():
            self._item(trail)
        self._places.end(trail)
        return tuple(self._resolved(instruction) for instruction in self._code), slots

    def _closed(self) -> bool:
        self._cursor.skip_lines()
        if self._cursor.at_end():
            raise self._cursor.error("expected `)`, found the end of the text: a code is not closed")
        return bool(self._cursor.accept(")"))

    def _item(self, trail: _Trail) -> None:
        cursor = self._cursor
        start, word = cursor.at, cursor.peek_word()
        if cursor.accept_label(word):
            return self._label(word, start)
        opcode = self._opcodes.get(word)
        if opcode is None:
            raise cursor.error(f"there is no instruction `{word[:40]}` here; {hint(word, self._opcodes)}")
        cursor.accept(word)
        self._code.append(Instruction(opcode, tuple(self._operand(opcode, kind) for kind in opcode.operands)))
        self._places.add(trail)
        return cursor.end_line()

    def _label(self, name: str, start: int) -> None:
        if not LABEL.fullmatch(name):
            raise self._cursor.error(f"`{name}` is no label: letters, digits and `_.-`, no digit first", start)
        if name in self._labels:
            raise self._cursor.error(f"the label `{name}` stands in this code already", start)
        self._labels[name] = len(self._code)

    def _operand(self, opcode: Opcode, kind: Operand) -> object:
        cursor = self._cursor
        what = f"the operand `{kind}` of {opcode.name}"
        if kind in CHOICES:
            return cursor.choice(what, CHOICES[kind])
        if kind in NUMBERS:
            return cursor.number(what)
        if kind in STRINGS:
            return cursor.string(what)
        return _READERS[kind](self, what)

    def _constant(self, what: str) -> object:
        return self._cursor.value(what)

    def _words(self, what: str) -> list[str]:
        return self._cursor.strings(what)

    def _required(self, _: str) -> Expression:
        return self._expression()

    def _optional(self, _: str) -> Expression | None:
        return None if self._cursor.accept(NO_EXPRESSION) else self._expression()

    def _target(self, what: str) -> object:
        word, start = self._cursor.peek_word(), self._cursor.at
        if not LABEL.fullmatch(word):
            # An index: the disassembler writes it only where it lies outside the code.
            return self._cursor.number(f"{what}, a label or")
        self._cursor.accept(word)
        return _Label(word, start)

    def _resolved(self, instruction: Instruction) -> Instruction:
        if Operand.TARGET not in instruction.opcode.operands:
            return instruction
        return Instruction(instruction.opcode, tuple(self._place_of(operand) for operand in instruction.operands))

    def _place_of(self, operand: object) -> object:
        if not isinstance(operand, _Label):
            return operand
        place = self._labels.get(operand.name)
        if place is None:
            raise self._cursor.error(self._unknown(operand.name), operand.at)
        return place

    def _unknown(self, label: str) -> str:
        known = hint(label, self._labels) if self._labels else f"write `{label}:` in front of an instruction"
        return f"there is no label `{label}` in this code; {known}"


_READERS: dict[Operand, Callable[[_Code, str], object]] = {
    Operand.CONST: _Code._constant,
    Operand.WORDS: _Code._words,
    Operand.EXPR: _Code._required,
    Operand.OPTIONAL_EXPR: _Code._optional,
    Operand.TARGET: _Code._target,
}


def _is_pair(value: object) -> TypeGuard[list[str]]:
    return isinstance(value, list) and len(value) == 2 and all(isinstance(item, str) for item in value)
