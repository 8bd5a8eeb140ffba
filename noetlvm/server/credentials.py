"""The secrets of one execution: what its pipelines see as `keychain`, and what takes them out of every record."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from noetlvm.bytecode.program import Credential
from noetlvm.machine.payload import Offload


class Credentials:
    """Resolved keychain entries, and secrets that become known while it runs."""

    __slots__ = ("_learn", "_redact", "entries")

    def __init__(self, entries: dict[str, Any] | None = None, secrets: Iterable[str] = ()) -> None:
        self.entries = entries or {}
        self._redact: Callable[[Any], Any] | None = None
        self._learn: Callable[[Iterable[str]], None] | None = None
        known = tuple(secrets)
        if known:
            self._know(known)

    @property
    def redact(self) -> Callable[[Any], Any] | None:
        """Takes secrets out of a value; None: there are none, and looking for them would only cost."""
        return self._redact

    def learn(self, secret: Any, offload: Offload) -> None:
        """Take a secret that a tool gave out of whatever is recorded from now on (S45)."""
        from noetlvm.keychain.shapes import secret_texts

        self._know(tuple(secret_texts(secret)))
        offload.redact_with(self._redact)

    def _know(self, secrets: tuple[str, ...]) -> None:
        if self._learn is None:
            from noetlvm.keychain.redaction import Redactor

            redactor = Redactor()
            self._redact, self._learn = redactor.redact, redactor.learn
        self._learn(secrets)


class UnresolvedError(Exception):
    """A keychain entry cannot be had. The message names it, and where it was looked for (S44)."""


Resolve: TypeAlias = Callable[[tuple[Credential, ...]], Credentials]
"""Gets the credentials that a playbook declares. Raises UnresolvedError."""


def no_credentials(declared: tuple[Credential, ...]) -> Credentials:
    """Resolve nothing: for playbooks that declare nothing."""
    if declared:
        raise UnresolvedError(f"the keychain entry `{declared[0].name}` cannot be looked up: there is no keychain")
    return Credentials()
