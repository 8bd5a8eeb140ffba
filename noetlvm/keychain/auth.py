"""What `auth: <name>` gives a tool: a keychain entry as HTTP headers, or as the parts of a PostgreSQL connection."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from typing import Any

from noetlvm.keychain.shapes import SHAPES, Misshapen, postgres_url, shaped

API_KEY_HEADER = "X-API-Key"


def http_headers(entry: Any) -> dict[str, str]:
    """Return the headers that prove who asks: a text is a bearer token. Raises Misshapen."""
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
    raise Misshapen("for HTTP it must be a text, or have `token`, `username` and `password`, or `header` and `value`")


def postgres_parts(entry: Any) -> dict[str, Any]:
    """Return host, port, database, user, password and whatever else is given. Raises Misshapen."""
    if isinstance(entry, Mapping):
        url = entry.get("dsn") or entry.get("url")
        entry = url if isinstance(url, str) else entry
    if isinstance(entry, str):
        return postgres_url(entry)
    if not isinstance(entry, Mapping):
        raise Misshapen("for PostgreSQL it must be a URL, or have `host`, `database`, `user` and `password`")
    parts: dict[str, Any] = shaped(entry, SHAPES["postgres_credential"])
    return parts
