"""Tokens of the API: shown once when they are created, stored as hashes, limited to scopes.

A token reads `nvt_<id>_<secret>`. The id is public and finds the row; only the hash of the secret is stored. The secret
has 256 random bits, so a plain SHA-256 suffices: there is nothing to guess that a slow hash would protect.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterable
from typing import NamedTuple

from noetlvm.store.interface import StoredToken, Tokens

PREFIX = "nvt"
SCOPES: dict[str, frozenset[str]] = {
    "read": frozenset({"read"}),
    "run": frozenset({"read", "run"}),
    "admin": frozenset({"read", "run", "admin"}),
    "worker": frozenset({"worker"}),
}
"""Each scope, and what it allows."""


class TokenError(ValueError):
    """A scope or a token is unknown. The message lists those that exist."""


class CreatedToken(NamedTuple):
    """A new token. Its text cannot be read again."""

    token: str
    id: str
    scopes: tuple[str, ...]


def create_token(store: Tokens, scopes: Iterable[str], now: float) -> CreatedToken:
    """Store a new token and return its text."""
    wanted = tuple(dict.fromkeys(scopes))
    unknown = [scope for scope in wanted if scope not in SCOPES]
    if unknown or not wanted:
        raise TokenError(f"a token needs scopes of {', '.join(SCOPES)}; `{', '.join(unknown)}` is none of them")
    id, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
    store.put_token(StoredToken(id, _digest(secret), wanted, now))
    return CreatedToken(f"{PREFIX}_{id}_{secret}", id, wanted)


def allowed_by(store: Tokens, text: str) -> frozenset[str]:
    """Return what a token allows; nothing for one that is malformed, unknown or revoked."""
    prefix, _, rest = text.partition("_")
    id, _, secret = rest.partition("_")
    found = store.token(id) if prefix == PREFIX and id else None
    # The comparison takes the same time for an unknown id as for a wrong secret.
    is_right = hmac.compare_digest(_digest(secret), found.digest if found else _digest(""))
    if found is None or not is_right or found.revoked is not None:
        return frozenset()
    return frozenset().union(*(SCOPES[scope] for scope in found.scopes))


def token_id(text: str) -> str:
    """Return the public part of a token's text."""
    return text.split("_")[1] if text.count("_") > 1 else ""


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
