"""Every answer about a small net the hard way: guards by running them, markings by going through them all.

It shares nothing with the analyses. Guards and gates are evaluated by the VM over many values of the data. Markings
are explored one by one; where they are infinite in number, as a Karp-Miller tree, whose nodes say `many` of a place
that can be pumped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import product
from typing import NamedTuple

from noetlvm.expr.errors import ExpressionError, Fuel
from noetlvm.expr.interpret import compile_expression
from tests.noetlc.graph.random_playbooks import RandomPlaybook, RandomStep, guard_code

MANY = 10**6
"""As good as infinite."""
MARKINGS_MAX = 3_000
"""Nets with more are too large for brute force."""
TOKENS_MAX = 13
"""Enough to let every token of a net of six steps with three arcs each end, one after the other."""

MISSING = object()
VALUES: dict[str, tuple[object, ...]] = {
    "a": (MISSING, -1, 0, 1, 1.5, 2, 3, "x"),
    "b": (MISSING, True, False, "false", "yes", ""),
    "s": (MISSING, "x", "y", "z"),
    "t": (MISSING, "long enough"),
}
WORLDS = [
    {key: value for key, value in zip(VALUES, values, strict=True) if value is not MISSING}
    for values in product(*VALUES.values())
]

Marking = tuple[int, ...]


class TooLarge(Exception):  # noqa: N818 - it reads as what it says
    """The net does not fit a brute-force search."""


class Fire(NamedTuple):
    """A move: which arcs fire, by place from 0; None for a token that the gate drops."""

    step: int
    event: str
    arcs: frozenset[int] | None


@lru_cache(maxsize=4096)
def truths(guard: str | None, event: str, step: str) -> tuple[bool, ...]:
    """Return in which worlds a guard holds after an event."""
    if guard is None:
        return (True,) * len(WORLDS)
    evaluate = compile_expression(guard_code(guard))
    failed = event == "step.failed"
    reported = {"name": event, "status": "error" if failed else "success", "step": step}
    if failed:
        reported["error"] = {"kind": "tool", "message": "", "retryable": False}  # type: ignore[assignment]
    found = []
    for world in WORLDS:
        try:
            found.append(bool(evaluate({"ctx": world, "event": reported} if event else {"ctx": world}, Fuel())))
        except ExpressionError:
            found.append(False)
    return tuple(found)


class BruteForce:
    """The answers for one playbook."""

    def __init__(self, playbook: RandomPlaybook) -> None:
        self.playbook = playbook
        self.names = [step.name for step in playbook.steps]
        self.count = len(self.names)
        self.targets = [[self.names.index(target) for target, _ in step.arcs] for step in playbook.steps]
        gates = [set(truths(step.gate, "", step.name)) for step in playbook.steps]
        self.admits = [True in gate for gate in gates]
        self.denies = [False in gate for gate in gates]
        self.fires = [sorted(self._fires(number), key=str) for number in range(self.count)]
        self.start: Marking = tuple(int(number == 0) for number in range(self.count))

    # ---- moves

    def _fires(self, number: int) -> set[Fire]:
        step = self.playbook.steps[number]
        found = {
            Fire(number, event, fired)
            for event in (step.flavour.events if self.admits[number] else ())
            for fired in fired_sets(step, event)
        }
        if self.denies[number] and step.drops:
            found.add(Fire(number, "token.dropped", None))
        return found

    def after(self, marking: Marking, fire: Fire) -> Marking:
        counts = list(marking)
        if counts[fire.step] < MANY:
            counts[fire.step] -= 1
        for arc in fire.arcs or ():
            target = self.targets[fire.step][arc]
            if counts[target] < MANY:
                counts[target] += 1
        return tuple(counts)

    def moves(self, marking: Marking) -> Iterator[Fire]:
        for number in range(self.count):
            if marking[number]:
                yield from self.fires[number]

    def has_ended(self, marking: Marking) -> bool:
        held = [self.denies[n] and not self.playbook.steps[n].drops for n in range(self.count)]
        return all(not tokens or held[number] for number, tokens in enumerate(marking))

    # ---- the tree of markings

    def cover(self, without: int | None = None) -> set[Marking]:
        """Return the markings of the Karp-Miller tree; no token leaves the step `without`."""
        found: set[Marking] = set()
        waiting: list[tuple[Marking, tuple[Marking, ...]]] = [(self.start, ())]
        while waiting:
            marking, above = waiting.pop()
            if marking in found:
                continue
            found.add(marking)
            if len(found) > MARKINGS_MAX:
                raise TooLarge
            line = (*above, marking)
            fires = [fire for fire in self.moves(marking) if fire.step != without]
            waiting += [(pumped(self.after(marking, fire), line), line) for fire in fires]
        return found

    def can_end_from(self, start: Marking) -> bool:
        """Return whether some run from a marking ends, with few tokens at a time."""
        seen = {start}
        waiting = [start]
        while waiting:
            marking = waiting.pop()
            if self.has_ended(marking):
                return True
            for fire in self.moves(marking):
                onward = self.after(marking, fire)
                if sum(onward) <= TOKENS_MAX and onward not in seen:
                    seen.add(onward)
                    waiting.append(onward)
        return False

    def always_can_end(self, markings: set[Marking]) -> bool:
        """Return whether from every reachable marking the run can end; token by token where they are infinite."""
        if all(max(marking) < MANY for marking in markings):
            onward = {marking: {self.after(marking, fire) for fire in self.moves(marking)} for marking in markings}
            ending = {marking for marking in markings if self.has_ended(marking)}
            return closure(ending, inverted(onward)) == markings
        singles = [number for number in range(self.count) if any(marking[number] for marking in markings)]
        return all(self.can_end_from(self.single(number)) for number in singles)

    def single(self, number: int) -> Marking:
        return tuple(int(step == number) for step in range(self.count))

    # ---- lines of tokens

    def onward(self, number: int) -> set[int]:
        return {self.targets[number][arc] for fire in self.fires[number] for arc in fire.arcs or ()}

    def line_ends(self, number: int) -> bool:
        return self.denies[number] or any(not fire.arcs for fire in self.fires[number])

    def line_can_end(self, start: int, without: int | None) -> bool:
        """Return whether a line of tokens from a step can end without passing another."""
        seen: set[int] = set()
        waiting = [start]
        while waiting:
            number = waiting.pop()
            if number in seen or number == without:
                continue
            seen.add(number)
            if self.line_ends(number):
                return True
            waiting += self.onward(number)
        return False

    def lines(self, start: int) -> Iterator[list[int]]:
        """Yield every line of steps without a cycle, whole and in part."""
        waiting = [[start]]
        while waiting:
            line = waiting.pop()
            yield line
            waiting += [[*line, number] for number in self.onward(line[-1]) if number not in line]


@lru_cache(maxsize=100_000)
def _fired_sets(inclusive: bool, columns: tuple[tuple[bool, ...], ...]) -> frozenset[frozenset[int]]:
    found = set()
    for held in zip(*columns, strict=True):
        fired = [number for number, holds in enumerate(held) if holds]
        found.add(frozenset(fired if inclusive else fired[:1]))
    return frozenset(found)


def fired_sets(step: RandomStep, event: str) -> frozenset[frozenset[int]]:
    """Return every set of arcs that fire together after an event, in some world."""
    if not step.arcs:
        return frozenset({frozenset()})
    return _fired_sets(step.inclusive, tuple(truths(guard, event, step.name) for _, guard in step.arcs))


def pumped(marking: Marking, line: Iterable[Marking]) -> Marking:
    """Return a marking with `many` where it is more than one before it, and nowhere less."""
    for earlier in line:
        if earlier != marking and all(then <= now for then, now in zip(earlier, marking, strict=True)):
            marking = tuple(MANY if now > then else now for then, now in zip(earlier, marking, strict=True))
    return marking


def inverted(onward: dict[Marking, set[Marking]]) -> dict[Marking, set[Marking]]:
    into: dict[Marking, set[Marking]] = {marking: set() for marking in onward}
    for marking, targets in onward.items():
        for target in targets:
            into[target].add(marking)
    return into


def closure(start: set[Marking], onward: dict[Marking, set[Marking]]) -> set[Marking]:
    found = set(start)
    waiting = list(start)
    while waiting:
        for target in onward[waiting.pop()]:
            if target not in found:
                found.add(target)
                waiting.append(target)
    return found


def keys_read(step: RandomStep) -> set[str]:
    texts = [guard or "" for _, guard in step.arcs] + [step.gate or ""]
    looped = step.flavour.collection
    texts.append(looped if isinstance(looped, str) else "")
    return set(re.findall(r"ctx\.(\w)", " ".join(texts)))
