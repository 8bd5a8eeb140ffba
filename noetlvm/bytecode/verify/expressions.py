"""Proves one expression: its stack, its texts, its for blocks, its calls; and that it fits the position it stands at.

One walk over the code, top to bottom. Every instruction must be reached from above, and a jump back may only go to the
NEXT of a for block that still runs, so the shape of the stack is known at each instruction, and one visit is enough.
It also follows that each round of a cycle takes an element from one iterator, which bounds the rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from reprlib import repr as shown
from typing import NamedTuple, TypeAlias

from noetlvm.bytecode.isa import Area, ControlFlow, OpcodeName
from noetlvm.bytecode.limits import FOR_DEPTH_MAX, STACK_MAX, TEXT_DEPTH_MAX
from noetlvm.bytecode.program import ExpressionCode, Instruction, Value
from noetlvm.bytecode.verify.lists import check_appends
from noetlvm.bytecode.verify.operands import CheckError, check_operands, check_sizes, count_taken, integer, text
from noetlvm.language.filters import FILTERS, FUNCTIONS, TESTS
from noetlvm.language.methods import METHODS, Signature
from noetlvm.language.names import NAME_CHARS_MAX, is_key
from noetlvm.language.scopes import LOOP_ONLY, VISIBLE, TemplatePosition
from noetlvm.record import Record

Keys: TypeAlias = "list[str] | dict[str, Value]"
"""The keys of a mapping: those of RECORD, or of a constant, which is not copied."""


class Proven:
    """What is known of an expression that was proven."""

    __slots__ = ("mappings", "names", "not_mapping", "not_truth")

    def __init__(self) -> None:
        self.names: dict[str, int] = {}
        """The namespaces it reads, each with the first instruction that does."""
        self.not_truth: int | None = None
        """A RETURN that does not follow a TRUTH directly."""
        self.not_mapping: int | None = None
        """A RETURN that does not directly follow RECORD or the CONST of a mapping."""
        self.mappings: list[tuple[int, Keys]] = []
        """The keys of every mapping that it can return, each with its RETURN."""


class _Iterator(NamedTuple):
    """An iterator on the stack."""

    height: int
    """Number of values below it."""
    made_at: int
    runs: bool
    """NEXT has given an element on every path to here."""


class _Shape(NamedTuple):
    """Shape of the stack: its depth, the iterators in it, and the number of open texts."""

    depth: int
    iterators: tuple[_Iterator, ...]
    texts: int


Effects: TypeAlias = dict[int, tuple[int, int]]
"""By an instruction's identity: how many values it takes and pushes, if that is all it does and its operands are good.

Instructions are pooled, so that most occur many times. The program must be held for as long as this is.
"""


def prove(expression: ExpressionCode, effects: Effects) -> Proven:
    """Prove an expression, or raise CheckError. `effects` is filled on the way, for this expression and others."""
    check_sizes(expression.code, expression.slots)
    proof = _Proof(expression, effects)
    proof.run()
    if proof.appends:
        check_appends(expression)
    return proof.proven


class _Proof:
    """The walk. Three attributes hold the shape before the current instruction."""

    def __init__(self, expression: ExpressionCode, effects: Effects) -> None:
        self.code = expression.code
        self.slots = expression.slots
        self.effects = effects
        self.proven = Proven()
        self.appends = False
        self.at = 0
        self.depth = 0
        self.iterators: tuple[_Iterator, ...] = ()
        self.texts = 0
        self.falls = True
        """Control comes from the instruction above."""
        self.is_target = False
        """A jump leads to the current instruction."""
        self.ahead: dict[int, _Shape] = {}
        """Shapes with which jumps arrive further down."""
        self.heads: dict[int, _Shape] = {}
        """Shapes before each NEXT that was reached."""

    def run(self) -> None:
        effects, ahead = self.effects, self.ahead
        for at, instruction in enumerate(self.code):
            self.at = at
            effect = effects.get(id(instruction))
            if effect is None or at in ahead or not self.falls:
                self._arrive(instruction)
                self._perform(instruction)
            elif self.iterators or self.depth < effect[0] or self.depth >= STACK_MAX:
                self._take(effect[0])
                self._push(effect[1])
            else:  # as above, for by far the most instructions
                self.depth += effect[1] - effect[0]
        if self.falls:
            raise CheckError("V018", len(self.code) - 1, f"{self.code[-1].opcode.name} is the last instruction")

    # ---- paths

    def _arrive(self, instruction: Instruction) -> None:
        """Join the paths into this instruction."""
        if instruction.opcode.name == "NEXT":
            self.iterators = _about_to_run(self.iterators)
        shape = self.ahead.pop(self.at, None)
        self.is_target = shape is not None
        if shape is None:
            if not self.falls:
                raise CheckError("V019", self.at, f"nothing leads to {instruction.opcode.name}")
        elif self.falls:
            self._agree(shape, self._shape(), self.at)
        else:
            self.depth, self.iterators, self.texts = shape

    def _shape(self) -> _Shape:
        return _Shape(self.depth, self.iterators, self.texts)

    def _jump(self, target: int) -> None:
        """Carry the current shape to the target."""
        shape = self._shape()
        if self.code[target].opcode.name == "NEXT":
            shape = shape._replace(iterators=_about_to_run(shape.iterators))
        if target > self.at:
            self._agree(self.ahead.setdefault(target, shape), shape, target)
        elif target in self.heads:
            self._agree(self.heads[target], shape, target)
        else:
            raise CheckError("V020", self.at, f"instruction {target} is {self.code[target].opcode.name}")

    def _agree(self, known: _Shape, other: _Shape, target: int) -> None:
        if known == other:
            return
        if known[:2] == other[:2]:
            detail = f"instruction {target} is reached with {known.texts} and with {other.texts}"
            raise CheckError("V014", self.at, detail)
        raise CheckError(
            "V013", self.at, f"instruction {target} is reached with {_described(known)} and with {_described(other)}"
        )

    # ---- instructions

    def _perform(self, instruction: Instruction) -> None:
        check_operands(instruction, self.at, Area.EXPRESSION, len(self.code), self.slots)
        opcode = instruction.opcode
        perform = _PERFORM.get(opcode.name)
        taken = count_taken(instruction) if opcode.counts else opcode.pops
        if perform is not None:
            perform(self, instruction, taken)
        else:
            self._take(taken)
            self._push(opcode.pushes)
            self.effects[id(instruction)] = (taken, opcode.pushes)
        self.falls = opcode.flow is ControlFlow.NEXT or opcode.flow is ControlFlow.BRANCH

    def _take(self, count: int) -> None:
        left = self.depth - count
        if left < 0:
            name = self.code[self.at].opcode.name
            raise CheckError("V010", self.at, f"{name} takes {count}, there are {self.depth}")
        if self.iterators and self.iterators[-1].height >= left:
            raise CheckError("V011", self.at, f"{self.code[self.at].opcode.name} is not NEXT")
        self.depth = left

    def _push(self, count: int) -> None:
        self.depth += count
        if self.depth > STACK_MAX:
            raise CheckError("V023", self.at, f"{self.depth} values, at most {STACK_MAX} may be")

    def _branch(self, instruction: Instruction, taken: int) -> None:
        opcode = instruction.opcode
        self._take(taken)
        at_target = opcode.pushes if opcode.target_pushes is None else opcode.target_pushes
        self.depth += at_target
        self._jump(integer(instruction, 0))
        self.depth += opcode.pushes - at_target

    def _return(self, _instruction: Instruction, taken: int) -> None:
        self._take(taken)
        if self.depth:
            raise CheckError("V016", self.at, f"{_described(self._shape())} besides the value")
        if self.texts:
            raise CheckError("V017", self.at, f"{self.texts} begun and not ended")
        before = None if self.is_target else self.code[self.at - 1]
        if before is None or before.opcode.name != "TRUTH":
            self.proven.not_truth = self.at
        keys = None if before is None else _keys_made(before)
        if keys is None:
            self.proven.not_mapping = self.at
        else:
            self.proven.mappings.append((self.at, keys))

    def _name(self, instruction: Instruction, _taken: int) -> None:
        self.proven.names.setdefault(text(instruction, 0), self.at)
        self._push(1)

    def _slot(self, instruction: Instruction, taken: int) -> None:
        """Checked for each use, because whether the slot exists depends on the expression."""
        self._take(taken)
        self._push(instruction.opcode.pushes)

    def _append(self, _instruction: Instruction, taken: int) -> None:
        self.appends = True
        self._take(taken)
        self._push(1)

    def _record(self, instruction: Instruction, taken: int) -> None:
        keys = instruction.operands[0]
        assert isinstance(keys, list)
        if len(set(keys)) != len(keys):
            raise CheckError("V041", self.at, shown(keys))
        self._take(taken)
        self._push(1)
        self.effects[id(instruction)] = (taken, 1)

    def _unpack(self, instruction: Instruction, taken: int) -> None:
        self._take(taken)
        self._push(integer(instruction, 0))

    # ---- texts

    def _text_begin(self, _instruction: Instruction, _taken: int) -> None:
        self.texts += 1
        if self.texts > TEXT_DEPTH_MAX:
            raise CheckError("V023", self.at, f"{self.texts} texts, at most {TEXT_DEPTH_MAX} may be")

    def _text_used(self, instruction: Instruction, taken: int) -> None:
        if not self.texts:
            raise CheckError("V015", self.at, f"{instruction.opcode.name} stands before any TEXT_BEGIN")
        self._take(taken)

    def _text_end(self, instruction: Instruction, taken: int) -> None:
        self._text_used(instruction, taken)
        self.texts -= 1
        self._push(1)

    # ---- for blocks

    def _iter(self, _instruction: Instruction, taken: int) -> None:
        self._take(taken)
        self.iterators = (*self.iterators, _Iterator(self.depth, self.at, runs=False))
        if len(self.iterators) > FOR_DEPTH_MAX:
            raise CheckError("V024", self.at, f"{len(self.iterators)} deep, at most {FOR_DEPTH_MAX} may be")
        self._push(1)

    def _next(self, instruction: Instruction, _taken: int) -> None:
        if not self.iterators or self.iterators[-1].height != self.depth - 1:
            raise CheckError("V012", self.at, f"there is {_described(self._shape())}")
        self.heads[self.at] = self._shape()
        outer, own = self.iterators[:-1], self.iterators[-1]
        # At the end: whether there was any element, in the iterator's place.
        self.iterators = outer
        self._jump(integer(instruction, 0))
        self.iterators = (*outer, own._replace(runs=True))
        self._push(1)

    def _loop(self, instruction: Instruction, _taken: int) -> None:
        level = integer(instruction, 0)
        if level >= len(self.iterators) or not self.iterators[-1 - level].runs:
            running = sum(iterator.runs for iterator in self.iterators)
            raise CheckError("V021", self.at, f"LOOP {level} where {running} run")
        self._push(1)

    # ---- calls

    def _call(self, instruction: Instruction, taken: int) -> None:
        _check_call(instruction, self.at)
        self._take(taken)
        self._push(1)
        self.effects[id(instruction)] = (taken, 1)


_PERFORM: dict[OpcodeName, Callable[[_Proof, Instruction, int], None]] = {
    "NAME": _Proof._name,
    "LOCAL": _Proof._slot,
    "STORE": _Proof._slot,
    "LOOP": _Proof._loop,
    "APPEND": _Proof._append,
    "FILTER": _Proof._call,
    "TEST": _Proof._call,
    "CALL": _Proof._call,
    "METHOD": _Proof._call,
    "JUMP": _Proof._branch,
    "JUMP_IF": _Proof._branch,
    "JUMP_UNLESS": _Proof._branch,
    "KEEP_IF": _Proof._branch,
    "KEEP_UNLESS": _Proof._branch,
    "RETURN": _Proof._return,
    "TEXT_BEGIN": _Proof._text_begin,
    "EMIT": _Proof._text_used,
    "EMIT_CONST": _Proof._text_used,
    "TEXT_END": _Proof._text_end,
    "ITER": _Proof._iter,
    "NEXT": _Proof._next,
    "UNPACK": _Proof._unpack,
    "RECORD": _Proof._record,
}
"""Instructions that do more than take and push."""


def _about_to_run(iterators: tuple[_Iterator, ...]) -> tuple[_Iterator, ...]:
    """Forget whether the innermost iterator has run: before its NEXT that does not matter."""
    return (*iterators[:-1], iterators[-1]._replace(runs=False)) if iterators else iterators


def _described(shape: _Shape) -> str:
    values = shape.depth - len(shape.iterators)
    return f"{values} value{'s' * (values != 1)} and {len(shape.iterators)} iterator{'s' * (len(shape.iterators) != 1)}"


def _keys_made(instruction: Instruction) -> Keys | None:
    """Return the keys of the mapping that an instruction makes; None if it makes something else, or any keys."""
    if instruction.opcode.name == "RECORD":
        keys = instruction.operands[0]
        assert isinstance(keys, list)
        return keys
    constant = instruction.operands[0] if instruction.opcode.name == "CONST" else None
    return constant if isinstance(constant, dict) else None


_CALLEES: dict[OpcodeName, tuple[str, Mapping[str, Signature]]] = {
    "FILTER": ("V033", FILTERS),
    "TEST": ("V034", TESTS),
    "CALL": ("V035", FUNCTIONS),
    "METHOD": ("V036", {name: method.signature for name, method in METHODS.items()}),
}
"""By opcode: the code for an unknown name, and the known ones."""


def _check_call(instruction: Instruction, at: int) -> None:
    """Refuse a call of what does not exist, or one that never fits. How many are spread is known only at run time."""
    unknown, table = _CALLEES[instruction.opcode.name]
    name, positional, words, spread = instruction.operands
    signature = table.get(text(instruction, 0))
    if signature is None:
        raise CheckError(unknown, at, f"`{name}`")
    assert isinstance(positional, int)
    assert isinstance(words, list)
    if len(set(words)) != len(words):
        raise CheckError("V038", at, f"{', '.join(words)} of `{name}`")
    reason = signature.problem_with_spread if spread else signature.problem
    problem = reason(positional, words)
    if problem is not None:
        raise CheckError("V037", at, problem)


class Gives(Enum):
    """What an expression must give, as far as it can be seen in its code."""

    TRUTH = "truth"
    MAPPING = "mapping"
    PATCH = "patch"
    """A mapping that is not empty and whose keys are plain names."""
    ANYTHING = "anything"


class Place(Record):
    """Where an expression may stand."""

    position: TemplatePosition
    gives: Gives


ADMIT = Place(TemplatePosition.ADMIT, Gives.TRUTH)
ARC_WHEN = Place(TemplatePosition.ARC_WHEN, Gives.TRUTH)
ARC_ARGS = Place(TemplatePosition.ARC_ARGS, Gives.MAPPING)
LOOP_IN = Place(TemplatePosition.LOOP_IN, Gives.ANYTHING)
LOOP_WIDTH = Place(TemplatePosition.LOOP_SPEC, Gives.ANYTHING)
LOOP_RATE = Place(TemplatePosition.LOOP_SPEC, Gives.MAPPING)
BEFORE_CALL = Place(TemplatePosition.TASK_INPUT, Gives.TRUTH)
INPUTS = Place(TemplatePosition.TASK_INPUT, Gives.MAPPING)
RULE = Place(TemplatePosition.TASK_POLICY, Gives.TRUTH)
PATCH = Place(TemplatePosition.TASK_PATCH, Gives.PATCH)
PATCH_BEFORE_CALL = Place(TemplatePosition.TASK_INPUT, Gives.PATCH)
DELAY = Place(TemplatePosition.TASK_DELAY, Gives.ANYTHING)
ROUNDS = Place(TemplatePosition.SUGAR_MAX, Gives.ANYTHING)

_SERVER_SIDE = frozenset(
    {
        TemplatePosition.ADMIT,
        TemplatePosition.ARC_WHEN,
        TemplatePosition.ARC_ARGS,
        TemplatePosition.LOOP_IN,
        TemplatePosition.LOOP_SPEC,
    }
)
SECRETS = "keychain"


class Uses:
    """Checks that expressions fit their positions; the code of each is proven once, however often it is used."""

    def __init__(self) -> None:
        # By identity, which is safe while the program is held: expressions are pooled, and comparing them is slow.
        self._proven: dict[int, Proven] = {}
        self._effects: Effects = {}
        self._patches: set[int] = set()
        """Identities of keys that may be written: constants are pooled, and a long key may be used in many patches."""

    def check(self, expression: ExpressionCode, place: Place, *, in_loop: bool) -> Proven:
        """Return what is known of the expression, or raise CheckError if it cannot stand there."""
        proven = self._proven.get(id(expression))
        if proven is None:
            proven = self._proven[id(expression)] = prove(expression, self._effects)
        if proven.names:
            _check_names(proven.names, place.position, in_loop)
        if place.gives is Gives.TRUTH and proven.not_truth is not None:
            detail = "the instruction before RETURN must be TRUTH, and nothing jump past it"
            raise CheckError("V039", proven.not_truth, detail)
        if place.gives in (Gives.MAPPING, Gives.PATCH) and proven.not_mapping is not None:
            detail = "the instruction before RETURN must be RECORD or the CONST of a mapping, and nothing jump past it"
            raise CheckError("V040", proven.not_mapping, detail)
        if place.gives is Gives.PATCH:
            for at, keys in proven.mappings:
                self._check_patch(at, keys)
        return proven

    def _check_patch(self, at: int, keys: Keys) -> None:
        if id(keys) in self._patches:
            return
        if not keys:
            raise CheckError("V063", at, "its mapping is empty")
        unplain = next((key for key in keys if not is_key(key)), None)
        if unplain is not None:
            raise CheckError(
                "V065",
                at,
                f"`{unplain}`: letters, digits and `_`, no digit first, {NAME_CHARS_MAX:,} characters at most",
            )
        self._patches.add(id(keys))


def _check_names(names: dict[str, int], position: TemplatePosition, in_loop: bool) -> None:
    visible = VISIBLE[position]
    for name, at in names.items():
        if name not in visible:
            is_secret = name == SECRETS and position in _SERVER_SIDE
            raise CheckError("V031" if is_secret else "V030", at, f"`{name}` in an expression of {_article(position)}")
        if name in LOOP_ONLY and not in_loop:
            raise CheckError("V032", at, f"`{name}` in an expression of {_article(position)}")


def _article(position: TemplatePosition) -> str:
    return f"the {position}" if not position.startswith("`") else position
