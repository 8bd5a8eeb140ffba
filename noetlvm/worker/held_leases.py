"""The leases of a worker: when they are renewed, and until when the commands are its own.

All times are those of its monotonic clock.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from noetlvm.protocol.messages import Part

LEASE_SECONDS = 15.0
"""Until the server has sent the length of a lease."""
HEARTBEATS_A_LEASE = 3
MARGIN = 0.15
"""Work stops before its lease ends, by this share of it."""


class Monotonic(Protocol):
    """A clock that only grows."""

    def monotonic(self) -> float:
        """Return seconds since no particular moment."""


class HeldLeases:
    """The leases of commands that run here."""

    def __init__(self, clock: Monotonic) -> None:
        self.seconds = LEASE_SECONDS
        self._clock = clock
        self._good: dict[Part, float] = {}
        """When each was good: it ends one lease after that, or later."""
        self._beats: dict[int, tuple[float, tuple[Part, ...]]] = {}
        """Renewals that are not acknowledged: when each was sent, and for what."""
        self._last_beat = 0
        self._beaten = float("-inf")
        """When the last renewal was sent on this connection."""
        self._contact = 0.0
        """When the last message was sent that the server has answered: a command that it sends is newer."""

    def connected(self) -> None:
        """Begin again to renew: there is a new connection."""
        self._contact = self._clock.monotonic()
        self._beaten = float("-inf")
        self._beats.clear()

    def begin(self, part: Part) -> None:
        """Note a command that the server has sent."""
        self._good[part] = self._contact

    def end(self, part: Part) -> None:
        """Forget a command that has ended here."""
        self._good.pop(part, None)

    @property
    def until_beat(self) -> float:
        """Return the seconds until the next renewal is due; none are left if that is 0."""
        return max(0.0, self._beaten + self.seconds / HEARTBEATS_A_LEASE - self._clock.monotonic())

    def beat(self) -> int:
        """Return the number of the renewal that is sent now. Raises ConnectionError if none is answered any more."""
        now = self._clock.monotonic()
        if any(now - sent > self.seconds for sent, _ in self._beats.values()):
            raise ConnectionError("the server does not answer")
        self._beaten = now
        self._last_beat += 1
        self._beats[self._last_beat] = now, tuple(self._good)
        return self._last_beat

    def acknowledge(self, beat: int, seconds: float) -> bool:
        """Note a renewal that the server has performed; return whether leases have another length from now on."""
        self._contact, parts = self._beats.get(beat, (self._contact, ()))
        for part in parts:
            if part in self._good:
                self._good[part] = max(self._good[part], self._contact)
        self._beats = {number: sent for number, sent in self._beats.items() if number > beat}
        has_changed = seconds != self.seconds
        self.seconds = seconds
        return has_changed

    def late(self) -> Iterable[Part]:
        """Return the commands whose lease ends soon, because it was not renewed."""
        latest = self._clock.monotonic() - self.seconds * (1 - MARGIN)
        return [part for part, good in self._good.items() if good < latest]

    @property
    def are_over(self) -> bool:
        """Return whether no server has answered for so long that every lease has ended."""
        return self._clock.monotonic() - self._contact > self.seconds
