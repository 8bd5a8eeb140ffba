"""From a program to its text form (`grammar/assembly.lark`), for people to read, review and edit. Decides nothing.

The text is complete: `assemble(disassemble(program))` is the program again. Only comments are added: what each
instruction does, in the words of the instruction table.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from noetlc.assembly.lexer import (
    ARC_FLAGS,
    CHOICES,
    GENERATED_LABEL,
    LABEL_NAME,
    LOOP_FLAGS,
    NO_EXPRESSION,
    NUMBERS,
    PLAYBOOK_FLAGS,
    STEP_FLAGS,
)
from noetlc.assembly.synopsis import Synopsis
from noetlvm.bytecode.isa import ISA_VERSION, LABELLED, Area, Operand
from noetlvm.bytecode.program import (
    ArcCode,
    DebugEntry,
    DebugMap,
    ExpressionCode,
    Instruction,
    LoopHeader,
    Mark,
    Pipeline,
    PlaybookCode,
    Program,
    Transition,
    addresses,
)

VALUE_WIDTH = 88
"""A longer mapping or list is spread over several lines."""
INLINE_WIDTH = 72
"""A longer expression stands on lines of its own."""
MARK_COLUMN = 46
COMMENT_COLUMN = 56

_PERHAPS_UNPRINTABLE = re.compile(r"[^\n -~]")


def disassemble(program: Program, *, source_lines: bool = True) -> str:
    """Return the text form; without `source_lines`, that of the program without its debug map."""
    debug = program.debug if source_lines else None
    fits = debug is not None and _fits(debug, program)
    lines = [f".isa {ISA_VERSION}"]
    if debug and fits:
        lines.append(f".files {_value(list(debug.files))}")
    text = _Text(iter(debug.entries) if debug and fits else None)
    for playbook in program.playbooks:
        lines += ["", *text.playbook(playbook)]
    if debug and not fits:
        lines += ["", *_spelled_out(debug)]
    return "\n".join(lines) + "\n"


def _fits(debug: DebugMap, program: Program) -> bool:
    """Return whether every address has its entry, so that the entries can be written where their code stands."""
    places = [(address.name, address.marks) for address in addresses(program)]
    return places == [(entry.address, len(entry.marks)) for entry in debug.entries]


def _spelled_out(debug: DebugMap) -> Iterator[str]:
    yield f".debug {_value(list(debug.files))}"
    for entry in debug.entries:
        yield _words("  .entry", _value(entry.address), _value(entry.construct), *map(_mark, entry.marks))


class _Text:
    """Writes playbooks, taking one debug entry for each address it passes."""

    def __init__(self, entries: Iterator[DebugEntry] | None) -> None:
        self._entries = entries
        self._construct: str | None = None
        """Construct of the address before, in the same step."""

    def playbook(self, playbook: PlaybookCode) -> Iterator[str]:
        yield _words(".playbook", _value(playbook.path), _value(playbook.name), *_flags(playbook, PLAYBOOK_FLAGS))
        yield from _settings(".metadata", playbook.metadata)
        yield from _settings(".executor", playbook.executor)
        yield f"  .entry {_value(playbook.entry_step)}"
        if playbook.final_step is not None:
            yield f"  .final {_value(playbook.final_step)}"
        yield from _settings(".workload", playbook.workload)
        for credential in playbook.keychain:
            words = map(_value, (credential.name, credential.kind, credential.settings))
            yield _indented(_words(".credential", *words), "  ")
        for step in playbook.steps:
            yield ""
            yield from self.step(step)

    def step(self, step: Transition) -> Iterator[str]:
        self._construct = None
        yield _words(".step", _value(step.name), *_flags(step, STEP_FLAGS), *self._place())
        yield from _settings(".settings", step.settings)
        yield from self._part("  ", ".admit", step.admit)
        for loop in step.loops:
            yield from self.loop(loop)
        for arc in step.arcs:
            yield from self.arc(arc)
        if step.pipeline is not None:
            yield from self.pipeline(step.pipeline)

    def loop(self, loop: LoopHeader) -> Iterator[str]:
        reducers = ["reduce", _value([list(pair) for pair in loop.reducers])] if loop.reducers else []
        computed = loop.width if isinstance(loop.width, ExpressionCode) else None
        width = ["width", str(loop.width)] if computed is None else []
        head = _words(".loop", _value(loop.iterator), *width, *_flags(loop, LOOP_FLAGS), *reducers)
        yield _indented(head, "  ")
        yield from self._part("    ", ".in", loop.collection)
        yield from self._part("    ", ".width", computed)
        yield from self._part("    ", ".rate", loop.rate)

    def arc(self, arc: ArcCode) -> Iterator[str]:
        yield "  " + _words(".arc", _value(arc.target), *_flags(arc, ARC_FLAGS), *self._place())
        yield from self._part("    ", ".when", arc.guard)
        yield from self._part("    ", ".args", arc.args)

    def pipeline(self, pipeline: Pipeline) -> Iterator[str]:
        trail, head = self._enter()
        code = _Code(pipeline.code, pipeline.counters, Area.PIPELINE, trail, head)
        yield _indented(".tool " + code.block(self._operand_of(code)), "  ")

    def _part(self, indent: str, directive: str, expression: ExpressionCode | None) -> Iterator[str]:
        if expression is not None:
            yield _indented(f"{directive} {self._expression(expression)}", indent)

    def _operand_of(self, code: _Code) -> Callable[[Operand, object], str]:
        def operand(kind: Operand, value: object) -> str:
            return self._expression(value) if isinstance(value, ExpressionCode) else code.operand(kind, value)

        return operand

    def _expression(self, expression: ExpressionCode) -> str:
        trail, head = self._enter()
        code = _Code(expression.code, expression.slots, Area.EXPRESSION, trail, head)
        return code.inline() or code.block(code.operand)

    def _place(self) -> list[str]:
        """Return the annotation of a step or an arc."""
        trail, head = self._enter()
        return head + [_mark(mark) for mark in trail or ()]

    def _enter(self) -> tuple[tuple[Mark, ...] | None, list[str]]:
        """Go to the next address: its marks, and its construct where that changes."""
        if self._entries is None:
            return None, []
        entry = next(self._entries)
        head = [] if entry.construct == self._construct else ["@" + _value(entry.construct)]
        self._construct = entry.construct
        return entry.marks, head


class _Code:
    """Writes one code: the labels it needs, its instructions and their marks."""

    def __init__(
        self, code: tuple[Instruction, ...], slots: int, area: Area, marks: tuple[Mark, ...] | None, head: list[str]
    ) -> None:
        self._code = code
        self._slots = slots
        self._marks = marks
        self._head = head
        self._labels = _labels(code, area)

    def operand(self, kind: Operand, value: object) -> str:
        if kind is Operand.TARGET and isinstance(value, int):
            return self._labels.get(value, str(value))
        if kind is Operand.OPTIONAL_EXPR and value is None:
            return NO_EXPRESSION
        return str(value) if kind in CHOICES or kind in NUMBERS else _value(value)

    def inline(self) -> str:
        """Return the code on one line, or nothing if it needs more."""
        one_place = self._marks is None or len(set(self._marks)) == 1
        if self._labels or self._slots or not one_place or len(self._code) > INLINE_WIDTH // 3:
            return ""
        words = [*self._head, *(_mark(mark) for mark in (self._marks or ())[:1])]
        words.append("; ".join(_instruction(instruction, self.operand) for instruction in self._code))
        line = f"({_words(*words)})"
        return line if "\n" not in line and len(line) <= INLINE_WIDTH else ""

    def block(self, operand: Callable[[Operand, object], str]) -> str:
        """Return the code with a line for each instruction."""
        lines = [_words("(", *self._head)]
        if self._marks and not self._code:
            lines[0] += " " + _mark(self._marks[0])
        if self._slots:
            lines.append(f"  .slots {self._slots}")
        previous: Mark | None = None
        synopsis = Synopsis(self.operand)
        for at, instruction in enumerate(self._code):
            if at in self._labels:
                lines.append(f"{self._labels[at]}:")
                synopsis.meet()
            mark = self._marks[at] if self._marks is not None else None
            shown = _mark(mark) if mark is not None and mark != previous else ""
            previous = mark
            body = _indented(_instruction(instruction, operand), "  ")
            lines.append(_columns(body, shown, synopsis.of(instruction)))
        return "\n".join(lines) + "\n)"


def _labels(code: tuple[Instruction, ...], area: Area) -> dict[int, str]:
    """Name the places that are jumped to; in a pipeline the tasks and marks too, by their own labels if they can be."""
    named = _own_labels(code) if area is Area.PIPELINE else {}
    targets = {target for instruction in code for target in _targets(instruction) if target < len(code)}
    number = 0
    labels: dict[int, str] = {}
    for at in sorted(targets.union(named)):
        number += at not in named
        labels[at] = named.get(at) or f"L{number}"
    return labels


def _own_labels(code: tuple[Instruction, ...]) -> dict[int, str]:
    taken: dict[str, int] = {}
    for at, instruction in enumerate(code):
        label = instruction.operands[0] if instruction.opcode.name in LABELLED else None
        if isinstance(label, str) and LABEL_NAME.fullmatch(label) and not GENERATED_LABEL.fullmatch(label):
            taken.setdefault(label, at)
    return {at: label for label, at in taken.items()}


def _targets(instruction: Instruction) -> Iterator[int]:
    for kind, value in zip(instruction.opcode.operands, instruction.operands, strict=True):
        if kind is Operand.TARGET and isinstance(value, int):
            yield value


def _instruction(instruction: Instruction, operand: Callable[[Operand, object], str]) -> str:
    pairs = zip(instruction.opcode.operands, instruction.operands, strict=True)
    return _words(instruction.opcode.name, *(operand(kind, value) for kind, value in pairs))


def _mark(mark: Mark) -> str:
    return f"@{mark.file}:{mark.line}:{mark.column}" if mark.file else f"@{mark.line}:{mark.column}"


def _flags(owner: object, names: Iterable[str]) -> list[str]:
    return [name for name in names if getattr(owner, name)]


def _settings(directive: str, settings: Mapping[str, object]) -> Iterator[str]:
    if settings:
        yield _indented(f"{directive} {_value(settings)}", "  ")


def _value(value: object) -> str:
    """Return a constant as JSON, over several lines if it is long; what cannot be seen is escaped."""
    text = json.dumps(value, ensure_ascii=False)
    if len(text) > VALUE_WIDTH and isinstance(value, list | dict):
        text = json.dumps(value, ensure_ascii=False, indent=2)
    return _PERHAPS_UNPRINTABLE.sub(_visible, text)


def _visible(found: re.Match[str]) -> str:
    character = found[0]
    return character if character.isprintable() else json.dumps(character)[1:-1]


def _words(*words: str) -> str:
    return " ".join(word for word in words if word)


def _indented(text: str, indent: str) -> str:
    """Indent all lines. No string changes: JSON has no line breaks inside them."""
    return indent + text.replace("\n", "\n" + indent)


def _columns(text: str, mark: str, comment: str) -> str:
    head, newline, last = text.rpartition("\n")
    if mark:
        last = f"{last:<{MARK_COLUMN}} {mark}"
    if comment:
        last = f"{last:<{COMMENT_COLUMN}} # {comment}"
    return head + newline + last
