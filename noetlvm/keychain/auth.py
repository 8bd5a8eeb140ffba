"""What `auth` on a task gives a tool: a keychain entry as HTTP headers, or as the parts of a connection."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from typing import Any

from noetlvm.keychain.shapes import SHAPES, postgres_url, shaped
from noetlvm.language.keychain import AuthUse, ShapeError, read_auth

API_KEY_HEADER = "X-API-Key"

_BEARER = frozenset({"bearer", "token", "bearer_token", "oauth2"})
_BASIC = frozenset({"basic", "basic_auth"})
_HEADER = frozenset({"header", "api_key", "apikey"})


def used_entry(auth: Any, keychain: Mapping[str, Any]) -> Any:
    """Return the entry that `auth` names, in the form in which it is used. Raises ShapeError."""
    use = read_auth(auth)
    if use.entry not in keychain:
        raise ShapeError(f"the keychain has no entry `{use.entry}`")
    return _in_scheme(keychain[use.entry], use)


def _in_scheme(entry: Any, use: AuthUse) -> Any:
    if use.scheme in _HEADER or (use.header and use.scheme not in _BASIC):
        header = use.header or (entry.get("header") if isinstance(entry, Mapping) else None)
        return {"header": header or API_KEY_HEADER, "value": _single(entry, use)}
    if use.scheme in _BEARER:
        return {"token": _single(entry, use)}
    if use.scheme in _BASIC and not isinstance(entry, Mapping):
        user, colon, password = str(entry).partition(":")
        if not colon:
            raise ShapeError(f"the keychain entry `{use.entry}` is not `user:password`")
        return {"username": user, "password": password}
    return entry


def _single(entry: Any, use: AuthUse) -> str:
    """Return the one secret text of an entry. Raises ShapeError."""
    if isinstance(entry, Mapping):
        entry = next((entry[name] for name in ("token", "value", "access_token", "api_key") if entry.get(name)), None)
    if not isinstance(entry, str | int | float) or isinstance(entry, bool):
        raise ShapeError(f"the keychain entry `{use.entry}` has no `token` or `value`")
    return str(entry)


def http_headers(entry: Any) -> dict[str, str]:
    """Return the headers that authenticate a request: a text is a bearer token. Raises ShapeError."""
    if isinstance(entry, str):
        return {"Authorization": f"Bearer {entry}"}
    parts: Mapping[str, Any] = entry if isinstance(entry, Mapping) else {}
    if parts.get("token"):
        return {"Authorization": f"Bearer {parts['token']}"}
    user = parts.get("username") or parts.get("user")
    if user and "password" in parts:
        pair = f"{user}:{parts['password']}".encode()
        return {"Authorization": f"Basic {b64encode(pair).decode()}"}
    if parts.get("value"):
        return {str(parts.get("header") or API_KEY_HEADER): str(parts["value"])}
    raise ShapeError("for HTTP it must be text, or have `token`, `username` and `password`, or `header` and `value`")


def postgres_parts(entry: Any) -> dict[str, Any]:
    """Return host, port, database, user, password and whatever else is given. Raises ShapeError."""
    if isinstance(entry, Mapping):
        url = entry.get("dsn") or entry.get("url")
        entry = url if isinstance(url, str) else entry
    if isinstance(entry, str):
        return postgres_url(entry)
    if not isinstance(entry, Mapping):
        raise ShapeError("for PostgreSQL it must be a URL, or have `host`, `database`, `user` and `password`")
    parts: dict[str, Any] = shaped(entry, SHAPES["postgres_credential"])
    return parts


_NATS_NAMES = {
    "url": "servers",
    "nats_url": "servers",
    "server": "servers",
    "nats_user": "user",
    "username": "user",
    "nats_password": "password",
    "nats_token": "token",
}


def nats_parts(entry: Any) -> dict[str, Any]:
    """Return servers, user, password, token and paths of TLS files. Raises ShapeError."""
    if isinstance(entry, str):
        return {"servers": entry}
    if not isinstance(entry, Mapping):
        raise ShapeError("for NATS it must be a URL, or have `url`")
    parts = {_NATS_NAMES.get(name, name): value for name, value in entry.items() if value not in (None, "")}
    if not parts.get("servers"):
        raise ShapeError("for NATS it must be a URL, or have `url`")
    known = ("servers", "user", "password", "token", "tls_ca", "tls_cert", "tls_key")
    return {name: value for name, value in parts.items() if name in known}
