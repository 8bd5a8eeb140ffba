"""How much a playbook's workbook calls may come to: calls inside calls multiply tasks and texts without end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from noetlc.canon.refusal import Refusal
from noetlc.syntax import nodes
from noetlc.syntax.nodes import Node, scalars
from noetlc.syntax.span import Span

TOO_LARGE = "P120"
"""The rule that tells of it."""

INLINED_TASKS_MAX = 20_000
INLINED_CHARS_MAX = 4 * 1024 * 1024
"""Text of arguments, in all the places that they are put in."""
CALLS_DEPTH_MAX = 64
"""Calls inside calls."""
ARGUMENT_DEPTH_MAX = 32
"""Lists and mappings inside each other in one argument, once the arguments of outer calls are in it."""


class Allowance:
    """What is left of it for one playbook."""

    def __init__(self) -> None:
        self._tasks = INLINED_TASKS_MAX
        self._chars = INLINED_CHARS_MAX

    def take_task(self, call: Span) -> None:
        """Count a task that is put in for a call."""
        self._tasks -= 1
        if self._tasks < 0:
            message = f"workbook calls come to more than {INLINED_TASKS_MAX:,} tasks"
            raise Refusal(
                TOO_LARGE, call, message, "call the workbook less often, or make a playbook of it and run that"
            )

    def take_text(self, node: Node) -> None:
        """Count an argument that is put in."""
        for leaf in scalars(node):
            self._chars -= len(leaf.text) + 1
            if self._chars < 0:
                help = "pass a reference to the data, not the data, or call the workbook less deep"
                raise Refusal(TOO_LARGE, node.span, "the arguments of workbook calls come to too much text", help)


def require_shallow(argument: Node) -> None:
    """Refuse an argument in which too many lists and mappings stand inside each other."""
    level: dict[int, Node] = {id(argument): argument}  # by identity: what is put in twice is looked at once
    for _ in range(ARGUMENT_DEPTH_MAX):
        level = {id(child): child for node in level.values() for child in _children(node)}
        if not level:
            return
    raise Refusal(
        TOO_LARGE,
        argument.span,
        "this argument nests too deep",
        "pass its parts, or keep it in `ctx` and read it there",
    )


def require_few_calls(path: Sequence[str], place: Span) -> None:
    """Refuse a call that stands inside too many others."""
    if len(path) >= CALLS_DEPTH_MAX:
        message = f"workbook calls nest deeper than {CALLS_DEPTH_MAX}"
        raise Refusal(TOO_LARGE, place, message, "put the inner tasks into the outer ones")


def _children(node: Node) -> Iterable[Node]:
    if isinstance(node, nodes.Sequence):
        return node.items
    return (entry.value for entry in node.entries) if isinstance(node, nodes.Mapping) else ()
