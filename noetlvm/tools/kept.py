"""What tools keep from one call to the next: connections, child processes, and where this run has its secrets."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Protocol, TypeVar


class Closable(Protocol):
    """Something that has to be let go of at the end."""

    async def close(self) -> None: ...


Held = TypeVar("Held", bound=Closable)


class Kept:
    """Things by key; each is made when it is first asked for, and lives as long as the runner."""

    def __init__(self, keychain: tuple[str, ...] = ()) -> None:
        self.keychain = keychain
        """What `--keychain` says."""
        self._things: dict[Hashable, Closable] = {}

    def get(self, key: Hashable, make: Callable[[], Held]) -> Held:
        """Return the thing of that key. Keys of different tools must differ: begin with the kind's name."""
        if key not in self._things:
            self._things[key] = make()
        return self._things[key]  # type: ignore[return-value]  # what stands under a key is what its `make` made

    async def close(self) -> None:
        """Let go of everything, even if one thing cannot be closed."""
        from asyncio import gather

        things, self._things = list(self._things.values()), {}
        await gather(*(thing.close() for thing in things), return_exceptions=True)
