"""The operators and accesses of expressions, each paid for before it is done.

A result equals Jinja2's for the same data, with the differences that are written down: fields are data only, numbers
have a longest length, and there are no complex numbers.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from itertools import chain
from typing import NoReturn

from noetlvm.bytecode.isa import OpcodeName
from noetlvm.expr.errors import MAX_INT_BITS, ErrorKind, ExpressionError, Fuel
from noetlvm.expr.formatting import format_text
from noetlvm.expr.values import (
    CONTAINERS,
    ITEM_BYTES,
    LIST_BYTES,
    MAP_BYTES,
    PAIR_BYTES,
    TEXT_BYTES,
    Data,
    ForLoop,
    Group,
    Masked,
    Undefined,
    elements,
    hashable,
    text,
    text_bytes,
    type_name,
    weigh,
    wrong_type,
)
from noetlvm.language.scopes import BARE_NAME_ORDER

INT_LIMIT = 1 << MAX_INT_BITS
"""The first number that is too long."""

# ---- names and fields


def bare(scope: dict[str, Data], name: str) -> Data:
    """Return what a bare name stands for (S11)."""
    for namespace in BARE_NAME_ORDER:
        holder = scope.get(namespace)
        if isinstance(holder, dict) and name in holder:
            return holder[name]
    steps = scope.get("steps")
    if callable(steps):
        return steps(name)
    return Undefined(name) if steps is None else steps.get(name, Undefined(name))


def attr(value: Data, name: str) -> Data:
    """Return a field of data, never an attribute of Python's."""
    if isinstance(value, dict):
        return value[name] if name in value else Undefined(name)
    if isinstance(value, Undefined):
        return value
    if type(value) is Group and name in Group.FIELDS:
        return value[Group.FIELDS[name]]
    return Undefined(name)


def item(fuel: Fuel, value: Data, key: Data) -> Data:
    """Return an element of a list or text by index, or of a mapping by key; undefined where there is none."""
    if isinstance(value, Undefined):
        return value
    try:
        if isinstance(value, dict):
            return value[hashable(fuel, key)]
        if isinstance(value, (list, tuple, str)) and isinstance(key, int):
            return value[key]
    except (LookupError, TypeError):
        pass  # no such element, or what cannot be a key; both are undefined
    return attr(value, key) if type(key) is str else Undefined(_key_name(key))


def _key_name(key: Data) -> str:
    return f"[{key}]" if isinstance(key, (int, float)) and abs(key) < INT_LIMIT else f"[{type_name(key)}]"


def cut(fuel: Fuel, value: Data, start: Data, stop: Data, step: Data) -> Data:
    """Return a slice of a list or text."""
    if isinstance(value, Undefined):
        return value
    if not isinstance(value, (list, tuple, str)):
        raise wrong_type(value, "a list or text")
    bounds = slice(start, stop, step)
    length = len(range(*bounds.indices(len(value))))
    fuel.make(TEXT_BYTES + (text_bytes(value, length) if isinstance(value, str) else ITEM_BYTES * length))
    return value[bounds]


def require(value: Data, field: str) -> Data:
    """Return the value, or fail where it is undefined (S10). For what was only read: in data nothing is undefined."""
    if isinstance(value, Undefined):
        place = f" in `{field}`" if field else ""
        if type(value) is Masked:
            raise ExpressionError(ErrorKind.UNDEFINED, f"`{value.name}` cannot be read{place}")
        raise ExpressionError(
            ErrorKind.UNDEFINED, f"`{value.name}` is undefined{place}; give it a value or use `default`"
        )
    return value


def require_whole(value: Data, field: str) -> Data:
    """Return the value, or fail where it or a part of it is undefined (S10), or a key is not text.

    What leaves an expression is recorded and shown as JSON, where keys are text: 1 and '1' would be one key.
    """
    if not isinstance(value, CONTAINERS):
        return require(value, field)
    waiting, seen = [value], {id(value)}
    while waiting:
        container = waiting.pop()
        for item in _stored_parts(container):
            if isinstance(item, Undefined):
                require(item, field)
            if isinstance(item, CONTAINERS) and id(item) not in seen:
                seen.add(id(item))
                waiting.append(item)
        if isinstance(container, dict) and not all(type(key) is str for key in dict.keys(container)):
            raise _no_text_key(container, field)
    return value


def _no_text_key(mapping: dict[Data, Data], field: str) -> ExpressionError:
    key = next(key for key in dict.keys(mapping) if type(key) is not str)
    named = f"`{field}` has a mapping with" if field else "a mapping has"
    scalar = isinstance(key, (bool, int, float, type(None)))
    shown = f"the key {key!r}" if scalar else f"{type_name(key)} as a key"
    remedy = f"write `'{key}'`, or `| string`" if scalar else "use text"
    return ExpressionError(ErrorKind.TYPE, f"{named} {shown}, and keys are text; {remedy}")


def _stored_parts(container: Data) -> Iterable[Data]:
    # What is stored elsewhere is data, and is not read for this.
    if isinstance(container, dict):
        return chain(dict.keys(container), dict.values(container))
    return list.__iter__(container) if isinstance(container, list) else container


def loop_fields(loop: ForLoop) -> dict[str, Data]:
    """Return what the name `loop` stands for in this round."""
    length, index0 = len(loop.items), loop.index0
    fields: dict[str, Data] = {
        "index": index0 + 1,
        "index0": index0,
        "revindex": length - index0,
        "revindex0": length - index0 - 1,
        "first": index0 == 0,
        "last": index0 == length - 1,
        "length": length,
        "depth": 1,
        "depth0": 0,
    }
    if index0 > 0:
        fields["previtem"] = loop.items[index0 - 1]
    if index0 + 1 < length:
        fields["nextitem"] = loop.items[index0 + 1]
    return fields


# ---- making


def mapping(fuel: Fuel, flat: tuple[Data, ...]) -> dict[Data, Data]:
    """Return a mapping of keys and values that alternate."""
    return {hashable(fuel, key): value for key, value in zip(flat[::2], flat[1::2], strict=True)}


def append(fuel: Fuel, items: list[Data], value: Data) -> list[Data]:
    """Add to a list that the same code made."""
    fuel.make(ITEM_BYTES)
    items.append(value)
    return items


def concat(fuel: Fuel, values: tuple[Data, ...]) -> str:
    texts = [text(fuel, value) for value in values]
    fuel.make(TEXT_BYTES + sum(map(text_bytes, texts)))
    return "".join(texts)


def joined(fuel: Fuel, pieces: list[str]) -> str:
    """Return the text that was collected. Its pieces are paid for; until now they took no memory of their own."""
    length = sum(map(len, pieces))
    if 4 * length > fuel.bytes and not all(map(str.isascii, pieces)):
        fuel.make(4 * length)
    if length > fuel.bytes:
        fuel.make(length)
    made = "".join(pieces)
    fuel.bytes -= text_bytes(made)
    return made


def for_loop(fuel: Fuel, value: Data) -> ForLoop:
    """Begin a for block. Over what is undefined it would silently write nothing, so that is an error (S10)."""
    if isinstance(value, Undefined):
        raise value.error()
    return ForLoop(elements(fuel, value))


def unpack(fuel: Fuel, value: Data, count: int) -> list[Data]:
    """Return the elements of a value that must have exactly this many."""
    items = elements(fuel, value)
    if len(items) != count:
        raise ExpressionError(ErrorKind.VALUE, f"this takes {count} values apart, but there are {len(items)}")
    return list(items)


# ---- arithmetic


def _no_operands(symbol: str, left: Data, right: Data) -> NoReturn:
    for value in (left, right):
        if isinstance(value, Undefined):
            raise value.error()
    raise ExpressionError(ErrorKind.TYPE, f"`{symbol}` is not defined for {type_name(left)} and {type_name(right)}")


def _are_numbers(left: Data, right: Data) -> bool:
    return isinstance(left, (int, float)) and isinstance(right, (int, float))


def bounded(value: Data) -> Data:
    """Return a number if it is not too long."""
    if type(value) is float:
        return value
    if isinstance(value, int) and not -INT_LIMIT < value < INT_LIMIT:
        raise ExpressionError(ErrorKind.SIZE, f"the number has more than {MAX_INT_BITS} bits")
    if isinstance(value, complex):
        raise ExpressionError(ErrorKind.VALUE, "there is no such power of a negative number")
    return value


def add(fuel: Fuel, left: Data, right: Data) -> Data:
    """Add numbers; join texts, lists or tuples."""
    if type(left) is int and type(right) is int:
        total = left + right
        return total if -INT_LIMIT < total < INT_LIMIT else bounded(total)
    if _are_numbers(left, right):
        return bounded(left + right)
    if type(left) is str and type(right) is str:
        fuel.make(TEXT_BYTES + text_bytes(left) + text_bytes(right))
        return left + right
    if isinstance(left, (list, tuple)) and isinstance(right, list if isinstance(left, list) else tuple):
        fuel.make(LIST_BYTES + ITEM_BYTES * (len(left) + len(right)))
        return operator.add(left, right)
    _no_operands("+", left, right)


def multiply(fuel: Fuel, left: Data, right: Data) -> Data:
    """Multiply numbers; repeat a text, list or tuple."""
    if _are_numbers(left, right):
        return bounded(left * right)
    if isinstance(left, int):
        left, right = right, left
    if isinstance(left, (str, list, tuple)) and isinstance(right, int):
        times = max(right, 0)
        fuel.make(TEXT_BYTES + times * (text_bytes(left) if isinstance(left, str) else ITEM_BYTES * len(left)))
        return left * times
    _no_operands("*", left, right)


def power(_fuel: Fuel, left: Data, right: Data) -> Data:
    """Raise a number to a power."""
    if not _are_numbers(left, right):
        _no_operands("**", left, right)
    if (
        isinstance(left, int)
        and isinstance(right, int)
        and abs(left) > 1
        and left.bit_length() * right > 2 * MAX_INT_BITS
    ):
        raise ExpressionError(ErrorKind.SIZE, f"the number has more than {MAX_INT_BITS} bits")
    return bounded(left**right)


def modulo(fuel: Fuel, left: Data, right: Data) -> Data:
    """Return the remainder of numbers, or a text with its `%` places filled."""
    if type(left) is str:
        return format_text(fuel, left, right)
    return _remainder(fuel, left, right)


def _numeric(symbol: str, function: Callable[[Data, Data], Data]) -> Callable[[Fuel, Data, Data], Data]:
    def apply(_fuel: Fuel, left: Data, right: Data) -> Data:
        if not _are_numbers(left, right):
            _no_operands(symbol, left, right)
        return bounded(function(left, right))

    return apply


_remainder = _numeric("%", operator.mod)


def negate(value: Data) -> Data:
    """Return a number with the other sign."""
    if not isinstance(value, (int, float)):
        raise wrong_type(value, "a number")
    return -value


def positive(value: Data) -> Data:
    """Return a number as it is."""
    if not isinstance(value, (int, float)):
        raise wrong_type(value, "a number")
    return +value


BINARY: dict[OpcodeName, Callable[[Fuel, Data, Data], Data]] = {
    "ADD": add,
    "SUB": _numeric("-", operator.sub),
    "MUL": multiply,
    "DIV": _numeric("/", operator.truediv),
    "FLOORDIV": _numeric("//", operator.floordiv),
    "MOD": modulo,
    "POW": power,
}

# ---- comparisons


def equal(fuel: Fuel, left: Data, right: Data) -> bool:
    """Return whether two values are equal."""
    if isinstance(left, CONTAINERS) and isinstance(right, CONTAINERS):
        if len(left) != len(right):
            return False
        weigh(fuel, left)
        weigh(fuel, right)
    elif type(left) is str and type(right) is str and len(left) == len(right):
        fuel.spend(len(left) >> 6)
    return bool(left == right)


def unequal(fuel: Fuel, left: Data, right: Data) -> bool:
    """Return whether two values differ."""
    return not equal(fuel, left, right)


def _ordering(symbol: str, function: Callable[[Data, Data], Data]) -> Callable[[Fuel, Data, Data], bool]:
    def apply(fuel: Fuel, left: Data, right: Data) -> bool:
        if _are_numbers(left, right):
            return bool(function(left, right))
        if type(left) is str and type(right) is str:
            fuel.spend(min(len(left), len(right)) >> 6)
            return bool(function(left, right))
        for kind in (list, tuple):
            if isinstance(left, kind) and isinstance(right, kind):
                weigh(fuel, left)
                weigh(fuel, right)
                return bool(function(left, right))
        _no_operands(symbol, left, right)

    return apply


def search_steps(length: int, sought: int, *, backwards: bool = False) -> int:
    """Return what looking for a text in another costs at worst; long texts are searched in linear time, forwards."""
    if length > 30_000 and not backwards:
        return length >> 6
    return (length * min(sought, length)) >> 8


def contains(fuel: Fuel, item: Data, holder: Data) -> bool:
    if type(holder) is str:
        if type(item) is not str:
            raise wrong_type(item, "text to look for in text")
        fuel.spend(search_steps(len(holder), len(item)))
        return item in holder
    if isinstance(holder, dict):
        return hashable(fuel, item) in holder
    if isinstance(holder, (list, tuple)):
        fuel.spend(len(holder))
        if isinstance(item, CONTAINERS):
            weigh(fuel, holder)
            weigh(fuel, item)
        elif type(item) is str:
            fuel.spend((len(item) >> 6) * len(holder))
        return item in holder
    if type(holder) is Undefined:
        return False
    raise wrong_type(holder, "a list, a mapping or text after `in`")


def lacks(fuel: Fuel, item: Data, holder: Data) -> bool:
    return not contains(fuel, item, holder)


COMPARE: dict[str, Callable[[Fuel, Data, Data], bool]] = {
    "==": equal,
    "!=": unequal,
    "<": _ordering("<", operator.lt),
    "<=": _ordering("<=", operator.le),
    ">": _ordering(">", operator.gt),
    ">=": _ordering(">=", operator.ge),
    "in": contains,
    "not in": lacks,
}

STATIC_BYTES: dict[OpcodeName, Callable[[tuple[object, ...]], int]] = {
    "LIST": lambda operands: LIST_BYTES + ITEM_BYTES * _count(operands),
    "TUPLE": lambda operands: LIST_BYTES + ITEM_BYTES * _count(operands),
    "MAP": lambda operands: MAP_BYTES + PAIR_BYTES * _count(operands),
    "RECORD": lambda operands: MAP_BYTES + PAIR_BYTES * len(_words(operands)),
}
"""What instructions make whose size stands in the code. It is paid together with their steps."""


def _words(operands: tuple[object, ...]) -> list[str]:
    assert isinstance(operands[0], list)
    return operands[0]


def _count(operands: tuple[object, ...]) -> int:
    assert isinstance(operands[0], int)
    return operands[0]
