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

from noetlvm.language.names import has_control
from noetlvm.language.placement import DEFAULT_POOL, POOL_CHARS_MAX
from noetlvm.store.interface import StoredToken, Tokens

PREFIX = "nvt"
SCOPES: dict[str, frozenset[str]] = {
    "read": frozenset({"read"}),
    "run": frozenset({"read", "run"}),
    "admin": frozenset({"read", "run", "admin"}),
    "worker": frozenset({"worker"}),
}
"""Each scope, and what it allows."""


POOL = "pool:"
"""Before the name of a pool, among the scopes of a token with the scope `worker`: a pool that its workers serve."""


class TokenError(ValueError):
    """A scope or a token is unknown. The message lists those that exist."""


class CreatedToken(NamedTuple):
    """A new token. Its text cannot be read again."""

    token: str
    id: str
    scopes: tuple[str, ...]


def create_token(store: Tokens, scopes: Iterable[str], now: float, pools: Iterable[str] = ()) -> CreatedToken:
    """Store a new token and return its text. `pools` are those that its workers serve; none: the default pool."""
    wanted = tuple(dict.fromkeys(scopes))
    unknown = [scope for scope in wanted if scope not in SCOPES]
    if unknown or not wanted:
        raise TokenError(f"a token needs scopes of {', '.join(SCOPES)}; `{', '.join(unknown)}` is none of them")
    served = tuple(dict.fromkeys(pools))
    for pool in served:
        if "worker" not in wanted:
            raise TokenError(f"the pool `{pool}` is for a token with the scope `worker`")
        if not 0 < len(pool) <= POOL_CHARS_MAX or "," in pool or has_control(pool):
            raise TokenError(f"`{pool}` cannot be the pool of a token: it is empty, too long or has a comma")
    wanted += tuple(POOL + pool for pool in served)
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
    return frozenset().union(*(SCOPES.get(scope, {scope}) for scope in found.scopes))


def pools_of(allowed: Iterable[str]) -> frozenset[str]:
    """Return the pools that a token's workers may serve: the default pool if it names none."""
    named = frozenset(right.removeprefix(POOL) for right in allowed if right.startswith(POOL))
    return named or frozenset({DEFAULT_POOL})


def holder_of(token: str, worker: str) -> str:
    """Return who holds a worker's leases: two tokens share none, whatever their workers call themselves."""
    return f"{token_id(token)}/{worker}"


def worker_name(holder: str) -> str:
    """Return what a holder of leases calls itself."""
    return holder.partition("/")[2]


def token_id(text: str) -> str:
    """Return the public part of a token's text."""
    return text.split("_")[1] if text.count("_") > 1 else ""


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
