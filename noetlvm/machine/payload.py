"""Data on its way into events and back: what is too large for an event is stored elsewhere (S46).

A large value is replaced by a reference to what the result store has under the hash of its bytes. Here it is only
decided and encoded: the caller that commits the events writes `blobs()` to the store first, and gives `fetch` to read
it. In state, a value either holds no reference or is one; what is stored may refer to other stored values.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from hashlib import sha256
from typing import Any

from noetlvm.data.encoding import UnencodableError, decode, deeply_readable, encode, encode_noting_references
from noetlvm.data.references import Reference, ReferringMap
from noetlvm.expr.errors import ErrorKind, ExpressionError
from noetlvm.expr.values import type_name
from noetlvm.limits import CTX_BYTES_MAX, EVENT_BYTES_MAX, INLINE_BYTES, LOADED_BYTES

STORE = "results"
"""What references call the store."""

_HINT_KEYS = 6
_HINT_CHARS = 80


class TooLargeError(Exception):
    """Data that stays over its limit though everything large in it is stored elsewhere."""


def fits_event(data: Any) -> bool:
    """Return whether an event may hold this."""
    try:
        return len(encode(data)) <= EVENT_BYTES_MAX
    except UnencodableError:
        return False


def schema_hint(value: Any) -> str:
    """Return a short description of a value."""
    if isinstance(value, dict):
        keys = [str(key) for key in list(value)[:_HINT_KEYS]]
        more = ", …" if len(value) > _HINT_KEYS else ""
        return f"mapping of {', '.join(keys)}{more}"[:_HINT_CHARS]
    if isinstance(value, (list, tuple)):
        return f"list of {len(value)}"
    return f"text of {len(value)}" if isinstance(value, str) else type_name(value)


def whole(value: Any, fetch: Callable[[str], bytes]) -> Any:
    """Return data with everything in it that is stored elsewhere; `fetch` gives the bytes of a key."""
    if type(value) is Reference:
        value = decode(fetch(value.key))
    if isinstance(value, dict):
        return {key: whole(item, fetch) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [whole(item, fetch) for item in value]
    return value


# ---- what goes elsewhere


def _no_store(reference: Reference) -> bytes:
    raise LookupError(f"there is no store to read {reference.key} from")


class Offload:
    """Decides which values go to the result store, and reads them back.

    `fetch` gives the bytes of a reference. `redact` takes secrets out of a value (S45) before it goes anywhere.
    """

    def __init__(
        self,
        limit: int = INLINE_BYTES,
        fetch: Callable[[Reference], bytes] = _no_store,
        redact: Callable[[Any], Any] | None = None,
    ) -> None:
        self.limit = limit
        self._fetch = fetch
        self._redact = redact
        self._blobs: dict[str, bytes] = {}
        self._loaded: OrderedDict[str, tuple[Any, Reference]] = OrderedDict()
        self._known: dict[int, Reference] = {}
        """References by the identity of their loaded value, so that handing such a value on costs nothing."""
        self._loaded_bytes = 0

    @property
    def redacts(self) -> bool:
        """Return whether secrets are taken out of what goes into events."""
        return self._redact is not None

    def redact_with(self, redact: Callable[[Any], Any] | None) -> None:
        """Redact secrets from now on: for those that become known during the run."""
        self._redact = redact

    def redacted(self, value: Any) -> Any:
        """Return a small value without secrets."""
        return value if self._redact is None else self._redact(value)

    def blobs(self) -> list[tuple[str, bytes]]:
        """Return keys and bytes to write to the store, before the events that refer to them are committed."""
        return list(self._blobs.items()) if self._blobs else []

    def drop(self, blobs: Iterable[tuple[str, bytes]]) -> None:
        """Drop what the store has now: it is read from there."""
        for key, _data in blobs:
            self._blobs.pop(key, None)

    def take_blobs(self) -> list[tuple[str, bytes]]:
        """Return `blobs()` and drop them: the caller writes them before anything reads them."""
        blobs, self._blobs = self.blobs(), {}
        return blobs

    # ---- towards events

    def shrink(self, value: Any) -> Any:
        """Return a value as an event may hold it: itself, or a reference. Raises UnencodableError."""
        if _is_small(value):
            return self.redacted(value)
        known = self._known.get(id(value))
        if known is not None:
            return known
        value = self.redacted(value)
        data, has_references = encode_noting_references(value)
        if type(value) is Reference or (len(data) <= self.limit and not has_references):
            return value
        return self._put(value, data, has_references)

    def store(self, value: Any) -> Reference:
        """Return a reference to a value that is already recorded, and so holds no secret; it is not cached."""
        data = encode(value)
        key = sha256(data).hexdigest()
        self._blobs[key] = data
        return Reference(STORE, key, len(data), schema_hint(value))

    def fit(self, mapping: dict[str, Any], limit: int | None = None) -> dict[str, Any]:
        """Return a mapping that is small as a whole, its large values by reference.

        Raises UnencodableError or TooLargeError.
        """
        if not mapping:
            return mapping
        limit = self.limit if limit is None else limit
        if len(mapping) * 2 * _SHORT <= limit and self._redact is None and _is_plain(mapping):
            return mapping
        small = {key: self.shrink(value) for key, value in _raw(mapping).items()}
        over = len(encode(small)) - limit
        if over <= 0:
            return small
        sizes = sorted(((len(encode(value)), key) for key, value in small.items()), key=lambda pair: -pair[0])
        for size, key in sizes:
            if over <= 0 or size <= _REFERENCE_BYTES:
                break
            if type(small[key]) is not Reference:
                small[key] = self._put(small[key], *encode_noting_references(small[key]))
                over -= size - len(encode(small[key]))
        if over > 0:
            raise TooLargeError(f"{limit + over:,} bytes, where {limit:,} may be, with {len(small):,} keys")
        return small

    def _put(self, value: Any, data: bytes, has_references: bool) -> Reference:
        """Queue the encoded value for the store and return its reference."""
        key = sha256(data).hexdigest()
        reference = Reference(STORE, key, len(data), schema_hint(value))
        self._blobs[key] = data
        # A value with references in it must be read back to become readable.
        if not has_references:
            self._keep(reference, value)
        return reference

    # ---- from events

    def read(self, value: Any) -> Any:
        """Return what a value stands for: itself, unless it is a reference."""
        return self.load(value) if type(value) is Reference else value

    def raw(self, reference: Reference) -> Any:
        """Return what `store` was given, references included. Raises ExpressionError as `load` does."""
        return decode(self._bytes(reference))

    def readable(self, value: Any) -> Any:
        """Return data in which references may stand anywhere, made to read them when a template does."""
        return self.read(deeply_readable(value, self.load))

    def load(self, reference: Reference) -> Any:
        """Load the value of a reference. Raises ExpressionError if it is missing or damaged."""
        found = self._loaded.get(reference.key)
        if found is not None:
            self._loaded.move_to_end(reference.key)
            return found[0]
        value = decode(self._bytes(reference), self.load)
        self._keep(reference, value)
        return value

    def _bytes(self, reference: Reference) -> bytes:
        data = self._blobs.get(reference.key)
        if data is not None:
            return data
        try:
            data = self._fetch(reference)
        except (LookupError, OSError, ValueError) as error:
            raise ExpressionError(
                ErrorKind.STORED, f"the stored result {reference.key} cannot be read: {error}"
            ) from None
        if sha256(data).hexdigest() != reference.key:
            raise ExpressionError(
                ErrorKind.STORED, f"the stored result {reference.key} is damaged: its checksum differs"
            )
        return data

    def _keep(self, reference: Reference, value: Any) -> None:
        """Cache a value, and evict those that were not read for longest."""
        if reference.key in self._loaded:
            return
        self._loaded[reference.key] = value, reference
        self._known[id(value)] = reference
        self._loaded_bytes += reference.size
        while self._loaded_bytes > LOADED_BYTES and len(self._loaded) > 1:
            _, (old, dropped) = self._loaded.popitem(last=False)
            self._known.pop(id(old), None)
            self._loaded_bytes -= dropped.size


class CtxSize:
    """How large `ctx` is, encoded. It is counted key by key, so that a write costs what it writes and not all of it."""

    def __init__(self, ctx: dict[str, Any]) -> None:
        self._pairs = {key: _pair_bytes(key, value) for key, value in ctx.items()}
        self._total = _HEAD_BYTES + sum(self._pairs.values())

    def check(self, patch: dict[str, Any]) -> None:
        """Raise TooLargeError if `ctx` would be over its limit with a patch."""
        total = self._total + sum(_pair_bytes(key, value) - self._pairs.get(key, 0) for key, value in patch.items())
        if total > CTX_BYTES_MAX:
            raise TooLargeError(f"{total:,} bytes, where {CTX_BYTES_MAX:,} may be")

    def write(self, patch: dict[str, Any]) -> None:
        """Count a patch in."""
        for key, value in patch.items():
            size = _pair_bytes(key, value)
            self._total += size - self._pairs.get(key, 0)
            self._pairs[key] = size


def _pair_bytes(key: str, value: Any) -> int:
    return len(encode(key)) + len(encode(value))


_HEAD_BYTES = 5
"""What a mapping takes besides its pairs, at most."""
_REFERENCE_BYTES = 160
"""What a reference takes, at most; putting less than that elsewhere gains nothing."""
_SCALAR_BYTES = 9
"""What a number takes, at most."""
_SCALARS = frozenset({type(None), bool, float})
_SHORT = 1_024


def _is_small(value: Any) -> bool:
    """Return whether a value is certainly small and encodable, without encoding it."""
    kind = type(value)
    if kind in _SCALARS:
        return True
    if kind is int:
        return bool(-(2**63) <= value < 2**63)
    return kind is str and len(value) < _SHORT and value.isascii()


def rough_bytes(value: Any) -> int:
    """Return about how large a value is, encoded."""
    if type(value) is str:
        return len(value) + _SCALAR_BYTES
    return _SCALAR_BYTES if _is_small(value) else len(encode(value))


def _is_plain(mapping: dict[str, Any]) -> bool:
    """Return whether a mapping has short names and small values only."""
    for key, value in mapping.items():
        if type(key) is not str or not _is_small(key) or not _is_small(value):
            return False
    return True


def _raw(mapping: dict[str, Any]) -> dict[str, Any]:
    return mapping.raw() if type(mapping) is ReferringMap else mapping
