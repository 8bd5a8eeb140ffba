"""How a benchmark measures and what it gives back. Knows nothing of what is measured.

Contestants take turns (`best_of`), so that a busy moment of the machine hits all of them, and the best time of each
counts: what is above it is the machine, not the program.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

SECONDS = "s"


@dataclass(frozen=True, slots=True)
class Contestant:
    """Something to time, and what has to happen, untimed, before each turn."""

    name: str
    run: Callable[[], object]
    prepare: Callable[[], object] = lambda: None


class Cost(NamedTuple):
    """What a contestant tells of itself."""

    seconds: float
    cpu: float = 0.0
    """Seconds of processor time, the system's part included."""
    commits: int = 0
    events: int = 0
    memory: int = 0
    """Bytes by which its memory grew at most."""


@dataclass(frozen=True, slots=True)
class Goal:
    """How much ours may take, as a share of the other's."""

    text: str
    share_max: float


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: ours beside one other."""

    job: str
    ours: float
    """Seconds, unless `unit` says otherwise."""
    other: str
    """Whom ours is compared with, and its version."""
    theirs: float | None
    """None where the peer is missing."""
    goal: Goal | None = None
    note: str = ""
    unit: str = SECONDS

    @property
    def share(self) -> float | None:
        """Return our time as a share of theirs."""
        return self.ours / self.theirs if self.theirs else None

    @property
    def met(self) -> bool | None:
        """Return whether the goal is met; None where there is none, or nothing to compare with."""
        if self.goal is None or self.share is None:
            return None
        return self.share <= self.goal.share_max


def best_of(contestants: Sequence[Contestant], rounds: int) -> dict[str, float]:
    """Time everyone `rounds` times, in turns, and return the best seconds of each."""
    best = {contestant.name: float("inf") for contestant in contestants}
    for _ in range(rounds):
        for contestant in contestants:
            contestant.prepare()
            began = time.perf_counter()
            contestant.run()
            best[contestant.name] = min(best[contestant.name], time.perf_counter() - began)
    return best


def at_most(times: float) -> Goal:
    """Ours may take so many times as long."""
    return Goal(f"at most {times:g} times its time", times)


def faster(times: float) -> Goal:
    """Ours must be so many times as fast."""
    return Goal(f"{times:g} times as fast" if times != 1 else "ahead", 1 / times)


def within(job: str, ours: float, allowed: float, unit: str) -> Row:
    """Return a line for what has a limit of its own, and nobody beside it."""
    return Row(job, ours, "what is allowed", allowed, Goal("within", 1), unit=unit)
