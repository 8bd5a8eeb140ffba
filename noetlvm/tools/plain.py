"""Plain data, as events hold it: values of drivers and references as text, numbers, lists and mappings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_AS_IT_IS = (str, int, float, bool, type(None))


def plain(value: Any) -> Any:
    """Return the value as plain data; stored results in it are read (S46). Raises TypeError."""
    if type(value) in _AS_IT_IS:
        return value
    if isinstance(value, dict):
        return {_key(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    convert = next((_CONVERSIONS[base.__name__] for base in type(value).__mro__ if base.__name__ in _CONVERSIONS), None)
    if convert is None:
        name = getattr(value, "name", None) if type(value).__name__ == "Undefined" else None
        raise TypeError(f"`{name}` is undefined" if name else f"a `{type(value).__name__}` is no plain data")
    return convert(value)


def size_of(value: Any) -> int:
    """Return about how many bytes plain data takes."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        return sum(len(key) + size_of(item) for key, item in value.items())
    if isinstance(value, list):
        return sum(map(size_of, value))
    return 8


def _key(key: Any) -> str:
    return key if isinstance(key, str) else str(plain(key))


def _number(value: Any) -> int | float | str:
    """Return a decimal number as a number if that preserves every digit, else as text."""
    if value.is_finite() and value == value.to_integral_value() and value.as_tuple().exponent >= 0:
        return int(value)
    near = float(value)
    return near if not value.is_finite() or type(value)(repr(near)) == value else str(value)


def _base64(value: Any) -> str:
    from base64 import b64encode

    return b64encode(value).decode()


def _isoformat(value: Any) -> str:
    return str(value.isoformat())


def _seconds(value: Any) -> float:
    return float(value.total_seconds())


_CONVERSIONS: dict[str, Callable[[Any], Any]] = {
    "str": str.__str__,
    "int": int.__int__,
    "float": float.__float__,
    "Decimal": _number,
    "date": _isoformat,
    "time": _isoformat,
    "timedelta": _seconds,
    "UUID": str,
    "bytes": _base64,
    "bytearray": _base64,
    "memoryview": _base64,
    "Range": str,
    "Multirange": str,
    "IPv4Address": str,
    "IPv6Address": str,
    "IPv4Network": str,
    "IPv6Network": str,
    "IPv4Interface": str,
    "IPv6Interface": str,
}
"""By the name of a class or of a base class, so that none of their modules has to be imported here."""
