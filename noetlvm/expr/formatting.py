"""The `%` of text, as Python has it, with the size of every field known before it is filled."""

from __future__ import annotations

import re
from collections.abc import Iterator

from noetlvm.expr.errors import ErrorKind, ExpressionError, Fuel
from noetlvm.expr.values import CONTAINERS, Data, Undefined, measure, text_bytes

_WIDTHS = re.compile(r"[#0\- +]*(\*|\d*)(?:\.(\*|\d*))?")
_PARENTHESES = re.compile(r"[()]")
_NUMBER_MAX = 400
"""Characters of a number that is printed without a width."""
_FIELDS_MAX = 10_000


def format_text(fuel: Fuel, template: str, values: Data) -> str:
    """Return `template % values`."""
    fuel.spend(len(template))
    arguments = values if isinstance(values, tuple) else (values,)
    largest = max((_size(fuel, value) for value in _filling(values)), default=0)
    size = text_bytes(template)
    for count, widths in enumerate(_widths(template)):
        if count == _FIELDS_MAX:
            raise ExpressionError(ErrorKind.SIZE, f"the text has more than {_FIELDS_MAX} `%` places")
        size += largest + sum(_number(digits, arguments) for digits in widths)
    fuel.make(size)
    filled: str = template % values
    return filled


def _widths(template: str) -> Iterator[tuple[str | None, ...]]:
    """Yield the width and precision of each place, found as Python finds them."""
    at = template.find("%")
    while at != -1:
        at = _after_key(template, at + 1)
        match = _WIDTHS.match(template, at)
        assert match
        yield match.groups()
        at = template.find("%", match.end() + 1)


def _after_key(template: str, at: int) -> int:
    """Return the end of a placeholder's `(key)`, in which parentheses may nest."""
    if not template.startswith("(", at):
        return at
    depth = 0
    for match in _PARENTHESES.finditer(template, at):
        depth += 1 if match[0] == "(" else -1
        if depth == 0:
            return match.end()
    return len(template)


def _filling(values: Data) -> tuple[Data, ...]:
    """Return everything that may fill a place."""
    if isinstance(values, dict):
        return (*values.values(), values)
    return tuple(values) if isinstance(values, tuple) else (values,)


def _size(fuel: Fuel, value: Data) -> int:
    if isinstance(value, CONTAINERS):
        found = measure(fuel, value, _leaf_size)
        return found.size + 2 * found.nodes
    return _leaf_size(value)


def _leaf_size(value: Data) -> int:
    if type(value) is str:
        # Quoted, as `%r` does, a character takes up to ten; `%s` needs no more than this either.
        return 4 + text_bytes(value) * (2 if value.isprintable() and value.isascii() else 10)
    if type(value) is Undefined:
        return 16
    return _NUMBER_MAX + (value.bit_length() // 3 if type(value) is int else 0)


def _number(digits: str | None, arguments: tuple[Data, ...]) -> int:
    """Return a width or precision; for a `*`, the greatest number among the arguments."""
    if not digits:
        return 0
    if digits == "*":
        return max((abs(value) for value in arguments if isinstance(value, int)), default=0)
    # Python refuses a number this long; it must not be computed first.
    return int(digits) if len(digits) < 20 else 0
