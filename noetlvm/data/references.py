"""References to stored results, and data that holds some (S46).

A template never gets a reference. Whatever it reads from is a `ReferringMap` or `ReferringList` if references
stand in it, and those give the stored value in place of each, loaded when it is read. Plain data costs nothing more.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from math import isfinite
from typing import Any, SupportsIndex, TypeAlias

Load: TypeAlias = "Callable[[Reference], Any]"
"""Gives what a reference stands for, or raises ExpressionError."""


class Reference:
    """A stored result: where it is, and enough to describe and verify it."""

    __slots__ = ("hint", "key", "load", "size", "store")

    def __init__(self, store: str, key: str, size: int, hint: str, load: Load | None = None) -> None:
        self.store = store
        self.key = key
        """The SHA-256 of the stored bytes, in hexadecimal."""
        self.size = size
        self.hint = hint
        self.load = load
        """How to read it, where it stands inside of data that was itself read."""

    @property
    def checksum(self) -> str:
        return f"sha256:{self.key}"

    def to_data(self) -> dict[str, Any]:
        """Return it as people and APIs see it."""
        return {
            "store": self.store,
            "key": self.key,
            "checksum": self.checksum,
            "size": self.size,
            "schema_hint": self.hint,
        }

    def __eq__(self, other: object) -> bool:
        return type(other) is Reference and (other.store, other.key) == (self.store, self.key)

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return f"Reference({self.store}:{self.key[:12]}, {self.size} bytes, {self.hint})"


class ReferringMap(dict[Any, Any]):
    """A mapping whose values may be references; reading one gives what it stands for."""

    __slots__ = ("load",)

    def __init__(self, raw: dict[Any, Any], load: Load) -> None:
        super().__init__(raw)
        self.load = load

    def raw(self) -> dict[Any, Any]:
        """Return the mapping as it is stored, references included."""
        return dict(dict.items(self))

    def opened(self) -> dict[Any, Any]:
        """Return the mapping with every reference loaded."""
        return dict(self.items())

    def _read(self, value: Any) -> Any:
        return self.load(value) if type(value) is Reference else value

    def __getitem__(self, key: Any) -> Any:
        return self._read(dict.__getitem__(self, key))

    def get(self, key: Any, default: Any = None) -> Any:
        return self._read(dict.get(self, key, default))

    def __iter__(self) -> Iterator[Any]:
        # Python copies a mapping's insides as they are, past all of the above, unless it has an iterator of its own.
        return dict.__iter__(self)

    def values(self) -> Any:
        return [self._read(value) for value in dict.values(self)]

    def items(self) -> Any:
        return [(key, self._read(value)) for key, value in dict.items(self)]

    def __eq__(self, other: object) -> bool:
        return self.opened() == other

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None

    def __repr__(self) -> str:
        return repr(self.opened())


class ReferringList(list[Any]):
    """A list whose items may be references; reading one gives what it stands for."""

    __slots__ = ("load",)

    def __init__(self, raw: Iterable[Any], load: Load) -> None:
        super().__init__(raw)
        self.load = load

    def raw(self) -> list[Any]:
        """Return the list as it is stored, references included."""
        return list(list.__iter__(self))

    def opened(self) -> list[Any]:
        """Return the list with every reference loaded."""
        return list(self)

    def _read(self, value: Any) -> Any:
        return self.load(value) if type(value) is Reference else value

    def __getitem__(self, index: SupportsIndex | slice) -> Any:
        if isinstance(index, slice):
            return ReferringList(list.__getitem__(self, index), self.load)
        return self._read(list.__getitem__(self, index))

    def __iter__(self) -> Iterator[Any]:
        return map(self._read, list.__iter__(self))

    def __reversed__(self) -> Iterator[Any]:
        return map(self._read, list.__reversed__(self))

    def __add__(self, other: Any) -> Any:
        return self.opened() + other

    def __radd__(self, other: Any) -> Any:
        return other + self.opened()

    def __mul__(self, times: SupportsIndex) -> list[Any]:
        return self.opened() * times

    __rmul__ = __mul__

    def __contains__(self, value: object) -> bool:
        return value in self.opened()

    def __eq__(self, other: object) -> bool:
        return self.opened() == other

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None

    def __repr__(self) -> str:
        return repr(self.opened())

    def index(self, value: Any, *bounds: Any) -> int:
        return self.opened().index(value, *bounds)

    def count(self, value: Any) -> int:
        return self.opened().count(value)


PLAIN_TYPES: dict[type, type] = {ReferringMap: dict, ReferringList: list}
"""The type that templates see."""


def readable(value: dict[str, Any], load: Load) -> dict[str, Any]:
    """Return a mapping that templates can read from: itself, unless a reference stands in it."""
    return ReferringMap(value, load) if Reference in map(type, value.values()) else value


def overlaid(base: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """Return a readable mapping with some values replaced; what stays a reference stays unread."""
    if type(base) is ReferringMap:
        return ReferringMap(base.raw() | patch, base.load)
    return {**base, **patch}


def as_json(value: Any, *, indent: int | None = None) -> str:
    """Return JSON; a stored result is shown as its reference (S46), a number that JSON cannot represent as null."""
    try:
        return json.dumps(value, default=_described, ensure_ascii=False, indent=indent, allow_nan=False)
    except ValueError:
        return json.dumps(_finite(value), default=_described, ensure_ascii=False, indent=indent)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, dict):
        # As it is stored: this must not load results that are references.
        return {key: _finite(item) for key, item in dict.items(value)}
    if isinstance(value, list | tuple):
        items = list.__iter__(value) if isinstance(value, list) else iter(value)
        return [_finite(item) for item in items]
    return value


def _described(value: Any) -> Any:
    return value.to_data() if isinstance(value, Reference) else str(value)


def plain(value: Any) -> Any:
    """Return data that JSON can hold, as `as_json` defines."""
    return json.loads(as_json(value))
