"""Evaluates expression code: as a function translated to Python, or by the plain interpreter.

The interpreter is checked mode, and the oracle of the translation.

It asserts at every instruction what the verifier proved: the depth of the stack, that only NEXT touches an iterator,
that texts are balanced, that targets exist. If one does not hold, the verifier is wrong and `InternalError` comes out.
It is also what runs code that the translation does not know how to write as Python.

What an expression pays: all of its instructions once, and at each round of a for block those of the block again,
whichever way it branches. So the price is the same here and in translated code.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from noetlvm.bytecode.isa import EXPRESSION, NAMES, OpcodeName
from noetlvm.bytecode.program import ExpressionCode, Instruction
from noetlvm.expr.calls import call_with_words, named
from noetlvm.expr.errors import PYTHON_ERRORS, ExpressionError, Fuel, InternalError, from_python
from noetlvm.expr.operations import (
    BINARY,
    COMPARE,
    STATIC_BYTES,
    append,
    attr,
    bare,
    concat,
    cut,
    for_loop,
    item,
    joined,
    loop_fields,
    mapping,
    negate,
    positive,
    require_whole,
    unpack,
)
from noetlvm.expr.values import Data, ForLoop, Undefined, guard, text

Scope = dict[str, Data]


class Price(NamedTuple):
    """Fuel that code is charged before it runs."""

    steps: int
    bytes: int


def price(code: tuple[Instruction, ...]) -> Price:
    """Return the price of running each of these instructions once."""
    made = (STATIC_BYTES[i.opcode.name](i.operands) for i in code if i.opcode.name in STATIC_BYTES)
    return Price(len(code), sum(made))


def interpreter(expression: ExpressionCode) -> Callable[[Scope, Fuel], Data]:
    """Return a function of a scope and fuel that gives the expression's value or raises ExpressionError."""
    code = tuple((_handler(i), i.operands) for i in expression.code)
    whole = price(expression.code)

    def interpret(scope: Scope, fuel: Fuel) -> Data:
        machine = _Machine(expression, scope, fuel)
        try:
            machine.pay(whole)
            return machine.run(code)
        except (*PYTHON_ERRORS, ExpressionError) as error:
            raise from_python(error, machine.at) from None

    return interpret


class _Machine:
    """The state of one evaluation."""

    def __init__(self, expression: ExpressionCode, scope: Scope, fuel: Fuel) -> None:
        self.code = expression.code
        self.scope = scope
        self.fuel = fuel
        self.stack: list[Data] = []
        self.slots: list[Data] = [Undefined("a variable that was not set")] * expression.slots
        self.texts: list[list[str]] = []
        self.at = 0
        self.following = 0
        self.done = False
        self._rounds: dict[int, Price] = {}

    def run(self, code: tuple[tuple[Callable[..., None], tuple[object, ...]], ...]) -> Data:
        while not self.done:
            if not 0 <= self.following < len(code):
                self.check(False, "no instruction there")
            self.at = self.following
            self.following = self.at + 1
            handler, operands = code[self.at]
            handler(self, *operands)
        self.check(len(self.stack) == 1, "the stack holds more than the result")
        self.check(not self.texts, "a text was not ended")
        return self.pop()

    def check(self, holds: bool, message: str) -> None:
        if not holds:
            raise InternalError(f"instruction {self.at}: {message}")

    def pop(self) -> Data:
        if not self.stack:
            self.check(False, "the stack is empty")
        value = self.stack.pop()
        if type(value) is ForLoop:
            self.check(False, "an iterator is not a value")
        return value

    def pop_many(self, count: int) -> tuple[Data, ...]:
        values = [self.pop() for _ in range(count)]
        return tuple(reversed(values))

    def push(self, value: Data) -> None:
        self.stack.append(value)

    def loop(self, depth: int) -> ForLoop:
        loops = [value for value in self.stack if type(value) is ForLoop]
        self.check(depth < len(loops), "there is no such for block around")
        return loops[-1 - depth]

    def text(self) -> list[str]:
        self.check(bool(self.texts), "no text was begun")
        return self.texts[-1]

    def goto(self, target: int) -> None:
        self.check(0 <= target < len(self.code), "the target is not an instruction")
        self.following = target

    def round(self, end: int) -> None:
        """Pay for one more round of the for block that goes from here to its end."""
        if self.at not in self._rounds:
            self._rounds[self.at] = price(self.code[self.at : end] if end > self.at else self.code)
        self.pay(self._rounds[self.at])

    def pay(self, price: Price) -> None:
        self.fuel.make(price.bytes)
        self.fuel.spend(price.steps)


# ---- values


def _handler(instruction: Instruction) -> Callable[..., Any]:
    fits = len(instruction.operands) == len(instruction.opcode.operands)
    return HANDLERS.get(instruction.opcode.name, _unknown) if fits else _unknown


def _unknown(m: _Machine, *_operands: object) -> None:
    m.check(False, "not an instruction of expressions, or its operands are not its own")


def _name(m: _Machine, name: str) -> None:
    m.check(name in NAMES, "no such namespace")
    m.push(m.scope.get(name, Undefined(name)))


def _local(m: _Machine, slot: int) -> None:
    m.check(slot < len(m.slots), "no such variable")
    m.push(m.slots[slot])


def _store(m: _Machine, slot: int) -> None:
    m.check(slot < len(m.slots), "no such variable")
    m.slots[slot] = m.pop()


def _cut(m: _Machine) -> None:
    value, start, stop, step = m.pop_many(4)
    m.push(cut(m.fuel, value, start, stop, step))


def _item(m: _Machine) -> None:
    value, key = m.pop_many(2)
    m.push(item(m.fuel, value, key))


def _append(m: _Machine) -> None:
    items, value = m.pop_many(2)
    m.check(type(items) is list, "only a list can be added to")
    m.push(append(m.fuel, items, value))


def _call(opcode: OpcodeName) -> Callable[..., None]:
    receives = EXPRESSION[opcode].pops == 1

    def call(m: _Machine, name: str, count: int, words: list[str], spread: int) -> None:
        args = m.pop_many(count + len(words) + (spread & 1) + (spread >> 1))
        value = m.pop() if receives else None
        m.push(call_with_words(m.fuel, named(opcode, name), value, args, words, spread))

    return call


# ---- operators


def _unary(function: Callable[[Data], Data]) -> Callable[[_Machine], None]:
    return lambda m: m.push(function(m.pop()))


def _binary(opcode: OpcodeName) -> Callable[[_Machine], None]:
    function = BINARY[opcode]

    def apply(m: _Machine) -> None:
        left, right = m.pop_many(2)
        m.push(function(m.fuel, left, right))

    return apply


def _compare(m: _Machine, op: str) -> None:
    left, right = m.pop_many(2)
    m.push(COMPARE[op](m.fuel, left, right))


# ---- stack and flow


def _dup(m: _Machine) -> None:
    value = m.pop()
    m.push(value)
    m.push(value)


def _rot3(m: _Machine) -> None:
    a, b, c = m.pop_many(3)
    m.stack += (c, a, b)


def _swap(m: _Machine) -> None:
    a, b = m.pop_many(2)
    m.stack += (b, a)


def _jump_if(wanted: bool, keep: bool) -> Callable[[_Machine, int], None]:
    def jump(m: _Machine, target: int) -> None:
        value = m.pop()
        if bool(value) is wanted:
            m.goto(target)
            if keep:
                m.push(value)

    return jump


def _return(m: _Machine) -> None:
    m.done = True


# ---- texts and for blocks


def _emit(m: _Machine) -> None:
    m.text().append(text(m.fuel, m.pop()))


def _text_end(m: _Machine) -> None:
    m.push(joined(m.fuel, m.text()))
    m.texts.pop()


def _next(m: _Machine, target: int) -> None:
    m.check(bool(m.stack) and type(m.stack[-1]) is ForLoop, "NEXT needs an iterator")
    loop = m.stack[-1]
    loop.index0 += 1
    if loop.index0 < len(loop.items):
        m.round(target)
        m.push(loop.items[loop.index0])
        return
    m.stack.pop()
    m.push(len(loop.items) > 0)
    m.goto(target)


def _unpack(m: _Machine, count: int) -> None:
    m.stack.extend(reversed(unpack(m.fuel, m.pop(), count)))


HANDLERS: dict[OpcodeName, Callable[..., Any]] = {
    "CONST": lambda m, value: m.push(value),
    "NAME": _name,
    "BARE": lambda m, name: m.push(bare(m.scope, name)),
    "LOCAL": _local,
    "STORE": _store,
    "LOOP": lambda m, depth: m.push(loop_fields(m.loop(depth))),
    "UNDEFINED": lambda m, name: m.push(Undefined(name)),
    "ATTR": lambda m, name: m.push(attr(m.pop(), name)),
    "ITEM": _item,
    "SLICE": _cut,
    "LIST": lambda m, count: m.push(list(m.pop_many(count))),
    "TUPLE": lambda m, count: m.push(m.pop_many(count)),
    "MAP": lambda m, count: m.push(mapping(m.fuel, m.pop_many(2 * count))),
    "RECORD": lambda m, keys: m.push(dict(zip(keys, m.pop_many(len(keys)), strict=True))),
    "APPEND": _append,
    "FILTER": _call("FILTER"),
    "TEST": _call("TEST"),
    "CALL": _call("CALL"),
    "METHOD": _call("METHOD"),
    "NOT": _unary(lambda value: not value),
    "NEG": _unary(negate),
    "POS": _unary(positive),
    **{opcode: _binary(opcode) for opcode in BINARY},
    "CONCAT": lambda m, count: m.push(concat(m.fuel, m.pop_many(count))),
    "COMPARE": _compare,
    "TRUTH": _unary(guard),
    "REQUIRE": lambda m, field: m.push(require_whole(m.pop(), field)),
    "DUP": _dup,
    "ROT3": _rot3,
    "SWAP": _swap,
    "POP": lambda m: m.pop(),
    "JUMP": lambda m, target: m.goto(target),
    "JUMP_IF": _jump_if(True, keep=False),
    "JUMP_UNLESS": _jump_if(False, keep=False),
    "KEEP_IF": _jump_if(True, keep=True),
    "KEEP_UNLESS": _jump_if(False, keep=True),
    "RETURN": _return,
    "TEXT_BEGIN": lambda m: m.texts.append([]),
    "EMIT": _emit,
    "EMIT_CONST": lambda m, text: m.text().append(text),
    "TEXT_END": _text_end,
    "ITER": lambda m: m.push(for_loop(m.fuel, m.pop())),
    "NEXT": _next,
    "UNPACK": _unpack,
}
"""What each instruction does, by its name."""


Evaluation: TypeAlias = "Callable[[Scope, Fuel], Data]"


def compile_expression(expression: ExpressionCode, *, checked: bool = False) -> Evaluation:
    """Return a function of a scope and fuel that gives the expression's value, or raises ExpressionError only.

    A scope holds the namespaces by name, and under `steps` the last results of steps, a mapping or a function of the
    step's name. A name that is not there is undefined. Checked mode asserts every property that the verifier proved;
    it is many times slower.
    """
    if not checked:
        from noetlvm.expr.translate import translate

        translated = translate(expression)
        if translated:
            return translated

    return interpreter(expression)
