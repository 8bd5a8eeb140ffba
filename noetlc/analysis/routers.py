"""Routers: which arcs can fire together, computed from their guards taken together."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from heapq import merge
from typing import TypeAlias

from noetlc.analysis.formulas import (
    ORDER,
    TRUTHS,
    Formula,
    combinations,
    constants_of,
    holds,
    is_true,
    samples_for,
    tests_in,
    value_of,
)

Choice: TypeAlias = tuple[tuple[int, ...], ...]
"""One decision of a router: one of these sets of arcs fires. Arcs by their index among the step's arcs."""

NEXT_MODE = "next_mode"
"""What the older dialect calls `next.spec.mode`, in the step's `spec`."""

WORK_MAX = 300_000
"""Evaluations of guards, and arcs in alternatives, for one group of arcs. A group that needs more is split into
independent arcs, so that more combinations seem possible than are."""
PAIRS_MAX = 2_000_000
"""Pairs of arcs in the alternatives of one group of an inclusive router; split likewise."""
COVER_WORK_MAX = 100_000
"""Combinations of samples to evaluate for pairs of arcs, when searching for the arc that shadows another."""


def choices(guards: Sequence[Formula], inclusive: bool) -> tuple[Choice, ...]:
    """Return the independent choices of a router whose arcs have these guards, in order."""
    alternatives = [found for group in _groups(guards) for found in _alternatives(group, guards, inclusive)]
    if inclusive:
        distinct = (tuple(sorted(set(found))) for found in alternatives)
        return tuple(choice for choice in distinct if choice != ((),))
    taken = _first_of_all(alternatives, len(guards))
    return (taken,) if taken != ((),) else ()


def covering(guards: Sequence[Formula], indices: Sequence[int]) -> dict[int, int]:
    """Return, for the guards at these indices, the first earlier guard that covers each; those without are missing."""
    with_operand: dict[str | None, list[int]] = {}
    """By operand, the guards that test it; under None those that always hold."""
    for index, guard in enumerate(guards):
        for operand in [None] if guard is True else {test.operand for test in tests_in(guard)}:
            with_operand.setdefault(operand, []).append(index)
    found: dict[int, int] = {}
    left = COVER_WORK_MAX
    for index in indices:
        operands = {None, *(test.operand for test in tests_in(guards[index]))}
        for earlier in merge(*(with_operand.get(operand, ()) for operand in operands)):
            if earlier >= index:
                break
            worlds = [] if guards[earlier] is True else combinations((guards[index], guards[earlier]))
            left -= 1 + len(worlds or ())
            if left < 0:
                return found
            if worlds is not None and _covers(guards[earlier], guards[index], worlds):
                found[index] = earlier
                break
    return found


def _covers(earlier: Formula, guard: Formula, worlds: list[dict[str, object]]) -> bool:
    """True if the earlier guard holds wherever this one does."""
    return all(value_of(earlier, world) for world in worlds if value_of(guard, world))


def _groups(guards: Sequence[Formula]) -> list[list[int]]:
    """Partition the arcs into groups that share no operand (union-find by operand)."""
    parent = list(range(len(guards)))

    def root(index: int) -> int:
        while parent[index] != index:
            parent[index] = parent[parent[index]]
            index = parent[index]
        return index

    first_with: dict[str, int] = {}
    for index, guard in enumerate(guards):
        for operand in sorted({test.operand for test in tests_in(guard)}):
            one, other = sorted((root(index), root(first_with.setdefault(operand, index))))
            parent[other] = one
    groups: dict[int, list[int]] = {}
    for index in range(len(guards)):
        groups.setdefault(root(index), []).append(index)
    return list(groups.values())


def _alternatives(group: list[int], guards: Sequence[Formula], inclusive: bool) -> Iterator[list[tuple[int, ...]]]:
    """Yield the sets of arcs of a group that can hold together, in one list or in several independent ones."""
    together = _by_constant(group, guards) or _by_combination(group, guards)
    if together is not None and inclusive:
        together = list(dict.fromkeys(together))
        if sum(len(held) ** 2 for held in together) > PAIRS_MAX:
            together = None
    if together is not None:
        yield together
    elif len(group) == 1:
        yield [(), (group[0],)]
    else:
        for index in group:
            yield from _alternatives([index], guards, inclusive)


def _by_combination(group: list[int], guards: Sequence[Formula]) -> list[tuple[int, ...]] | None:
    worlds = combinations(guards[index] for index in group)
    if worlds is None or len(worlds) * len(group) > WORK_MAX:
        return None
    return [tuple(index for index in group if value_of(guards[index], world)) for world in worlds]


def _by_constant(group: list[int], guards: Sequence[Formula]) -> list[tuple[int, ...]] | None:
    """Evaluate guards over one operand; None if there are more, or if they order it.

    A guard can only distinguish its own constants: all other values with the same truth are alike to it. So a router
    of `n` arcs that compare one operand with `n` constants takes about `n` evaluations, not `n * n`.
    """
    tests = {index: list(tests_in(guards[index])) for index in group}
    every = [test for tested in tests.values() for test in tested]
    if len({test.operand for test in every}) != 1 or any(test.relation in ORDER for test in every):
        return None
    operand = every[0].operand
    samples = samples_for(every)
    if not all(isinstance(sample, Hashable) for sample in samples):
        return None
    tests_truth = any(test.relation in TRUTHS for test in every)
    kinds = {sample: (is_true(sample), holds(sample)) if tests_truth else (True, True) for sample in samples}
    by_kind: dict[tuple[bool, bool], list[object]] = {}
    for sample in reversed(samples):
        by_kind.setdefault(kinds[sample], []).append(sample)
    usual: dict[tuple[bool, bool], list[int]] = {}
    """By truth of the value: the arcs that hold for a value that is none of their own constants."""
    special: dict[object, dict[int, bool]] = {sample: {} for sample in samples}
    for index in group:
        own = {constant for test in tests[index] for constant in constants_of(test)}
        for constant in own:
            special[constant][index] = value_of(guards[index], {operand: constant})
        for kind, alike in by_kind.items():
            other = next((sample for sample in alike if sample not in own), None)
            if other is not None and value_of(guards[index], {operand: other}):
                usual.setdefault(kind, []).append(index)
    if sum(len(usual.get(kinds[sample], ())) for sample in samples) > WORK_MAX:
        return None
    return [
        tuple(
            sorted(
                [index for index in usual.get(kinds[sample], ()) if index not in special[sample]]
                + [index for index, held in special[sample].items() if held]
            )
        )
        for sample in samples
    ]


def _first_of_all(groups: list[list[tuple[int, ...]]], none: int) -> Choice:
    """Return which arc can be the first that holds, where the groups are independent; `none` stands for no arc."""
    firsts = [{min(alternative, default=none) for alternative in group} for group in groups]
    latest = sorted((max(first) for first in firsts), reverse=True)
    possible: list[tuple[int, ...]] = []
    for first in firsts:
        limit = _earliest_but(latest, max(first))
        possible += [(index,) for index in first if index < none and index < limit]
    if all(last == none for last in latest):
        possible.append(())
    return tuple(sorted(set(possible)))


def _earliest_but(latest: list[int], own: int) -> int:
    """Return the least of all groups' latest first arcs, leaving out one group's own; `latest` is descending."""
    if latest[-1] != own or (len(latest) > 1 and latest[-2] == own):
        return latest[-1]
    return latest[-2] if len(latest) > 1 else own + 1
