"""Writes msgpack, each value in its shortest form. The inverse of `reader`."""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgpack import ExtType, Packer, packb  # type: ignore[import-untyped]  # it ships no types

from noetlvm.bytecode.codec.reader import BIG_INTEGER
from noetlvm.bytecode.limits import BIG_INTEGER_CHARS_MAX, DEPTH_MAX, TEXT_BYTES_MAX


class EncodingError(ValueError):
    """The program cannot be encoded: it breaks a limit of the format, or has a value that is not of the language."""


def array(items: Sequence[bytes]) -> bytes:
    """Write a list of values that are written already."""
    return bytes(Packer().pack_array_header(len(items))) + b"".join(items)


def number(item: int) -> bytes:
    return bytes(packb(item))


def count(item: int) -> bytes:
    """Write a number in LEB128."""
    result = bytearray()
    varint(result, item)
    return bytes(result)


def block(data: bytes) -> bytes:
    """Write bytes, led by their number."""
    return count(len(data)) + data


def binary(data: bytes) -> bytes:
    return bytes(packb(data))


def value(item: object) -> bytes:
    """Write any value of the language."""
    try:
        return bytes(packb(_checked(item, 0), strict_types=True, default=_big_integer))
    except UnicodeEncodeError as error:
        raise EncodingError(f"a text cannot be written in UTF-8: {error.reason}") from error


def text(item: object) -> bytes:
    return value(checked_text(item))


def checked_text(item: object) -> str:
    """Return a value that must be a text. Raises EncodingError."""
    if type(item) is not str:
        raise EncodingError(f"a text is expected, not {item!r:.80}")
    return item


def varint(result: bytearray, number: int) -> None:
    """Append an unsigned number in groups of seven bits, the lowest first (LEB128)."""
    while number > 0x7F:
        result.append(number & 0x7F | 0x80)
        number >>= 7
    result.append(number)


def _big_integer(item: object) -> object:
    """Write what msgpack has no type for: an integer beyond 64 bits, and nothing else."""
    if type(item) is not int:
        raise EncodingError(f"{item!r:.80} is not a value of the language")
    # By its bits first: making the digits of a huge integer is what the limit is there to avoid.
    digits = str(item) if item.bit_length() < 4 * BIG_INTEGER_CHARS_MAX else ""
    if not 0 < len(digits) <= BIG_INTEGER_CHARS_MAX:
        raise EncodingError(f"an integer has at most {BIG_INTEGER_CHARS_MAX} characters")
    return ExtType(BIG_INTEGER, digits.encode())


def _checked(item: object, depth: int) -> object:
    """Return the value with the one NaN that bundles use; refuse what msgpack would write and `reader` not read."""
    if isinstance(item, list | dict) and depth >= DEPTH_MAX:
        raise EncodingError(f"lists and mappings nest at most {DEPTH_MAX} deep")
    if type(item) is list:
        return [_checked(inner, depth + 1) for inner in item]
    if type(item) is dict:
        return {_checked_length(checked_text(key)): _checked(inner, depth + 1) for key, inner in item.items()}
    if type(item) is str:
        return _checked_length(item)
    if type(item) is bytes:
        raise EncodingError("bytes are not a value of the language")
    return math.nan if isinstance(item, float) and math.isnan(item) else item


def _checked_length(item: str) -> str:
    if len(item) > TEXT_BYTES_MAX // 4 and len(item.encode(errors="replace")) > TEXT_BYTES_MAX:
        raise EncodingError(f"a text has at most {TEXT_BYTES_MAX} bytes")
    return item
