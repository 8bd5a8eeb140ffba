"""From the text form (`grammar/assembly.lark`) to a program. Proves nothing: the verifier judges what it makes.

The LALR driver calls `_Builder.reduce` for each rule, and each rule becomes a part of the program at once: there is no
tree. Expressions are the only nesting, one level deep by the grammar, so hostile text cannot make it deeper.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, TypeVar

from noetlc.assembly.lexer import (
    ARC_FLAGS,
    CHOICES,
    END,
    END_OF_TEXT,
    JSON,
    LABEL,
    LABEL_NAME,
    LOOP_FLAGS,
    NO_EXPRESSION,
    NUMBERS,
    PLAYBOOK_FLAGS,
    SHOWN_CHARS_MAX,
    STEP_FLAGS,
    STRINGS,
    WORD,
    AssemblyError,
    AssemblyToken,
    Lexer,
)
from noetlc.syntax.lalr import END as END_OF_INPUT
from noetlc.syntax.lalr import Parser, Production, load_grammar
from noetlvm.bytecode.isa import EXPRESSION, ISA_VERSION, PIPELINE, Opcode, OpcodeName, Operand
from noetlvm.bytecode.program import (
    ArcCode,
    DebugEntry,
    DebugMap,
    ExpressionCode,
    Instruction,
    KeychainEntry,
    LoopHeader,
    Mark,
    Pipeline,
    PlaybookCode,
    Program,
    Transition,
    addresses,
)
from noetlvm.nearest import did_you_mean

__all__ = ["AssemblyError", "assemble"]

_T = TypeVar("_T")
_NUMBER = re.compile(r"[0-9]{1,20}")


def assemble(text: str) -> Program:
    """Return the program that the text describes. Raises AssemblyError."""
    lexer = Lexer(text)
    grammar = load_grammar("assembly")
    parser = Parser(grammar, _Builder(lexer).reduce)
    for token in lexer.tokens():
        if token.kind == END_OF_TEXT:
            break
        # Inside code the kind of a token is its terminal; a directive's words and values go by what is expected.
        if not parser.try_feed(token.kind, token):
            _feed_directive(lexer, parser, token)
    if not parser.accepts(END_OF_INPUT):
        raise _unexpected(lexer, parser, token)
    program: Program = parser.finish()
    return program


# ---- directives


def _feed_directive(lexer: Lexer, parser: Parser, token: AssemblyToken) -> None:
    expected = parser.expected()
    wanted = next((name for name in expected if name in _VALUES), None)
    if wanted is not None:
        what = f"the {wanted.lower().replace('_', ' ')}"
        parser.feed(wanted, token._replace(value=_VALUES[wanted](lexer, token, what)))
        return
    terminal = _terminal(token.value, expected) if isinstance(token.value, str) and token.kind != JSON else None
    if terminal is None:
        raise _unexpected(lexer, parser, token)
    parser.feed(terminal, token)


def _terminal(word: str, expected: list[str]) -> str | None:
    grammar = load_grammar("assembly")
    literal = grammar.literals.get(word)
    if literal in expected:
        return literal
    return next((name for name in expected if re.fullmatch(grammar.patterns.get(name, "(?!)"), word)), None)


def _unexpected(lexer: Lexer, parser: Parser, token: AssemblyToken) -> AssemblyError:
    expected, found = parser.expected(), lexer.found(token)
    literals = load_grammar("assembly").literals
    missing = [word for word, name in literals.items() if name in expected]
    if ")" in missing:
        parser.try_feed(literals[")"], token)  # reduces the instruction before: if that is wrong, it is the first error
        if token.kind == END_OF_TEXT:
            return lexer.error("expected `)`, found the end of the text: a code is not closed", token.at)
        return lexer.error(f"there is no instruction {found} here", token.at)
    if END in expected:
        return lexer.error(f"{found} is unexpected here; continue on a new line or after `;`", token.at)
    directives = [word for word in literals if word.startswith(".")]
    if token.value in directives and (END_OF_INPUT in expected or not _REQUIRED.keys() & missing):
        return lexer.error(f"{found} cannot stand here; what can is {_quoted(missing)}", token.at)
    if str(token.value).startswith(".") and token.value not in directives:
        return lexer.error(f"there is no directive {found}; {_hint(token.value, directives)}", token.at)
    wanted = next((_REQUIRED[word] for word in missing if word in _REQUIRED), f"{_quoted(missing)}, found {found}")
    return lexer.error(f"expected {wanted}", token.at)


_REQUIRED = {
    ".entry": '`.entry "step"`: a playbook names the step it begins with',
    ".in": "`.in (…)`: a loop has a collection",
}
"""Directives that cannot be left out, and how an error names them."""


def _string(lexer: Lexer, token: AssemblyToken, what: str) -> str:
    if token.kind != JSON or not isinstance(token.value, str):
        raise lexer.error(f"expected {what} in double quotes, found {lexer.found(token)}", token.at)
    return token.value


def _number(lexer: Lexer, token: AssemblyToken, what: str) -> int:
    if token.kind != WORD or not _NUMBER.fullmatch(token.value):
        raise lexer.error(f"expected {what} (a number), found {lexer.found(token)}", token.at)
    return int(token.value)


def _strings(lexer: Lexer, token: AssemblyToken, what: str) -> list[str]:
    value = token.value if token.kind == JSON else None
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return value
    raise lexer.error(f'expected {what}, a list of strings such as `["a", "b"]`', token.at)


def _mapping(lexer: Lexer, token: AssemblyToken, what: str) -> dict[str, Any]:
    if token.kind == JSON and isinstance(token.value, dict):
        return token.value
    raise lexer.error(f'expected {what}, a mapping such as `{{"key": 1}}`', token.at)


def _pairs(lexer: Lexer, token: AssemblyToken, what: str) -> tuple[tuple[str, str], ...]:
    value = token.value if token.kind == JSON else None
    if isinstance(value, list) and all(_is_pair(pair) for pair in value):
        return tuple((key, reducer) for key, reducer in value)
    raise lexer.error(f'expected {what}, a list of pairs such as `[["total", "sum"]]`', token.at)


def _is_pair(value: object) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(isinstance(item, str) for item in value)


_READERS: dict[Callable[[Lexer, AssemblyToken, str], Any], str] = {
    _number: "VERSION LOOP_WIDTH SLOTS",
    _string: "PATH PLAYBOOK_NAME STEP STEP_NAME CREDENTIAL_NAME CREDENTIAL_KIND ITERATOR TARGET ADDRESS ENTRY_TITLE",
    _strings: "FILES",
    _mapping: "METADATA EXECUTOR WORKLOAD SETTINGS CREDENTIAL_SETTINGS",
    _pairs: "REDUCERS",
}
_VALUES = {name: read for read, names in _READERS.items() for name in names.split()}
"""How the value of a directive is read, by its terminal; the terminal's name is what an error calls it."""


# ---- the program


class _Part(NamedTuple):
    """A field of the object that is being built."""

    name: str
    value: Any


class _Trail:
    """The construct and the marks of one address, as they are read."""

    def __init__(self, construct: str, mark: Mark | None) -> None:
        self.construct = construct
        self.current = mark
        self.marks: list[Mark] = []


class _Builder:
    """Makes parts of a program from rules. Annotations come in the order of `addresses`, which is that of the text."""

    def __init__(self, lexer: Lexer) -> None:
        self._lexer = lexer
        self._files: tuple[str, ...] | None = None
        self._construct: str | None = None
        self._trails: list[_Trail] = []
        self._trail_of_code: list[_Trail] = []

    def reduce(self, production: Production, children: list[Any]) -> Any:
        build = _BUILD.get(production.label)
        if build is not None:
            return build(self, children)
        return (
            _Part(production.label, children[0].value if type(children[0]) is AssemblyToken else children[0])
            if children
            else None
        )

    # -- around the playbooks

    def start(self, children: list[Any]) -> Program:
        program = Program(_of_type(children, PlaybookCode))
        spelled_out = _of_type(children, DebugMap)
        return Program(program.playbooks, spelled_out[0] if spelled_out else self._debug_map(program))

    def isa(self, children: list[Any]) -> None:
        version = children[0].value
        if version != ISA_VERSION:
            message = f"this is for version {version} of the instruction set; only {ISA_VERSION} is known"
            raise self._lexer.error(message, children[0].at)

    def files(self, children: list[Any]) -> None:
        self._files = tuple(children[0].value)

    def debug(self, children: list[Any]) -> DebugMap:
        if self._files is not None:
            message = "there are `.files` already: the debug map is either in the code or spelled out here"
            raise self._lexer.error(message, children[0].at)
        return DebugMap(tuple(children[0].value), _of_type(children, DebugEntry))

    def debug_entry(self, children: list[Any]) -> DebugEntry:
        address, construct, *marks, _ = children
        return DebugEntry(address.value, construct.value, tuple(mark.value for mark in marks))

    def _debug_map(self, program: Program) -> DebugMap | None:
        if self._files is None:
            return None
        pairs = zip(addresses(program), self._trails, strict=True)
        entries = (DebugEntry(address.name, trail.construct, tuple(trail.marks)) for address, trail in pairs)
        return DebugMap(self._files, tuple(entries))

    # -- playbooks and steps

    def playbook(self, children: list[Any]) -> PlaybookCode:
        path, name, *parts = children
        fields = {"metadata": {}, "executor": {}, "final_step": None, "workload": {}} | _fields(parts, PLAYBOOK_FLAGS)
        keychain, steps = _of_type(parts, KeychainEntry), _of_type(parts, Transition)
        return PlaybookCode(name=name.value, path=path.value, keychain=keychain, steps=steps, **fields)

    def credential(self, children: list[Any]) -> KeychainEntry:
        name, kind, settings, _ = children
        return KeychainEntry(name.value, kind.value, settings.value)

    def step(self, children: list[Any]) -> Transition:
        name, *parts = children
        fields = {"settings": {}, "admit": None, "pipeline": None} | _fields(parts, STEP_FLAGS)
        return Transition(name=name.value, loops=_of_type(parts, LoopHeader), arcs=_of_type(parts, ArcCode), **fields)

    def loop(self, children: list[Any]) -> LoopHeader:
        iterator, *parts = children
        (collection,) = _of_type(parts, ExpressionCode)
        fields: dict[str, Any] = {"reducers": ()} | _fields(parts, LOOP_FLAGS)
        if "width" not in fields:
            raise self._lexer.error("expected `width` and a number, or `.width (…)` after `.in`", iterator.at)
        return LoopHeader(collection=collection, iterator=iterator.value, **fields)

    def arc(self, children: list[Any]) -> ArcCode:
        target, *parts = children
        return ArcCode(target=target.value, **({"guard": None, "args": None} | _fields(parts, ARC_FLAGS)))

    def flag(self, children: list[Any]) -> _Part:
        return _Part(children[0].value, True)

    def pipeline_part(self, children: list[Any]) -> _Part | None:
        return _Part("pipeline", children[0]) if children else None

    # -- annotations

    def step_annotation(self, children: list[Any]) -> None:
        self._construct = None
        self.arc_annotation(children)

    def arc_annotation(self, children: list[Any]) -> None:
        self._end_trail(self._begin_trail(children))

    def annotation(self, children: list[Any]) -> None:
        self._trail_of_code.append(self._begin_trail(children))

    def _begin_trail(self, children: list[AssemblyToken]) -> _Trail:
        found = {token.kind: token for token in children}
        mark = self.mark([found["MARK"]]) if "MARK" in found else None
        construct = found.get("CONSTRUCT")
        if self._files is None and construct is not None:
            raise self._lexer.error("there is no debug map to hold this; write `.files` after `.isa`", construct.at)
        if construct is not None:
            self._construct = construct.value
        elif self._files is not None and self._construct is None:
            raise self._lexer.error('what did the author write here? Write it like `@"step" @12:5`')
        trail = _Trail(self._construct or "", mark)
        self._trails.append(trail)
        return trail

    def mark(self, children: list[AssemblyToken]) -> Mark:
        token = children[0]
        if self._files is None:
            message = "there is no debug map to hold this mark; write `.files` after `.isa`"
            raise self._lexer.error(message, token.at)
        found: Mark = token.value
        return found

    def _record(self, trail: _Trail) -> None:
        if self._files is None:
            return
        if trail.current is None:
            raise self._lexer.error("where was this written? Write `@line:column`, or leave `.files` out")
        trail.marks.append(trail.current)

    def _end_trail(self, trail: _Trail) -> None:
        """End an address. One without instructions has one mark, that of its annotation."""
        if not trail.marks:
            self._record(trail)

    # -- code

    def expression(self, children: list[Any]) -> ExpressionCode:
        return ExpressionCode(*self._code(children))

    def pipeline(self, children: list[Any]) -> Pipeline:
        return Pipeline(*self._code(children))

    def expression_instruction(self, children: list[Any]) -> Instruction:
        return self._instruction(children, EXPRESSION)

    def pipeline_instruction(self, children: list[Any]) -> Instruction:
        return self._instruction(children, PIPELINE)

    def operand(self, children: list[Any]) -> AssemblyToken:
        token: AssemblyToken = children[0]
        return token

    def label(self, children: list[Any]) -> AssemblyToken:
        token: AssemblyToken = children[0]
        if not LABEL_NAME.fullmatch(token.value):
            message = f"`{token.value[:SHOWN_CHARS_MAX]}` is not a label: use letters, digits, `_.-`, no digit first"
            raise self._lexer.error(message, token.at)
        return token

    def _instruction(self, children: list[Any], opcodes: dict[OpcodeName, Opcode]) -> Instruction:
        word, *operands, end = children
        opcode = opcodes.get(word.value)
        if opcode is None:
            shown = word.value[:SHOWN_CHARS_MAX]
            raise self._lexer.error(f"there is no instruction `{shown}` here; {_hint(shown, opcodes)}", word.at)
        trail = self._trail_of_code[-1]
        if operands and type(operands[-1]) is Mark:
            trail.current = operands.pop()
        made = Instruction(opcode, tuple(_Operands(self._lexer, opcode, operands, end).read()))
        self._record(trail)
        return made

    def _code(self, children: list[Any]) -> tuple[tuple[Instruction, ...], int]:
        self._end_trail(self._trail_of_code.pop())
        slots = next((part.value for part in children if type(part) is _Part), 0)
        code: list[Instruction] = []
        labels: dict[str, int] = {}
        for item in children:
            if type(item) is Instruction:
                code.append(item)
            elif type(item) is AssemblyToken and item.kind == LABEL:
                if item.value in labels:
                    raise self._lexer.error(f"the label `{item.value}` stands in this code already", item.at)
                labels[item.value] = len(code)
        return tuple(self._resolved(instruction, labels) for instruction in code), slots

    def _resolved(self, instruction: Instruction, labels: dict[str, int]) -> Instruction:
        """Return an instruction with the index of each label that it names."""
        if Operand.TARGET not in instruction.opcode.operands:
            return instruction
        operands = (
            self._index(operand, labels) if type(operand) is AssemblyToken else operand
            for operand in instruction.operands
        )
        return Instruction(instruction.opcode, tuple(operands))

    def _index(self, label: AssemblyToken, labels: dict[str, int]) -> int:
        if label.value not in labels:
            hint = _hint(label.value, labels) if labels else f"write `{label.value}:` in front of an instruction"
            raise self._lexer.error(f"there is no label `{label.value}` in this code; {hint}", label.at)
        return labels[label.value]


class _Operands:
    """Reads the operands of one instruction, in the order of its row in the table."""

    def __init__(self, lexer: Lexer, opcode: Opcode, operands: list[Any], end: AssemblyToken) -> None:
        self._lexer = lexer
        self._opcode = opcode
        self._left = operands
        self._end = end

    def read(self) -> Iterator[object]:
        for kind in self._opcode.operands:
            yield self._operand(kind, f"the operand `{kind}` of {self._opcode.name}")
        if self._left:
            token = self._left[0]
            found = self._lexer.found(token) if type(token) is AssemblyToken else "a code"
            at = token.at if type(token) is AssemblyToken else None
            raise self._lexer.error(f"{found} is unexpected here; continue on a new line or after `;`", at)

    def _operand(self, kind: Operand, what: str) -> object:
        if kind is Operand.EXPR or kind is Operand.OPTIONAL_EXPR:
            return self._expression(kind, what)
        token = self._left.pop(0) if self._left else self._end
        if kind is Operand.LIMIT and isinstance(token, ExpressionCode):
            return token
        if type(token) is not AssemblyToken:
            raise self._lexer.error(f"expected {what}, found a code")
        if kind in CHOICES:
            return self._choice(token, what, CHOICES[kind])
        if kind in NUMBERS:
            return _number(self._lexer, token, what)
        if kind in STRINGS:
            return _string(self._lexer, token, what)
        if kind is Operand.WORDS:
            return _strings(self._lexer, token, what)
        return self._constant(token, what) if kind is Operand.CONST else self._target(token, what)

    def _expression(self, kind: Operand, what: str) -> ExpressionCode | None:
        found = self._left.pop(0) if self._left else self._end
        if isinstance(found, ExpressionCode):
            return found
        if kind is Operand.OPTIONAL_EXPR and found.kind == WORD and found.value == NO_EXPRESSION:
            return None
        raise self._lexer.error(f"expected {what}: expected `(`, found {self._lexer.found(found)}", found.at)

    def _choice(self, token: AssemblyToken, what: str, choices: tuple[str, ...]) -> str:
        word = token.value if token.kind == WORD else ""
        following = self._left[0] if self._left and type(self._left[0]) is AssemblyToken else None
        if following is not None and f"{word} {following.value}" in choices:
            word = f"{word} {self._left.pop(0).value}"
        if word not in choices:
            message = f"expected {what}, found {self._lexer.found(token)}; {_hint(word, choices)}"
            raise self._lexer.error(message, token.at)
        return word

    def _constant(self, token: AssemblyToken, what: str) -> object:
        if token.kind == END:
            raise self._lexer.error(f"expected {what}, found {self._lexer.found(token)}", token.at)
        return token.value if token.kind == JSON else self._lexer.decoded(token.value, token.at)

    def _target(self, token: AssemblyToken, what: str) -> AssemblyToken | int:
        if token.kind == WORD and LABEL_NAME.fullmatch(token.value):
            return token
        # An index: the disassembler writes one only where it lies outside the code.
        return _number(self._lexer, token, f"{what}, a label or")


_BUILD: dict[str, Callable[[_Builder, list[Any]], Any]] = {
    name: method
    for name, method in vars(_Builder).items()
    if callable(method) and not name.startswith("_") and name != "reduce"
}
"""What builds each rule. The others are one field of the object around them, by the rule's name."""


def _fields(parts: Iterable[object], flags: tuple[str, ...]) -> dict[str, Any]:
    given = {part.name: part.value for part in parts if type(part) is _Part}
    return dict.fromkeys(flags, False) | given


def _of_type(parts: Iterable[object], kind: type[_T]) -> tuple[_T, ...]:
    return tuple(part for part in parts if isinstance(part, kind))


def _hint(word: str, known: Iterable[str]) -> str:
    """Return which known word was probably meant, or all of them."""
    names = sorted(known)
    return did_you_mean(word, names) or f"write one of {_quoted(names)}"


def _quoted(words: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)
