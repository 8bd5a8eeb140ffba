"""Which row each box stands in: as far down as the longest way to it, lines that close a cycle left aside."""

from __future__ import annotations

from collections.abc import Sequence

from noetlc.graph.layout.shapes import Link


def leads_back(count: int, links: Sequence[Link]) -> list[bool]:
    """Return for each link whether it closes a cycle, walking from the first box in the order of the links."""
    ways: list[list[int]] = [[] for _ in range(count)]
    for number, link in enumerate(links):
        ways[link.source].append(number)
    back = [False] * len(links)
    state = [0] * count  # 0 not visited, 1 on the stack, 2 done
    for root in range(count):
        if not state[root]:
            _walk(root, ways, links, state, back)
    return back


def _walk(root: int, ways: list[list[int]], links: Sequence[Link], state: list[int], back: list[bool]) -> None:
    state[root] = 1
    stack = [(root, iter(ways[root]))]
    while stack:
        box, rest = stack[-1]
        number = next(rest, None)
        if number is None:
            state[box] = 2
            stack.pop()
            continue
        target = links[number].target
        back[number] = state[target] == 1
        if not state[target]:
            state[target] = 1
            stack.append((target, iter(ways[target])))


def rank_boxes(count: int, links: Sequence[Link], back: Sequence[bool]) -> list[int]:
    after: list[list[int]] = [[] for _ in range(count)]
    waiting = [0] * count
    for link, turned in zip(links, back, strict=True):
        upper, lower = (link.target, link.source) if turned else (link.source, link.target)
        if upper != lower:
            after[upper].append(lower)
            waiting[lower] += 1
    first = [box for box in range(count) if not waiting[box]]
    ranks = [0] * count
    ready = list(first)
    for box in ready:  # grows while it is read
        for lower in after[box]:
            ranks[lower] = max(ranks[lower], ranks[box] + 1)
            waiting[lower] -= 1
            if not waiting[lower]:
                ready.append(lower)
    for box in first:  # one that nothing leads to stands just above what it leads to
        if after[box]:
            ranks[box] = min(ranks[lower] for lower in after[box]) - 1
    return ranks
