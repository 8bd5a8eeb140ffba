"""What tools share between calls: connections, child processes, and the options that say where secrets are."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Protocol, TypeVar


class Closable(Protocol):
    """A resource that must be closed."""

    async def close(self) -> None: ...


Resource = TypeVar("Resource", bound=Closable)


class Resources:
    """Resources by key; each is created on first use and closed with the runner."""

    def __init__(self, keychain: tuple[str, ...] = ()) -> None:
        self.keychain = keychain
        """The values of `--keychain`."""
        self._open: dict[Hashable, Closable] = {}

    def get(self, key: Hashable, create: Callable[[], Resource]) -> Resource:
        """Return the resource of that key. Start keys with the kind's name, so that those of two tools differ."""
        if key not in self._open:
            self._open[key] = create()
        return self._open[key]  # type: ignore[return-value]  # the type under a key is that of its `create`

    async def close(self) -> None:
        """Close all of them, even if one fails to close."""
        from asyncio import gather

        resources, self._open = list(self._open.values()), {}
        await gather(*(resource.close() for resource in resources), return_exceptions=True)
