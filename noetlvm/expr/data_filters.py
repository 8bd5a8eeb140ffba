"""The filters that work on lists, mappings and numbers.

Each is written out here instead of taken from Jinja2: it must pay before it works, read fields as data only, and what
Jinja2 would hand on as a generator is a list. Where Jinja2 has a quirk, so has this.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import groupby as consecutive

from noetlvm.bytecode.isa import OpcodeName
from noetlvm.expr.calls import fitting, named
from noetlvm.expr.errors import CALL_STEPS, ErrorKind, ExpressionError, Fuel
from noetlvm.expr.operations import add, bounded, item
from noetlvm.expr.values import (
    CONTAINERS,
    ITEM_BYTES,
    LIST_BYTES,
    TEXT_BYTES,
    Data,
    Group,
    Undefined,
    elements,
    hashable,
    list_of,
    text,
    text_bytes,
    weigh,
    wrong_type,
)

PRECISION_MAX = 1_000
"""Digits after the point that `round` accepts; ten to a greater power would be computed in full."""

Getter = Callable[[Data], Data]

# ---- fields by name


def _parts(attribute: Data) -> list[Data]:
    if attribute is None:
        return []
    if isinstance(attribute, str):
        return [int(part) if part.isdigit() else part for part in attribute.split(".")]
    return [attribute]


def _lower(fuel: Fuel, value: Data) -> Data:
    if type(value) is not str:
        return value
    fuel.make(3 * text_bytes(value))
    return value.lower()


def _getter(fuel: Fuel, attribute: Data, *, case_sensitive: bool = True, default: Data = None) -> Getter:
    """Return a function that reads a field such as `address.city`, optionally case-insensitive."""
    parts = _parts(attribute)

    def read(value: Data) -> Data:
        for part in parts:
            fuel.spend(1)
            value = item(fuel, value, part)
            if default is not None and type(value) is Undefined:
                value = default
        return value if case_sensitive else _lower(fuel, value)

    return read


def _multi_getter(fuel: Fuel, attribute: Data, case_sensitive: bool) -> Getter:
    names = attribute.split(",") if isinstance(attribute, str) else [attribute]
    getters = [_getter(fuel, name, case_sensitive=case_sensitive) for name in names]
    return lambda value: [read(value) for read in getters]


def _sorting(fuel: Fuel, items: Data) -> None:
    """Pay for comparing items with each other."""
    fuel.spend(weigh(fuel, items) * (len(items).bit_length() // 4))
    fuel.make(LIST_BYTES + 4 * ITEM_BYTES * len(items))


# ---- order and grouping


def sort(fuel: Fuel, value: Data, reverse: Data = False, case_sensitive: Data = False, attribute: Data = None) -> Data:
    """Return the items in order."""
    items = list_of(fuel, value)
    _sorting(fuel, items)
    return sorted(items, key=_multi_getter(fuel, attribute, case_sensitive), reverse=reverse)


def dictsort(fuel: Fuel, value: Data, case_sensitive: Data = False, by: Data = "key", reverse: Data = False) -> Data:
    """Return the pairs of a mapping in order."""
    if by not in ("key", "value"):
        raise ExpressionError(ErrorKind.VALUE, '`dictsort` sorts by "key" or by "value"')
    pairs = items(fuel, value if type(value) is not Undefined else None)
    _sorting(fuel, pairs)
    position = 0 if by == "key" else 1
    read = _getter(fuel, None, case_sensitive=case_sensitive)
    return sorted(pairs, key=lambda pair: read(pair[position]), reverse=reverse)


def unique(fuel: Fuel, value: Data, case_sensitive: Data = False, attribute: Data = None) -> Data:
    """Return the items without repetitions."""
    read = _getter(fuel, attribute, case_sensitive=case_sensitive)
    seen: dict[Data, Data] = {}
    found = elements(fuel, value)
    fuel.make(LIST_BYTES + 96 * len(found))
    for each in found:
        seen.setdefault(hashable(fuel, read(each)), each)
    return list(seen.values())


def _extreme(function: Callable[..., Data]) -> Callable[..., Data]:
    def choose(fuel: Fuel, value: Data, case_sensitive: Data = False, attribute: Data = None) -> Data:
        found = elements(fuel, value)
        if not found:
            return Undefined("the greatest or least of nothing")
        weigh(fuel, found)
        return function(found, key=_getter(fuel, attribute, case_sensitive=case_sensitive))

    return choose


def groupby(fuel: Fuel, value: Data, attribute: Data, default: Data = None, case_sensitive: Data = False) -> Data:
    """Return groups of items that have a field in common, each a pair of the field's value and a list."""
    read = _getter(fuel, attribute, case_sensitive=case_sensitive, default=default)
    found = list_of(fuel, value)
    _sorting(fuel, found)
    fuel.make((2 * LIST_BYTES + ITEM_BYTES) * len(found))
    groups = [(key, list(members)) for key, members in consecutive(sorted(found, key=read), read)]
    if case_sensitive:
        return [Group(group) for group in groups]
    exact = _getter(fuel, attribute, default=default)
    return [Group((exact(members[0]), members)) for _, members in groups]


# ---- parts


def batch(fuel: Fuel, value: Data, linecount: Data, fill_with: Data = None) -> Data:
    """Return the items in pieces of a length."""
    pieces: list[list[Data]] = []
    piece: list[Data] = []
    found = elements(fuel, value)
    fuel.make((LIST_BYTES + 2 * ITEM_BYTES) * len(found))
    for each in found:
        if len(piece) == linecount:
            pieces.append(piece)
            piece = []
        piece.append(each)
    if piece:
        pieces.append(_filled(fuel, piece, linecount, fill_with))
    return pieces


def _filled(fuel: Fuel, piece: list[Data], length: Data, fill_with: Data) -> list[Data]:
    if fill_with is None or len(piece) >= length:
        return piece
    missing = length - len(piece)
    fuel.make(ITEM_BYTES * max(0, math.ceil(missing)))
    return piece + [fill_with] * missing


def slice_(fuel: Fuel, value: Data, slices: Data, fill_with: Data = None) -> Data:
    """Return the items in this many parts of about the same length."""
    found = list_of(fuel, value)
    each, longer = divmod(len(found), slices)
    fuel.make(max(0, math.ceil(slices)) * (LIST_BYTES + 2 * ITEM_BYTES) + ITEM_BYTES * len(found))
    parts: list[list[Data]] = []
    start = 0
    for number in range(slices):
        stop = start + each + (number < longer)
        part = found[start:stop]
        if fill_with is not None and number >= longer:
            part.append(fill_with)
        parts.append(part)
        start = stop
    return parts


def first(fuel: Fuel, value: Data) -> Data:
    """Return the first item, or what is undefined if there is none."""
    if isinstance(value, dict):
        return next(iter(value), Undefined("the first item of nothing"))
    return _end(fuel, value, 0)


def last(fuel: Fuel, value: Data) -> Data:
    """Return the last item, or what is undefined if there is none."""
    if isinstance(value, dict):
        return next(reversed(value), Undefined("the last item of nothing"))
    return _end(fuel, value, -1)


def _end(fuel: Fuel, value: Data, index: int) -> Data:
    if isinstance(value, (list, tuple, str)):
        return value[index] if value else Undefined(f"the {'last' if index else 'first'} item of nothing")
    return _end(fuel, elements(fuel, value), index)


def length(fuel: Fuel, value: Data) -> int:
    """Return the number of items or characters."""
    if isinstance(value, (str, *CONTAINERS, Undefined)):
        return len(value)
    raise wrong_type(value, "a list, a mapping or text")


def items(fuel: Fuel, value: Data) -> Data:
    if type(value) is Undefined:
        return []
    if not isinstance(value, dict):
        raise wrong_type(value, "a mapping")
    fuel.spend(len(value))
    fuel.make(LIST_BYTES + (LIST_BYTES + 3 * ITEM_BYTES) * len(value))
    return list(value.items())


def reverse(fuel: Fuel, value: Data) -> Data:
    """Return the text or list backwards."""
    if type(value) is str:
        fuel.make(TEXT_BYTES + text_bytes(value))
        return value[::-1]
    return list_of(fuel, value)[::-1]


# ---- numbers


def absolute(fuel: Fuel, value: Data) -> Data:
    """Return the number without its sign."""
    if not isinstance(value, (int, float)):
        raise wrong_type(value, "a number")
    return abs(value)


def to_float(fuel: Fuel, value: Data, default: Data = 0.0) -> Data:
    if isinstance(value, Undefined):
        raise value.error()
    try:
        return float(value)
    except (TypeError, ValueError):
        return default


def to_int(fuel: Fuel, value: Data, default: Data = 0, base: Data = 10) -> Data:
    """Return the value as a whole number; `42.23` as text is 42, as in Jinja2."""
    if isinstance(value, Undefined):
        raise value.error()
    if type(value) is str:
        fuel.make(text_bytes(value))
    try:
        return bounded(int(value, base) if type(value) is str else int(value))
    except (TypeError, ValueError):
        try:
            return int(float(value))
        except (TypeError, ValueError, OverflowError):
            return default


def round_(fuel: Fuel, value: Data, precision: Data = 0, method: Data = "common") -> Data:
    if method not in ("common", "ceil", "floor"):
        raise ExpressionError(ErrorKind.VALUE, "`round` has the methods `common`, `ceil` and `floor`")
    if not isinstance(value, (int, float)):
        raise wrong_type(value, "a number")
    if isinstance(precision, (int, float)) and abs(precision) > PRECISION_MAX:
        raise ExpressionError(ErrorKind.SIZE, f"`round` takes at most {PRECISION_MAX} digits")
    if method == "common":
        return bounded(round(value, precision))
    function = math.ceil if method == "ceil" else math.floor
    scale = 10**precision
    return bounded(function(value * scale) / scale)


def sum_(fuel: Fuel, value: Data, attribute: Data = None, start: Data = 0) -> Data:
    """Return the sum of the items, or of one field of each, added up one by one."""
    if type(start) is str:
        raise ExpressionError(ErrorKind.TYPE, "`sum` adds numbers and lists; use `join` for text")
    read = _getter(fuel, attribute)
    total = start
    for each in elements(fuel, value):
        total = add(fuel, total, read(each))
    return total


# ---- each item


def map_(fuel: Fuel, value: Data, *args: Data, **kwargs: Data) -> Data:
    """Return each item through a filter, or one field of each."""
    if not value:
        return []
    function = _mapped(fuel, args, kwargs)
    found = elements(fuel, value)
    fuel.make(LIST_BYTES + ITEM_BYTES * len(found))
    return [function(each) for each in found]


def _mapped(fuel: Fuel, args: tuple[Data, ...], kwargs: dict[str, Data]) -> Getter:
    if not args and "attribute" in kwargs:
        unknown = sorted(kwargs.keys() - {"attribute", "default"})
        if unknown:
            raise ExpressionError(ErrorKind.TYPE, f"`map` has no argument named `{unknown[0]}`")
        return _getter(fuel, kwargs["attribute"], default=kwargs.get("default"))
    if not args:
        raise ExpressionError(ErrorKind.TYPE, "`map` needs the name of a filter, or `attribute=`")
    return _called(fuel, "FILTER", args[0], args[1:], kwargs)


def _called(fuel: Fuel, opcode: OpcodeName, name: Data, args: tuple[Data, ...], kwargs: dict[str, Data]) -> Getter:
    function = fitting(named(opcode, name), args, kwargs)

    def apply(value: Data) -> Data:
        fuel.spend(CALL_STEPS)
        return function(fuel, value, *args, **kwargs)

    return apply


def _select(wanted: bool, by_field: bool) -> Callable[..., Data]:
    def select(fuel: Fuel, value: Data, *args: Data, **kwargs: Data) -> Data:
        if not value:
            return []
        read, args = (_getter(fuel, args[0]), args[1:]) if by_field else (_itself, args)
        holds = _called(fuel, "TEST", args[0], args[1:], kwargs) if args else bool
        found = elements(fuel, value)
        fuel.make(LIST_BYTES + ITEM_BYTES * len(found))
        return [each for each in found if bool(holds(read(each))) is wanted]

    def by_attribute(fuel: Fuel, value: Data, attribute: Data, /, *args: Data, **kwargs: Data) -> Data:
        return select(fuel, value, attribute, *args, **kwargs)

    return by_attribute if by_field else select


def _itself(value: Data) -> Data:
    return value


def default(fuel: Fuel, value: Data, default_value: Data = "", boolean: Data = False) -> Data:
    """Return another value if this one is undefined, or optionally if it is false."""
    return default_value if type(value) is Undefined or (boolean and not value) else value


def join(fuel: Fuel, value: Data, d: Data = "", attribute: Data = None) -> str:
    between = text(fuel, d)
    found = elements(fuel, value)
    if type(found) is str and not between and attribute is None:
        return found
    fuel.make(ITEM_BYTES * len(found))
    read = _getter(fuel, attribute)
    texts = [text(fuel, read(each)) for each in found]
    fuel.make(sum(map(text_bytes, texts)) + text_bytes(between) * len(texts))
    return between.join(texts)


DATA_FILTERS: dict[str, Callable[..., Data]] = {
    "abs": absolute,
    "batch": batch,
    "count": length,
    "d": default,
    "default": default,
    "dictsort": dictsort,
    "first": first,
    "float": to_float,
    "groupby": groupby,
    "int": to_int,
    "items": items,
    "join": join,
    "last": last,
    "length": length,
    "list": list_of,
    "map": map_,
    "max": _extreme(max),
    "min": _extreme(min),
    "reject": _select(False, by_field=False),
    "rejectattr": _select(False, by_field=True),
    "reverse": reverse,
    "round": round_,
    "select": _select(True, by_field=False),
    "selectattr": _select(True, by_field=True),
    "slice": slice_,
    "sort": sort,
    "sum": sum_,
    "unique": unique,
}
