"""The `auth` of a task: which keychain entry, and how it is used.

`auth` is the name of an entry, or a mapping that also defines how the entry is used:
`{entry: github, as: header, header: X-Token}`. `{source: credential, key: github, type: bearer}` and
`{github: {type: bearer}}` are other spellings of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

_ENTRY = ("entry", "key", "credential", "name")
_SCHEME = ("as", "type", "scheme", "method")
_OTHER = ("source", "service", "header", "scope", "inject", "secret_name", "alias")
_SOURCES = frozenset({"credential", "credentials", "keychain", "secret"})
"""Values of `source` for an entry of the keychain, which every entry is."""


class ShapeError(Exception):
    """Something is not of the form that it must have. The message quotes no secret."""


class AuthUse(NamedTuple):
    """A keychain entry, and how a task uses it."""

    entry: str
    scheme: str = ""
    """`bearer`, `basic`, `header`, the type of an attached database, or nothing: then the entry's shape decides."""
    header: str = ""
    scope: str = ""
    """The address prefix that a storage credential is for."""


def read_auth(auth: Any) -> AuthUse:
    """Read the value of `auth`. Raises ShapeError."""
    if isinstance(auth, str) and auth:
        return AuthUse(auth)
    if not isinstance(auth, Mapping):
        raise ShapeError("it must be the name of a keychain entry, or a mapping with `entry`")
    entry = next((auth[name] for name in _ENTRY if auth.get(name)), None)
    source = auth.get("source")
    if entry is None and isinstance(source, str) and source not in _SOURCES:
        entry = source
    if entry is None and len(auth) == 1:
        return _only(*next(iter(auth.items())))
    unknown = [name for name in auth if name not in (*_ENTRY, *_SCHEME, *_OTHER)]
    if unknown:
        raise ShapeError(f"`{unknown[0]}` has no meaning here; write `entry`, `as` and `header`")
    if not isinstance(entry, str):
        raise ShapeError("it does not name a keychain entry; write `entry: <name>`")
    scheme = next((str(auth[name]) for name in _SCHEME if auth.get(name)), "")
    return AuthUse(entry, scheme.lower(), str(auth.get("header") or ""), str(auth.get("scope") or ""))


def _only(name: Any, use: Any) -> AuthUse:
    """Read `{name: entry}` or `{name: {…}}`; inside, the entry's name may be absent."""
    if isinstance(use, str) and use:
        return AuthUse(use)
    if isinstance(use, Mapping):
        return read_auth(use if any(use.get(word) for word in _ENTRY) else {"entry": name, **use})
    raise ShapeError("it does not name a keychain entry; write `entry: <name>`")
