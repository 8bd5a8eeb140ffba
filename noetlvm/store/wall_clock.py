"""The time of day of one process: the wall clock at its start, continued by monotonic time.

Timers, leases and limits compare times. A wall clock that is set while the process runs must change none of them, and
one that was set back before it started must not let what was recorded lie in the future.
"""

from __future__ import annotations

import time

JUMP_SECONDS = 5.0
"""By how much a wall clock may be away from where it was: less is what a time server corrects all the time."""


class WallClock:
    """Counts on from the wall clock at the start; `jump` reports when that was set."""

    def __init__(self) -> None:
        self._start = time.time() - time.monotonic()
        self._jumped = 0.0

    def now(self) -> float:
        return self._start + time.monotonic()

    def jump(self) -> float:
        """Return by how many seconds the wall clock was set since the last call; 0: by less than the tolerance."""
        away = time.time() - self.now()
        if abs(away - self._jumped) < JUMP_SECONDS:
            return 0.0
        jumped, self._jumped = away - self._jumped, away
        return jumped

    def catch_up(self, recorded: float) -> float:
        """Let time continue from the last recorded event if the wall clock is behind it; return by how much it was.

        Else a wait that began before the clock was set back would last until it has caught up.
        """
        behind = recorded - self.now()
        if behind < JUMP_SECONDS:
            return 0.0
        self._start += behind
        self._jumped -= behind
        return behind
