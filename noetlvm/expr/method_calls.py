"""What the methods of text, lists, mappings and numbers do. Python's own do the work, after it is paid for.

One table: for each method and type, what it costs and what is called. Views of mappings are lists.
"""

from __future__ import annotations

from collections.abc import Callable

from noetlvm.data.references import PLAIN_TYPES
from noetlvm.expr.errors import ErrorKind, ExpressionError, Fuel
from noetlvm.expr.operations import contains, search_steps
from noetlvm.expr.text_filters import replaced
from noetlvm.expr.values import (
    ITEM_BYTES,
    LIST_BYTES,
    MAP_BYTES,
    PAIR_BYTES,
    TEXT_BYTES,
    Data,
    Undefined,
    elements,
    hashable,
    text_bytes,
    type_name,
    weigh,
)
from noetlvm.language.methods import METHODS

Cost = Callable[..., None]
Method = Callable[..., Data]

_BLANKS = " \t\n\r\v\f\x1c\x1d\x1e\x1f\x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(
    chr(code) for code in range(0x2000, 0x200B)
)


# ---- what a method of text costs: its fuel, the text, and the arguments of the call


def _copy(fuel: Fuel, text: str, *args: Data) -> None:
    """Makes at most the same text again."""
    fuel.make(TEXT_BYTES + text_bytes(text))


def _letters(fuel: Fuel, text: str, *args: Data) -> None:
    """Makes a text in which a letter becomes at most three others."""
    fuel.make(TEXT_BYTES + text_bytes(text) * (1 if text.isascii() else 3))


def _read(fuel: Fuel, text: str, *args: Data) -> None:
    """Looks at each character."""
    fuel.spend(len(text) >> 4)


def _affix(fuel: Fuel, text: str, affix: Data, *args: Data) -> None:
    """Compares with a text, or with each of a tuple."""
    for each in affix if isinstance(affix, tuple) else (affix,):
        fuel.spend(1 + (len(each) >> 6 if type(each) is str else 0))


def _strip(fuel: Fuel, text: str, chars: Data = None) -> None:
    _copy(fuel, text)
    if type(chars) is str:
        fuel.spend((len(text) >> 6) * (1 + len(chars)) + (len(chars) >> 4))


def _pad(fuel: Fuel, text: str, width: Data, *args: Data) -> None:
    fuel.make(TEXT_BYTES + text_bytes(text) + (4 * abs(width) if isinstance(width, int) else 0))


def _tabs(fuel: Fuel, text: str, tabsize: Data = 8) -> None:
    size = abs(tabsize) if isinstance(tabsize, int) else 0
    fuel.make(TEXT_BYTES + text_bytes(text, len(text) + text.count("\t") * size))


def _search(fuel: Fuel, text: str, sought: Data, *args: Data) -> None:
    if type(sought) is str:
        fuel.spend(search_steps(len(text), len(sought)))


def _search_backwards(fuel: Fuel, text: str, sought: Data, *args: Data) -> None:
    if type(sought) is str:
        fuel.spend(search_steps(len(text), len(sought), backwards=True))


def _parts(fuel: Fuel, text: str, sep: Data = None, maxsplit: Data = -1) -> None:
    """Makes a list of as many texts as there are separators, and one more."""
    if type(sep) is str and sep:
        fuel.spend(search_steps(len(text), len(sep)))
        parts = text.count(sep)
    else:
        parts = sum(map(text.count, _BLANKS))
    if isinstance(maxsplit, int) and 0 <= maxsplit < parts:
        parts = maxsplit
    fuel.make(LIST_BYTES + text_bytes(text) + (parts + 1) * (TEXT_BYTES + 24 + ITEM_BYTES))


def _parts_backwards(fuel: Fuel, text: str, sep: Data = None, maxsplit: Data = -1) -> None:
    if type(sep) is str:
        fuel.spend(search_steps(len(text), len(sep), backwards=True))
    _parts(fuel, text, sep, maxsplit)


def _partition(fuel: Fuel, text: str, sep: Data) -> None:
    _search_backwards(fuel, text, sep)
    _copy(fuel, text)


def _lines(fuel: Fuel, text: str, keepends: Data = False) -> None:
    breaks = sum(map(text.count, "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"))
    fuel.make(LIST_BYTES + text_bytes(text) + (breaks + 1) * (TEXT_BYTES + 24 + ITEM_BYTES))


def _paid(method: Method, cost: Cost) -> Method:
    """Return Python's method with its price before it."""

    def pay_and_call(fuel: Fuel, text: str, *args: Data, **kwargs: Data) -> Data:
        cost(fuel, text, *args, **kwargs)
        return method(text, *args, **kwargs)

    return pay_and_call


# ---- methods with a way of their own


def _join(fuel: Fuel, between: str, iterable: Data, /) -> str:
    found = elements(fuel, iterable)
    size = sum(text_bytes(each) for each in found if type(each) is str)
    fuel.make(TEXT_BYTES + size + text_bytes(between) * len(found))
    return between.join(found)


def _replace(fuel: Fuel, text: str, old: Data, new: Data, count: Data = -1, /) -> str:
    if type(old) is not str or type(new) is not str:
        raise ExpressionError(ErrorKind.TYPE, "`.replace()` takes two texts")
    return replaced(fuel, text, old, new, count)


def _get(fuel: Fuel, mapping: dict[Data, Data], key: Data, default: Data = None, /) -> Data:
    return mapping.get(hashable(fuel, key), default)


def _items(fuel: Fuel, mapping: dict[Data, Data]) -> list[Data]:
    fuel.spend(len(mapping))
    fuel.make(LIST_BYTES + (LIST_BYTES + 3 * ITEM_BYTES) * len(mapping))
    return list(mapping.items())


def _keys(fuel: Fuel, mapping: dict[Data, Data]) -> list[Data]:
    fuel.make(LIST_BYTES + ITEM_BYTES * len(mapping))
    return list(mapping)


def _values(fuel: Fuel, mapping: dict[Data, Data]) -> list[Data]:
    fuel.make(LIST_BYTES + ITEM_BYTES * len(mapping))
    return list(mapping.values())


def _copy_list(fuel: Fuel, items: list[Data]) -> list[Data]:
    fuel.make(LIST_BYTES + ITEM_BYTES * len(items))
    return list(items)


def _copy_mapping(fuel: Fuel, mapping: dict[Data, Data]) -> dict[Data, Data]:
    fuel.make(MAP_BYTES + PAIR_BYTES * len(mapping))
    return dict(mapping)


def _count_items(fuel: Fuel, items: list[Data], value: Data, /) -> int:
    _compare_with_each(fuel, items, value)
    return items.count(value)


def _index_of(fuel: Fuel, items: list[Data], value: Data, *bounds: Data) -> int:
    _compare_with_each(fuel, items, value)
    return items.index(value, *bounds)


def _compare_with_each(fuel: Fuel, items: list[Data], value: Data) -> None:
    contains(fuel, value, items)
    if isinstance(value, (list, tuple, dict)):
        weigh(fuel, items)


_OF_TEXT: dict[str, tuple[Method, Cost]] = {
    "capitalize": (str.capitalize, _letters),
    "casefold": (str.casefold, _letters),
    "center": (str.center, _pad),
    "count": (str.count, _search),
    "endswith": (str.endswith, _affix),
    "expandtabs": (str.expandtabs, _tabs),
    "find": (str.find, _search),
    "index": (str.index, _search),
    "isalnum": (str.isalnum, _read),
    "isalpha": (str.isalpha, _read),
    "isascii": (str.isascii, _read),
    "isdecimal": (str.isdecimal, _read),
    "isdigit": (str.isdigit, _read),
    "islower": (str.islower, _read),
    "isnumeric": (str.isnumeric, _read),
    "isspace": (str.isspace, _read),
    "istitle": (str.istitle, _read),
    "isupper": (str.isupper, _read),
    "ljust": (str.ljust, _pad),
    "lower": (str.lower, _letters),
    "lstrip": (str.lstrip, _strip),
    "partition": (str.partition, _partition),
    "removeprefix": (str.removeprefix, _copy),
    "removesuffix": (str.removesuffix, _copy),
    "rfind": (str.rfind, _search_backwards),
    "rindex": (str.rindex, _search_backwards),
    "rjust": (str.rjust, _pad),
    "rpartition": (str.rpartition, _partition),
    "rsplit": (str.rsplit, _parts_backwards),
    "rstrip": (str.rstrip, _strip),
    "split": (str.split, _parts),
    "splitlines": (str.splitlines, _lines),
    "startswith": (str.startswith, _affix),
    "strip": (str.strip, _strip),
    "swapcase": (str.swapcase, _letters),
    "title": (str.title, _letters),
    "upper": (str.upper, _letters),
    "zfill": (str.zfill, _pad),
}

BY_TYPE: dict[type, dict[str, Method]] = {
    str: {
        **{name: _paid(method, cost) for name, (method, cost) in _OF_TEXT.items()},
        "join": _join,
        "replace": _replace,
    },
    list: {"copy": _copy_list, "count": _count_items, "index": _index_of},
    dict: {"copy": _copy_mapping, "get": _get, "items": _items, "keys": _keys, "values": _values},
    float: {"is_integer": lambda fuel, value: value.is_integer()},
}


def _dispatched(name: str) -> Method:
    """Return a method that finds its implementation by the receiver's type."""
    by_type = {kind: methods[name] for kind, methods in BY_TYPE.items() if name in methods}

    def dispatch(fuel: Fuel, receiver: Data, *args: Data, **kwargs: Data) -> Data:
        method = by_type.get(PLAIN_TYPES.get(type(receiver), type(receiver)))
        if method is None:
            raise _no_method(name, receiver)
        return method(fuel, receiver, *args, **kwargs)

    return dispatch


def _no_method(name: str, receiver: Data) -> ExpressionError:
    if isinstance(receiver, Undefined):
        return receiver.error()
    owners = " and ".join(type_name(kind()) for kind in BY_TYPE if name in BY_TYPE[kind])
    return ExpressionError(ErrorKind.TYPE, f"`.{name}()` is a method of {owners}, not of {type_name(receiver)}")


METHOD_CALLS: dict[str, Method] = {name: _dispatched(name) for name in METHODS}
