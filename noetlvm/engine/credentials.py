"""The secrets of one execution: what its pipelines see as `keychain`, and what takes them out of every record."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from noetlvm.bytecode.program import Credential


class Credentials(NamedTuple):
    """Resolved keychain entries."""

    entries: dict[str, Any] = {}
    redact: Callable[[Any], Any] | None = None
    """Takes them out of a value; None: there are none."""


class Unresolved(Exception):  # noqa: N818 - it says what happened
    """A keychain entry cannot be had. The message names it, and where it was looked for (S44)."""


Resolve: TypeAlias = Callable[[tuple[Credential, ...]], Credentials]
"""Gets the credentials that a playbook declares. Raises Unresolved."""


def no_credentials(declared: tuple[Credential, ...]) -> Credentials:
    """Resolve nothing: for playbooks that declare nothing."""
    if declared:
        raise Unresolved(f"the keychain entry `{declared[0].name}` cannot be looked up: there is no keychain")
    return Credentials()
