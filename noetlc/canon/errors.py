"""What has no canonical form: constructs that would change their meaning, and workbook calls that grow too large."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from noetlc.syntax import nodes
from noetlc.syntax.nodes import Node, scalars
from noetlc.syntax.span import Span
from noetlvm.language.names import NAME_CHARS_MAX

TOO_LARGE = "P120"
"""The rule that reports calls inside calls: they multiply tasks and texts without bound."""

INLINED_TASKS_MAX = 20_000
"""Tasks that the workbook calls of one playbook become."""
INLINED_CHARS_MAX = 4 * 1024 * 1024
"""Text of arguments, counted at every place that reads them."""
CALLS_DEPTH_MAX = 64
"""Calls inside calls."""
ARGUMENT_DEPTH_MAX = 32
"""Nesting of lists and mappings in one argument, after the arguments of outer calls have been put into it."""


class ExpansionError(Exception):
    """A construct that cannot be expanded: the code of the rule that reports it, and its message."""

    def __init__(self, code: str, span: Span, message: str, help: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.span = span
        self.message = message
        self.help = help


class ExpansionBudget:
    """How many tasks and how much argument text the workbook calls of one playbook may still produce."""

    def __init__(self) -> None:
        self._tasks = INLINED_TASKS_MAX
        self._chars = INLINED_CHARS_MAX

    def take_task(self, call: Span) -> None:
        self._tasks -= 1
        if self._tasks < 0:
            message = f"workbook calls come to more than {INLINED_TASKS_MAX:,} tasks"
            help = "call the workbook less often, or make a playbook of it and run that"
            raise ExpansionError(TOO_LARGE, call, message, help)

    def require_tasks(self, least: int, call: Span) -> None:
        """Refuse a call that makes more tasks than are left before any of them is made."""
        if least > self._tasks:
            self._tasks = 0
            self.take_task(call)

    def take_text(self, node: Node) -> None:
        """Count an argument that replaces a read of it."""
        for leaf in scalars(node):
            self._chars -= len(leaf.text) + 1
            if self._chars < 0:
                message = "the arguments of workbook calls come to too much text"
                help = "pass a reference to the data, not the data, or call the workbook less deep"
                raise ExpansionError(TOO_LARGE, node.span, message, help)


def require_shallow(argument: Node) -> None:
    level: dict[int, Node] = {id(argument): argument}  # by identity: a shared node is visited once
    for _ in range(ARGUMENT_DEPTH_MAX):
        level = {id(child): child for node in level.values() for child in _children(node)}
        if not level:
            return
    help = "pass its parts, or keep it in `ctx` and read it there"
    raise ExpansionError(TOO_LARGE, argument.span, "this argument nests too deep", help)


def require_short(label: str, place: Span) -> None:
    if len(label) > NAME_CHARS_MAX:
        message = f"the labels of calls inside each other come to a label of {len(label):,} characters"
        raise ExpansionError(TOO_LARGE, place, message, f"use shorter names: {NAME_CHARS_MAX:,} characters are allowed")


def require_few_calls(path: Sequence[str], place: Span) -> None:
    if len(path) >= CALLS_DEPTH_MAX:
        message = f"workbook calls nest deeper than {CALLS_DEPTH_MAX}"
        raise ExpansionError(TOO_LARGE, place, message, "put the inner tasks into the outer ones")


def _children(node: Node) -> Iterable[Node]:
    if isinstance(node, nodes.Sequence):
        return node.items
    return (entry.value for entry in node.entries) if isinstance(node, nodes.Mapping) else ()
