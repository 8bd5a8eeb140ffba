"""Which tasks of a canonical pipeline control can come to, if any guard may hold or not: the verifier's view of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from noetlc.canon.flow import FLOW
from noetlc.syntax import ast

_GOES_ON = frozenset({"continue", "skip"})


def reachable(tasks: Sequence[ast.Task]) -> frozenset[int]:
    """Return the positions of the tasks that control can come to."""
    return _closure(tasks, [0])


def without_dead_flow(tasks: Sequence[ast.Task]) -> tuple[ast.Task, ...]:
    """Leave out the flow tasks that nothing leads to. What the author wrote stays, and all that it jumps to."""
    written = [position for position, task in enumerate(tasks) if not _is_flow(task)]
    positions = _positions(tasks)
    targets = [positions[to] for source in written for to in _jumps(tasks[source]) if to in positions]
    kept = _closure(tasks, [0, *targets]).union(written)
    return tuple(task for position, task in enumerate(tasks) if position in kept)


def _is_flow(task: ast.Task) -> bool:
    return task.spec is not None and task.spec.get_extra(FLOW) is not None


def _closure(tasks: Sequence[ast.Task], start: Iterable[int]) -> frozenset[int]:
    positions = _positions(tasks)
    seen: set[int] = set()
    waiting = list(start)
    while waiting:
        position = waiting.pop()
        if position in seen or position >= len(tasks):
            continue
        seen.add(position)
        waiting.extend(positions[to] for to in _jumps(tasks[position]) if to in positions)
        if _can_go_on(tasks[position]):
            waiting.append(position + 1)
    return frozenset(seen)


def _positions(tasks: Sequence[ast.Task]) -> dict[str, int]:
    return {task.label.text: position for position, task in enumerate(tasks) if task.label}


def _thens(task: ast.Task) -> Iterator[ast.Then]:
    for rule in task.rules:
        then = rule.else_.then if rule.else_ else rule.then
        if then:
            yield then


def _jumps(task: ast.Task) -> Iterator[str]:
    for then in _thens(task):
        if then.do and then.do.text == "jump" and then.to:
            yield then.to.text


def _can_go_on(task: ast.Task) -> bool:
    """Some rule continues, or none need match; without rules it is the language's default."""
    if not any(rule.else_ for rule in task.rules):
        return True
    return any(then.do is not None and then.do.text in _GOES_ON for then in _thens(task))
