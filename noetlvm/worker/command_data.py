"""What the commands of a worker need besides their work: programs, stored results, secrets and tools."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from noetlvm.data.references import Reference
from noetlvm.machine.loaded import Bundle, LoadedPlaybook
from noetlvm.machine.messages import Work
from noetlvm.protocol.link import ServerLink
from noetlvm.rounds.credentials import Credentials, KnownSecrets
from noetlvm.tools.call import Tools, UnavailableTools

BUNDLES_MAX = 100
SECRET_SETS_MAX = 100

Missing = Callable[[Iterable[str]], list[str]]
"""Lists what is not installed here of what tool kinds need."""


class CommandData:
    """Reads from the server, and remembers."""

    def __init__(self, link: ServerLink, worker: str, tools: Tools, missing: Missing) -> None:
        self._link = link
        self._worker = worker
        self._tools = tools
        self._missing = missing
        self._bundles: dict[str, Bundle] = {}
        self._known_secrets: dict[frozenset[str], KnownSecrets] = {}
        """By secrets of commands."""
        self._missing_of: dict[tuple[str, str, str], str] = {}
        """By bundle, playbook and step: what its tasks need and this worker has not."""

    def playbook(self, work: Work) -> LoadedPlaybook:
        """Return the playbook of a command. It blocks if its bundle is not in memory. Raises OSError, LookupError."""
        found = self._bundles.get(work.bundle)
        if found is None:
            while len(self._bundles) >= BUNDLES_MAX:
                self._bundles.pop(next(iter(self._bundles)))
                self._missing_of.clear()
            data = self._link.get(f"/api/v1/bundles/{work.bundle}?worker={self._worker}")
            found = self._bundles[work.bundle] = Bundle.of(data)
        return found.program.playbooks[work.path]

    def result(self, reference: Reference) -> bytes:
        """Return a stored result. It blocks: a pipeline reads large results rarely, and needs them at once."""
        return self._link.get(f"/api/v1/results/{reference.key}?worker={self._worker}")

    def credentials(self, secrets: dict[str, Any]) -> Credentials:
        """Return the secrets of a command. Commands with the same ones share what masks them: it is slow to make."""
        from noetlvm.keychain.shapes import secret_texts

        texts = [text for value in secrets.values() for text in secret_texts(value)]
        if not texts:
            return Credentials(secrets)
        known = self._known_secrets.setdefault(frozenset(texts), KnownSecrets())
        return Credentials(secrets, texts, known)

    def forget_secrets(self, *, is_idle: bool) -> None:
        """Forget the secrets of earlier commands, unless commands run which may share them."""
        if is_idle or len(self._known_secrets) > SECRET_SETS_MAX:
            self._known_secrets.clear()

    def tools(self, work: Work, playbook: LoadedPlaybook) -> Tools:
        """Return the tools of a command: none if its step has tasks whose packages are not installed."""
        key = work.bundle, work.path, work.step
        if key not in self._missing_of:
            self._missing_of[key] = "; ".join(self._missing(playbook.steps[work.step].kinds()))
        missing = self._missing_of[key]
        return UnavailableTools(missing) if missing else self._tools
