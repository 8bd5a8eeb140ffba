"""The keychain in a playbook: what the `kind` of an entry can be, and the `auth` of a task, which names an entry.

Names only, for the linter and the schema; `noetlvm.keychain` has the forms and the providers themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from noetlvm.language.plugins import entry_points_of

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ENTRY_POINT_GROUP = "noetlvm.keychain"

FORMS = {
    "secret_manager": "a text, or a mapping with the parts that the place has",
    "bearer_token": "a token, for `auth` of an `http` task",
    "api_key": "a value and the header that carries it",
    "basic_auth": "a user name and a password",
    "postgres_credential": "the parts of a PostgreSQL connection",
    "nats_credential": "the URL of a NATS server, with user and password or a token",
    "credential": "another name of `secret_manager`",
    "bearer": "another name of `bearer_token`",
}
"""The form of each, in the order of the documentation."""

PROVIDERS = {
    "environment": "variables of the process's environment",
    "file": "a YAML, JSON or dotenv file",
    "command": "what a program prints",
}
"""Where each looks."""

PLUGIN_KINDS = {
    "oauth2": "tokens of an OAuth 2 server",
    "google_id_token": "Google identity tokens",
    "static": "fixed values (or `kind: file`)",
}
"""Kinds in use that nothing here provides, and for what: a plugin of that name can."""


def is_form(kind: str) -> bool:
    """Return whether a kind only defines the shape of the secret, so that a provider may be named beside it."""
    return kind in FORMS


def is_provided(kind: str) -> bool:
    """Return whether a kind is known here, or installed as a plugin."""
    return is_form(kind) or is_provider(kind)


def is_provider(name: str) -> bool:
    """Return whether a provider is built in, or installed as a plugin."""
    return name in PROVIDERS or any(entry.name == name for entry in plugins())


def plugins() -> tuple[EntryPoint, ...]:
    """Return what installed packages provide."""
    return entry_points_of(ENTRY_POINT_GROUP)


# ---- the `auth` of a task
#
# It is the name of an entry, or a mapping that also defines how the entry is used:
# `{entry: github, as: header, header: X-Token}`. `{source: credential, key: github, type: bearer}` and
# `{github: {type: bearer}}` are other spellings of it.

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
