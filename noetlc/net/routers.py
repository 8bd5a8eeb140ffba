"""What a router may do: its arcs' guards taken together, as independent choices between sets of arcs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from noetlc.net.conditions import Formula, combinations, tests_in, value_of
from noetlc.net.net import Choice


def choices(guards: Sequence[Formula], inclusive: bool) -> tuple[Choice, ...]:
    """Return the choices of a router whose arcs have these guards, in order."""
    alternatives = [found for group in _groups(guards) for found in _alternatives(group, guards)]
    if inclusive:
        return tuple(choice for choice in map(_distinct, alternatives) if choice != ((),))
    taken = _first_of_all(alternatives, len(guards))
    return (taken,) if taken != ((),) else ()


def is_covered(guard: Formula, earlier: Formula) -> bool:
    """Tell whether a guard never holds where an earlier one does not."""
    worlds = combinations((guard, earlier))
    return worlds is not None and all(value_of(earlier, world) for world in worlds if value_of(guard, world))


def _groups(guards: Sequence[Formula]) -> list[list[int]]:
    """Part the arcs into groups that share no operand."""
    group_of: dict[str, list[int]] = {}
    groups: dict[int, list[int]] = {}
    for index, guard in enumerate(guards):
        group = [index]
        for operand in {test.operand for test in tests_in(guard)}:
            known = group_of.get(operand, group)
            if known is not group:
                group = _merged(known, group, groups, group_of, guards)
            group_of[operand] = group
        groups[id(group)] = group
    return sorted((sorted(group) for group in groups.values()), key=lambda group: group[0])


def _merged(
    first: list[int],
    second: list[int],
    groups: dict[int, list[int]],
    group_of: dict[str, list[int]],
    guards: Sequence[Formula],
) -> list[int]:
    """Put the smaller group into the larger one, so that the work stays small however the groups meet."""
    small, large = sorted((first, second), key=len)
    groups.pop(id(small), None)
    for operand in {test.operand for index in small for test in tests_in(guards[index])}:
        if group_of.get(operand) is small:
            group_of[operand] = large
    large += small
    return large


def _alternatives(group: list[int], guards: Sequence[Formula]) -> Iterator[list[tuple[int, ...]]]:
    """Yield which arcs of a group may hold together; more than once where it falls apart."""
    worlds = combinations(guards[index] for index in group)
    if worlds is not None:
        yield [tuple(index for index in group if value_of(guards[index], world)) for world in worlds]
    elif len(group) == 1:
        yield [(), (group[0],)]
    else:  # too much to try together: each for itself, and so more may seem to happen than does
        for index in group:
            yield from _alternatives([index], guards)


def _distinct(alternatives: list[tuple[int, ...]]) -> Choice:
    return tuple(sorted(set(alternatives)))


def _first_of_all(groups: list[list[tuple[int, ...]]], none: int) -> Choice:
    """Return which arc may be the first that holds, where each group goes its own way; `none` stands for no arc."""
    firsts = [{min(alternative, default=none) for alternative in group} for group in groups]
    latest = sorted((max(first) for first in firsts), reverse=True)
    possible: list[tuple[int, ...]] = []
    for first in firsts:
        others_wait_until = _earliest_but(latest, max(first))
        possible += [(index,) for index in first if index < none and index < others_wait_until]
    if all(last == none for last in latest):
        possible.append(())
    return tuple(sorted(set(possible)))


def _earliest_but(latest: list[int], own: int) -> int:
    """Return the earliest of all groups' latest first arcs, leaving out one group's own; `latest` is descending."""
    if latest[-1] != own or (len(latest) > 1 and latest[-2] == own):
        return latest[-1]
    return latest[-2] if len(latest) > 1 else own + 1
