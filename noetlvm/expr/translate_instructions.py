"""How each instruction without a jump is written in Python: what it pops, and the text that it pushes.

What is cheap and cannot fail is written out. All else is a call of the operation that the interpreter calls too.
"""

from __future__ import annotations

from collections.abc import Callable

from noetlvm.bytecode.isa import OpcodeName
from noetlvm.expr import operations
from noetlvm.expr.calls import named
from noetlvm.expr.translate_writer import (
    SHORT,
    StackEntry,
    StatementNeededError,
    Text,
    UnstructuredError,
    Writer,
    call_text,
    tuple_text,
)
from noetlvm.expr.values import Undefined
from noetlvm.record import changed

SHORT_TEXT = 4_096
"""Characters up to which a text may be made before it is paid for."""


def begin_text(w: Writer, _at: int) -> None:
    collect(w)
    w.settle()
    if w.pure:
        raise StatementNeededError
    w.texts.append(Text(w.variable()))


def emit_text(w: Writer, at: int) -> None:
    value = w.pop()
    w.settle()
    held, first = w.assigned(value)
    piece = w.variable()
    converted = call_text(at, "text", "fuel", held)
    w.line(f"{piece} = {held} if type({first}) is str else {converted}")
    _add(w, piece, f"len({piece})")


def emit_constant(w: Writer, _at: int, text: str) -> None:
    w.settle()
    if w.pure:
        raise StatementNeededError
    _add(w, w.constant(text), str(len(text)))


def _add(w: Writer, piece: str, length: str) -> None:
    text = w.texts[-1]
    if text.is_list:
        w.line(f"{text.name}.append({piece})")
    else:
        text.pieces.append((piece, length))


def collect(w: Writer) -> None:
    """From here on, add the pieces of the open text to a list: a block may add any number of them."""
    if w.texts and not w.texts[-1].is_list:
        text = w.texts[-1]
        w.line(f"{text.name} = [{', '.join(piece for piece, _ in text.pieces)}]")
        text.is_list = True


def end_text(w: Writer, at: int) -> None:
    w.settle()
    if w.pure:
        raise StatementNeededError
    text = w.texts.pop()
    name = w.variable()
    if text.is_list or not 0 < len(text.pieces) <= SHORT:
        pieces = text.name if text.is_list else f"[{', '.join(piece for piece, _ in text.pieces)}]"
        w.line(f"{name} = {call_text(at, 'joined', 'fuel', pieces)}")
    else:
        _short_text(w, at, name, text.pieces)
    w.stack.append(StackEntry(name))


def _short_text(w: Writer, at: int, name: str, pieces: list[tuple[str, str]]) -> None:
    """Join pieces whose number is known: a short text at once, a long one by the operation."""
    length = w.variable()
    w.line(f"{length} = {' + '.join(size for _, size in pieces)}")
    listed = f"[{', '.join(piece for piece, _ in pieces)}]"
    w.line(f"if {length} > {SHORT_TEXT}: {name} = {call_text(at, 'joined', 'fuel', listed)}")
    w.line("else:")
    margin = " "
    w.line(f"{margin}{name} = f'{''.join(f'{{{piece}}}' for piece, _ in pieces)}'")
    w.line(f"{margin}fuel.bytes -= {length} if {name}.isascii() else 4 * {length}")
    w.line(f"{margin}if fuel.bytes < 0: fuel.run_out()  #{at}")


_PYTHON_COMPARISONS = {"==": "==", "!=": "!=", "in": "in", "not in": "not in"}

_ARITHMETIC: dict[OpcodeName, str] = {"ADD": "+", "SUB": "-", "MUL": "*"}

_LOOP_FIELDS = {
    "index": "({loop}.index0 + 1)",
    "index0": "{loop}.index0",
    "first": "({loop}.index0 == 0)",
    "last": "({loop}.index0 + 1 == len({loop}.items))",
    "length": "len({loop}.items)",
}
"""Fields of `loop` that need no mapping of all of them."""


def _const(w: Writer, _at: int, value: object) -> None:
    w.stack.append(StackEntry(w.constant(value), boolean=isinstance(value, bool), constant=value))


def _name(w: Writer, _at: int, name: str) -> None:
    if name in w.namespaces:
        w.stack.append(StackEntry(w.namespaces[name]))
    else:
        w.push(w.read(name))
    w.mark_data(_holds_data(name))


def _bare(w: Writer, at: int, name: str) -> None:
    w.call(at, "bare", "scope", w.constant(name))
    w.mark_data(_holds_data(name))


def _holds_data(name: str) -> bool:
    # After a crash, secrets in `_prev` are undefined.
    return name != "_prev"


def _local(w: Writer, _at: int, slot: int) -> None:
    w.stack.append(StackEntry(f"v{slot}", slot=slot))


def _store(w: Writer, _at: int, slot: int) -> None:
    # What was read of this variable, but not used yet, must be read before it changes.
    w.stack = [changed(entry, depth=1, slot=None) if entry.slot == slot else entry for entry in w.stack]
    w.settle()
    w.line(f"v{slot} = {w.pop().text}")


def _loop(w: Writer, _at: int, depth: int) -> None:
    iterators = [entry for entry in w.stack if entry.iterator]
    if depth >= len(iterators):
        raise UnstructuredError
    name = iterators[-1 - depth].text
    w.stack.append(StackEntry(f"loop_fields({name})", 1, loop=name))


def _attribute(w: Writer, _at: int, name: str) -> None:
    value = w.pop()
    key, missing = w.constant(name), w.constant(Undefined(name))
    if value.loop and name in _LOOP_FIELDS:
        w.push(_LOOP_FIELDS[name].format(loop=value.loop))
        return
    # Nearly every field is one of a mapping; the rest is left to the operation.
    held, first = w.assigned(value)
    w.push(f"({held}.get({key}, {missing}) if type({first}) is dict else attr({held}, {key}))", value)
    w.mark_data(value.is_data)


def _arithmetic(w: Writer, at: int, opcode: OpcodeName) -> None:
    """Add, subtract or multiply: whole numbers of a good length at once, the rest by the operation."""
    left, right = w.pop_many(2)
    (one, first_one), (other, first_other), result = w.assigned(left), w.assigned(right), w.variable()
    operation = call_text(at, w.constant(operations.BINARY[opcode]), "fuel", one, other)
    # Both are evaluated before either is looked at, as on the stack.
    are_whole = f"(type({first_one}) is int) & (type({first_other}) is int)"
    is_short = f"shortest < ({result} := {one} {_ARITHMETIC[opcode]} {other}) < longest"
    w.push(f"({result} if {are_whole} and {is_short} else {operation})", left, right)


def _mapping(w: Writer, at: int, count: int) -> None:
    parts = w.pop_many(2 * count)
    if all(type(key.constant) is str for key in parts[::2]):
        pairs = ", ".join(f"{key.text}: {value.text}" for key, value in zip(parts[::2], parts[1::2], strict=True))
        w.push(f"{{{pairs}}}", *parts)
        return
    w.push(call_text(at, "mapping", "fuel", tuple_text(parts)), *parts)


def _record(w: Writer, _at: int, keys: list[str]) -> None:
    parts = w.pop_many(len(keys))
    pairs = ", ".join(f"{w.constant(key)}: {part.text}" for key, part in zip(keys, parts, strict=True))
    w.push(f"{{{pairs}}}", *parts)


def _compare(w: Writer, at: int, op: str) -> None:
    left, right = w.pop_many(2)
    if _is_cheap(op, left, right):
        w.push(f"({left.text} {_PYTHON_COMPARISONS[op]} {right.text})", left, right, boolean=True)
    else:
        w.call(at, w.constant(operations.COMPARE[op]), "fuel", left, right, boolean=True)


def _truth(w: Writer, _at: int) -> None:
    value = w.pop()
    if value.boolean:
        w.stack.append(value)
    else:
        w.push(f"guard({value.text})", value, boolean=True)


def _invoke(w: Writer, at: int, opcode: OpcodeName, name: str, count: int, words: list[str], spread: int) -> None:
    arguments = w.pop_many(count + len(words) + (spread & 1) + (spread >> 1))
    value = w.pop() if opcode != "CALL" else StackEntry("None")
    row = named(opcode, name)
    boolean = opcode == "TEST"
    if not words and not spread and row.signature.problem(count) is None:
        w.call(at, w.constant(row.function), "fuel", value, *arguments, boolean=boolean)
        return
    held = call_text(at, "call", "fuel", w.constant(row), value, tuple_text(arguments), w.constant(words), str(spread))
    w.push(held, value, *arguments, boolean=boolean)


def _dup(w: Writer, _at: int) -> None:
    w.settle()
    value = w.pop()
    w.stack += (value, value)


def _rotate(w: Writer, _at: int) -> None:
    a, b, c = w.pop_many(3)
    w.stack += (a, b, c)
    w.settle()
    a, b, c = w.pop_many(3)
    w.stack += (c, a, b)


def _swap(w: Writer, _at: int) -> None:
    w.settle()
    a, b = w.pop_many(2)
    w.stack += (b, a)


def _drop(w: Writer, _at: int) -> None:
    w.settle()
    w.pop()


def _iterate(w: Writer, at: int) -> None:
    value = w.pop()
    w.settle()
    name = w.variable()
    w.line(f"{name} = {call_text(at, 'for_loop', 'fuel', value)}")
    w.stack.append(StackEntry(name, iterator=True))


def _unpack(w: Writer, at: int, count: int) -> None:
    value = w.pop()
    w.settle()
    names = [w.variable() for _ in range(count)]
    w.line(f"[{', '.join(names)}] = {call_text(at, 'unpack', 'fuel', value, str(count))}")
    w.stack += (StackEntry(name) for name in reversed(names))


def _is_cheap(op: str, left: StackEntry, right: StackEntry) -> bool:
    """Return whether a comparison neither fails nor costs more than the instruction, so that Python may do it."""
    if op in ("==", "!="):
        return left.is_short or right.is_short
    return op in ("in", "not in") and isinstance(right.constant, list) and right.is_short


# ---- instructions that are alike


def _operation(function: str, count: int, *, fuel: bool = True) -> Callable[..., None]:
    """Return the writer of an instruction that pops this many values and calls an operation."""

    def write(w: Writer, at: int) -> None:
        parts = w.pop_many(count)
        w.call(at, function, *(["fuel"] if fuel else []), *parts)

    return write


def _binary(opcode: OpcodeName) -> Callable[..., None]:
    function = operations.BINARY[opcode]

    def write(w: Writer, at: int) -> None:
        left, right = w.pop_many(2)
        w.call(at, w.constant(function), "fuel", left, right)

    return write


def _arithmetic_of(opcode: OpcodeName) -> Callable[..., None]:
    return lambda w, at: _arithmetic(w, at, opcode)


def _not(w: Writer, _at: int) -> None:
    value = w.pop()
    w.push(f"(not {value.text})", value, boolean=True)


def _built(brackets: str) -> Callable[..., None]:
    def write(w: Writer, _at: int, count: int) -> None:
        parts = w.pop_many(count)
        w.push(f"[{', '.join(part.text for part in parts)}]" if brackets == "[]" else tuple_text(parts), *parts)

    return write


def _concat(w: Writer, at: int, count: int) -> None:
    parts = w.pop_many(count)
    w.push(call_text(at, "concat", "fuel", tuple_text(parts)), *parts)


def _require(w: Writer, at: int, field: str) -> None:
    value = w.pop()
    w.call(at, "require" if value.is_data else "require_whole", value, w.constant(field))


def _call(opcode: OpcodeName) -> Callable[..., None]:
    return lambda w, at, *operands: _invoke(w, at, opcode, *operands)


def _stray_return(_w: Writer, _at: int) -> None:
    raise UnstructuredError


STRAIGHT: dict[OpcodeName, Callable[..., None]] = {
    "CONST": _const,
    "NAME": _name,
    "BARE": _bare,
    "LOCAL": _local,
    "STORE": _store,
    "LOOP": _loop,
    "UNDEFINED": lambda w, _at, name: w.stack.append(StackEntry(w.constant(Undefined(name)))),
    "ATTR": _attribute,
    "ITEM": _operation("item", 2),
    "SLICE": _operation("cut", 4),
    "LIST": _built("[]"),
    "TUPLE": _built("()"),
    "MAP": _mapping,
    "RECORD": _record,
    "APPEND": _operation("append", 2),
    "FILTER": _call("FILTER"),
    "TEST": _call("TEST"),
    "CALL": _call("CALL"),
    "METHOD": _call("METHOD"),
    "NOT": _not,
    "NEG": _operation("negate", 1, fuel=False),
    "POS": _operation("positive", 1, fuel=False),
    **{opcode: _binary(opcode) for opcode in operations.BINARY if opcode not in _ARITHMETIC},
    **{opcode: _arithmetic_of(opcode) for opcode in _ARITHMETIC},
    "CONCAT": _concat,
    "COMPARE": _compare,
    "TRUTH": _truth,
    "REQUIRE": _require,
    "DUP": _dup,
    "ROT3": _rotate,
    "SWAP": _swap,
    "POP": _drop,
    "RETURN": _stray_return,
    "TEXT_BEGIN": begin_text,
    "EMIT": emit_text,
    "EMIT_CONST": emit_constant,
    "TEXT_END": end_text,
    "ITER": _iterate,
    "UNPACK": _unpack,
}
"""How each instruction without a jump is written."""
