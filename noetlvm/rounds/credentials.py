"""The secrets of an execution: what its pipelines see as `keychain`, and what every record is redacted of."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias
from weakref import WeakSet

from noetlvm.bytecode.program import KeychainEntry
from noetlvm.machine.payload import Offload


class KnownSecrets:
    """Secrets that several executions redact together: a parent and its children see each other's (S64)."""

    __slots__ = ("_learn", "_redact", "_users")

    def __init__(self) -> None:
        self._redact: Callable[[Any], Any] | None = None
        self._learn: Callable[[Iterable[str]], None] | None = None
        self._users: WeakSet[Offload] = WeakSet()

    @property
    def redact(self) -> Callable[[Any], Any] | None:
        """Masks secrets in a value; None: none is known, and a search would only cost time."""
        return self._redact

    def learn(self, secrets: tuple[str, ...]) -> None:
        """Redact these too, from now on."""
        if not secrets:
            return
        if self._learn is None:
            from noetlvm.keychain.redaction import Redactor

            redactor = Redactor()
            self._redact, self._learn = redactor.redact, redactor.learn
            for offload in self._users:
                offload.redact_with(self._redact)
            self._users.clear()
        self._learn(secrets)

    def used_by(self, offload: Offload) -> None:
        """Let an execution's payloads be redacted as soon as a secret is known."""
        if self._redact is None:
            self._users.add(offload)
        else:
            offload.redact_with(self._redact)


class Credentials:
    """Resolved keychain entries of an execution, and the secrets that it redacts."""

    __slots__ = ("_known", "entries")

    def __init__(
        self, entries: dict[str, Any] | None = None, secrets: Iterable[str] = (), known: KnownSecrets | None = None
    ) -> None:
        self.entries = entries or {}
        self._known = known or KnownSecrets()
        self._known.learn(tuple(secrets))

    @property
    def redact(self) -> Callable[[Any], Any] | None:
        """Masks secrets in a value; None: none is known."""
        return self._known.redact

    def protect(self, offload: Offload) -> None:
        """Redact what goes through an execution's payloads, also secrets that become known later."""
        self._known.used_by(offload)

    def learn(self, secret: Any, offload: Offload) -> None:
        """Redact a secret that a tool returned, in everything that is recorded from now on (S45)."""
        from noetlvm.keychain.shapes import secret_texts

        self._known.learn(tuple(secret_texts(secret)))
        offload.redact_with(self.redact)


class UnresolvedError(Exception):
    """A keychain entry cannot be resolved. The message names it and the places that were searched (S44)."""


Resolve: TypeAlias = Callable[[tuple[KeychainEntry, ...]], Credentials]
"""Gets the credentials that a playbook declares. Raises UnresolvedError."""


def no_credentials(declared: tuple[KeychainEntry, ...]) -> Credentials:
    """Resolve nothing: for playbooks that declare nothing."""
    if declared:
        raise UnresolvedError(f"the keychain entry `{declared[0].name}` cannot be looked up: there is no keychain")
    return Credentials()


def resolver(options: tuple[str, ...]) -> Resolve:
    """Return what resolves the credentials that playbooks declare, with the sources of `--keychain`."""
    known = KnownSecrets()

    def resolve(declared: Any) -> Credentials:
        if not declared:
            return Credentials(known=known)
        from noetlvm.keychain.resolve import MissingEntryError, resolve

        try:
            keychain = resolve(declared, options)
        except MissingEntryError as problem:
            raise UnresolvedError(str(problem)) from None
        return Credentials(keychain.entries, keychain.secrets, known)

    return resolve
