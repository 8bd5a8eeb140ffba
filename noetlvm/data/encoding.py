"""Data as bytes: msgpack, with extension types for references, large integers and tuples."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from msgpack import ExtType, Packer, packb, unpackb  # type: ignore[import-untyped]  # it ships no types

from noetlvm.data.references import Reference, ReferringList, ReferringMap

MASK = "***"
"""Replaces a secret in what is recorded (S45)."""

_REFERENCE, _INTEGER, _TUPLE = 1, 2, 3
"""Codes of msgpack extension types."""

INTEGER_BITS_MAX = 14_000
"""Python converts no integers of more than 4,300 digits to text, so nothing could show a larger one."""

_PLAIN = (dict, list, str, int, float)
"""An instance of a subtype of one of these is encoded as that type."""

_BUFFER_BYTES = 1024 * 1024


class UnencodableError(Exception):
    """A value that no event and no store can hold. The message names the part that cannot be encoded."""


class _Encoder(threading.local):
    """Encodes, and notes the references in the value. One per thread: a Packer costs more than most values."""

    def __init__(self) -> None:
        self.references: list[str] = []
        self._renew()

    def _renew(self) -> None:
        self._pack = Packer(default=self._extended, strict_types=True).pack

    def encode(self, value: Any) -> bytes:
        self.references = []
        try:
            data: bytes = self._pack(value)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            # `_extended` raises TypeError; msgpack raises the others, for invalid Unicode and for excessive nesting.
            raise UnencodableError(str(error)) from None
        if len(data) > _BUFFER_BYTES:
            self._renew()  # a Packer never shrinks its buffer
        return data

    def _extended(self, value: Any) -> Any:
        """Convert a value that msgpack has no type for."""
        kind = type(value)
        if kind is Reference:
            self.references.append(value.key)
            return ExtType(_REFERENCE, packb([value.store, bytes.fromhex(value.key), value.size, value.hint]))
        if kind is ReferringMap or kind is ReferringList:
            return value.raw()
        if isinstance(value, tuple):
            return ExtType(_TUPLE, packb(list(value), default=self._extended, strict_types=True))
        if kind is int:
            if value.bit_length() > INTEGER_BITS_MAX:
                raise TypeError(f"a number of more than {INTEGER_BITS_MAX:,} bits is not data; give it as text")
            return ExtType(_INTEGER, value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True))
        plain: Any = next((plain for plain in _PLAIN if isinstance(value, plain)), None)
        if plain is not None:
            return plain(value)
        raise TypeError(f"{type(value).__name__} is not data")


_ENCODER = _Encoder()


def encode(value: Any) -> bytes:
    """Return a value as bytes. Raises UnencodableError."""
    return _ENCODER.encode(value)


def encode_noting_references(value: Any) -> tuple[bytes, bool]:
    """Return a value as bytes, and whether it holds references. Raises UnencodableError."""
    return _ENCODER.encode(value), bool(_ENCODER.references)


def encode_listing_references(value: Any) -> tuple[bytes, list[str]]:
    """Return a value as bytes, and the keys of the references in it. Raises UnencodableError."""
    return _ENCODER.encode(value), _ENCODER.references


def decode(data: bytes, load: Callable[[Reference], Any] | None = None) -> Any:
    """Return the value of bytes that `encode` made. With `load`, references in it are loaded on access."""
    if load is None:
        return unpackb(data, ext_hook=_extension, strict_map_key=False)
    found: list[Reference] = []

    def extension(code: int, body: bytes) -> Any:
        value = _extension(code, body)
        if type(value) is Reference:
            value.load = load
            found.append(value)
        return value

    value = unpackb(data, ext_hook=extension, strict_map_key=False)
    return deeply_readable(value, load) if found else value


def references_in(data: bytes) -> list[str]:
    """Return the keys of the references in bytes that `encode` made."""
    found: list[str] = []

    def extension(code: int, body: bytes) -> None:
        if code == _REFERENCE:
            found.append(unpackb(body)[1].hex())
        elif code == _TUPLE:
            unpackb(body, ext_hook=extension, strict_map_key=False)

    unpackb(data, ext_hook=extension, strict_map_key=False)
    return found


def _extension(code: int, body: bytes) -> Any:
    if code == _REFERENCE:
        store, key, size, hint = unpackb(body)
        return Reference(store, key.hex(), size, hint)
    if code == _INTEGER:
        return int.from_bytes(body, "big", signed=True)
    if code == _TUPLE:
        return tuple(unpackb(body, ext_hook=_extension, strict_map_key=False))
    raise ValueError(f"there is no extension {code}")


def deeply_readable(value: Any, load: Callable[[Reference], Any]) -> Any:
    """Return data in which every mapping and list with references loads them on access."""
    if type(value) is dict:
        inner = {key: deeply_readable(item, load) for key, item in value.items()}
        return ReferringMap(inner, load) if Reference in map(type, inner.values()) else inner
    if type(value) is list:
        items = [deeply_readable(item, load) for item in value]
        return ReferringList(items, load) if Reference in map(type, items) else items
    return value
