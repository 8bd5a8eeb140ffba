"""The values of expressions: undefined values, sizes, conversion to text, truth.

Values are null, booleans, numbers, text, lists, tuples and mappings, as JSON has them, and `Undefined`. Whatever goes
through nested data does it by `measure`, which pays for every node and refuses bottomless nesting; data that shares its
parts can be exponentially larger than the code that made it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any, NamedTuple, NoReturn, TypeAlias

from noetlvm.data.references import PLAIN_TYPES
from noetlvm.expr.errors import MAX_DEPTH, NODE_STEPS, ErrorKind, ExpressionError, Fuel

Data: TypeAlias = Any
"""A value of the language. It comes from playbooks and tools, so its type is known only when it is looked at."""

CONTAINERS = (list, tuple, dict)

LIST_BYTES = 56
ITEM_BYTES = 8
MAP_BYTES = 64
PAIR_BYTES = 104
TEXT_BYTES = 56
"""Memory that a list, an item of it, a mapping, a pair of it and a text besides its characters take, roughly."""


class Undefined:
    """Value of a name or field that does not exist: false, empty, and equal only to another one, as in Jinja2."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __eq__(self, other: object) -> bool:
        return type(other) is Undefined

    def __hash__(self) -> int:
        return 0

    def __bool__(self) -> bool:
        return False

    def __str__(self) -> str:
        return ""

    def __repr__(self) -> str:
        return "Undefined"

    def __len__(self) -> int:
        return 0

    def __iter__(self) -> Iterator[Data]:
        return iter(())

    def __getitem__(self, key: object) -> Undefined:
        return self  # for Python's `%(name)s`

    def error(self) -> ExpressionError:
        return ExpressionError(ErrorKind.UNDEFINED, f"`{self.name}` is undefined")


class Masked(Undefined):
    """A secret of which only the mask was recorded: whatever needs its value is an error, `default` included (S64)."""

    __slots__ = ()

    def error(self) -> ExpressionError:
        return ExpressionError(ErrorKind.UNDEFINED, f"`{self.name}` cannot be read")

    def _refused(self, *_: object) -> NoReturn:
        raise self.error()

    __eq__ = __hash__ = __bool__ = __str__ = __repr__ = __len__ = __iter__ = __getitem__ = _refused


class Group(tuple[Data, ...]):
    """A pair that the filter `groupby` makes; its halves are `grouper` and `list` too. It prints as a tuple."""

    __slots__ = ()
    FIELDS = {"grouper": 0, "list": 1}


class ForLoop:
    """The state of a for block."""

    __slots__ = ("index0", "items")

    def __init__(self, items: Data) -> None:
        self.items = items
        self.index0 = -1


_TYPE_NAMES: dict[type, str] = {
    type(None): "null",
    bool: "a boolean",
    int: "a whole number",
    float: "a number",
    str: "text",
    list: "a list",
    tuple: "a tuple",
    Group: "a tuple",
    dict: "a mapping",
}


def type_name(value: Data) -> str:
    """Return what to call a value's type in a message."""
    kind = type(value)
    return _TYPE_NAMES.get(PLAIN_TYPES.get(kind, kind), kind.__name__)


def wrong_type(value: Data, wanted: str) -> ExpressionError:
    """Return the error for a value that is not what was wanted, or that does not exist."""
    if isinstance(value, Undefined):
        return value.error()
    return ExpressionError(ErrorKind.TYPE, f"this needs {wanted}, not {type_name(value)}")


def guard(value: Data) -> bool:
    """Return the truth of a `when`: Python's, but a text that reads as a boolean is that boolean (S9)."""
    if type(value) is str:
        return value != "" and value.strip()[:6].lower() != "false"
    return bool(value)


# ---- size


class Measure(NamedTuple):
    """What going through a value found."""

    size: int
    nodes: int
    depth: int


Open: TypeAlias = Callable[[Fuel, Data, int], Iterator[Data]]
"""Pays for a container at a depth and returns what is in it, the keys of a mapping included."""


def opened(fuel: Fuel, item: Data, depth: int) -> Iterator[Data]:
    """Pay steps for each value of a container."""
    fuel.spend(NODE_STEPS * (1 + len(item)))
    if isinstance(item, dict):
        fuel.spend(NODE_STEPS * len(item))
    return parts(item, depth)


def parts(item: Data, depth: int) -> Iterator[Data]:
    """Return what is in a container, the keys of a mapping included; refuse excessive nesting."""
    if depth > MAX_DEPTH:
        raise ExpressionError(ErrorKind.SIZE, f"the data is nested more than {MAX_DEPTH} levels deep")
    return chain(item.keys(), item.values()) if isinstance(item, dict) else iter(item)


def measure(fuel: Fuel, value: Data, leaf: Callable[[Data], int], open: Open = opened) -> Measure:
    """Walk nested data, paying for each container by `open`, and add up what `leaf` returns for each other value."""
    if not isinstance(value, CONTAINERS):
        return Measure(leaf(value), 1, 0)
    size, nodes, depth = 0, 1, 0
    waiting: list[Iterator[Data]] = [iter((value,))]
    while waiting:
        for item in waiting[-1]:
            if isinstance(item, CONTAINERS):
                waiting.append(open(fuel, item, len(waiting)))
                nodes += len(item)
                depth = max(depth, len(waiting))
                break
            size += leaf(item)
        else:
            waiting.pop()
    return Measure(size, nodes, depth)


def _reading_cost(value: Data) -> int:
    return len(value) >> 6 if type(value) is str else 0


def weigh(fuel: Fuel, value: Data) -> int:
    """Pay for an operation that looks at every part of a value, and return how much there is to look at."""
    found = measure(fuel, value, _reading_cost)
    fuel.spend(found.size)
    return found.size + found.nodes


def hashable(fuel: Fuel, key: Data) -> Data:
    """Pay for using a value as a key; only a tuple costs anything, since its hash goes through all of it."""
    if isinstance(key, tuple):
        weigh(fuel, key)
    return key


def text_bytes(text: str, length: int | None = None) -> int:
    """Return how much memory a text takes, or one of this length with the same characters."""
    count = len(text) if length is None else length
    return count if text.isascii() else 4 * count


def _printed_size(value: Data) -> int:
    if type(value) is str:
        return 4 + text_bytes(value) * (2 if value.isprintable() else 10)
    if type(value) is int:
        return 4 + value.bit_length() // 3
    return 28


# ---- text


def text(fuel: Fuel, value: Data) -> str:
    """Return a value as text, as Python and Jinja2 print it; nothing for what is undefined."""
    if type(value) is str:
        return value
    if isinstance(value, CONTAINERS):
        found = measure(fuel, value, _printed_size)
        fuel.make(found.size + 2 * found.nodes)
        return str(value)
    # Python itself refuses to print a number that is too long to be printed at once.
    made = str(value)
    fuel.bytes -= TEXT_BYTES + len(made)
    if fuel.bytes < 0:
        fuel.run_out()
    return made


# ---- going through


def elements(fuel: Fuel, value: Data) -> Data:
    """Return what a loop or filter goes through, as a list, tuple or text: of a mapping its keys."""
    if isinstance(value, (list, tuple)):
        fuel.spend(len(value))
        return value
    if type(value) is str:
        fuel.spend(len(value) >> 2)
        return value
    if isinstance(value, dict):
        fuel.make(LIST_BYTES + ITEM_BYTES * len(value))
        fuel.spend(len(value))
        return list(value)
    if type(value) is Undefined:
        return ()
    raise wrong_type(value, "a list, a mapping or text")


def list_of(fuel: Fuel, value: Data) -> list[Data]:
    items = elements(fuel, value)
    each = ITEM_BYTES
    if type(items) is str and not items.isascii():
        each += TEXT_BYTES + 24
    fuel.make(LIST_BYTES + each * len(items))
    return list(items)
