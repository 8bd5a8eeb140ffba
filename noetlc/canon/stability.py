"""Checks that an argument of a workbook call has the same value where it is read as at the call.

The compiler inlines arguments, so they are evaluated where they are read. Until the first of the call's tasks has
ended nothing has changed but what a retry of that task writes. After that `_prev` has, and so may the keys of `ctx` and
`iter` that a task writes; `_task` and `_attempt` are the reading task's own from the beginning.

A call inside the call stands for its own tasks, which read the outer arguments too.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from noetlc.analysis.model import patches, thens
from noetlc.analysis.names import NameUse
from noetlc.analysis.workbook_calls import called_entries
from noetlc.canon.arguments import ARGS, Arguments, reads
from noetlc.canon.errors import ExpansionError
from noetlc.syntax import ast, nodes
from noetlc.syntax.nodes import Node
from noetlc.syntax.positions import placed_values
from noetlc.syntax.span import Span
from noetlvm.language.scopes import NAMESPACES

_OF_THE_READER = frozenset({"_task", "_attempt"})
_SHARED = {"set_ctx": "ctx", "set_iter": "iter"}


class Writes(NamedTuple):
    """What may have been written since the call."""

    ctx: frozenset[str] = frozenset()
    iter: frozenset[str] = frozenset()
    label: tuple[str, ...] = ()
    """The call's own label, in parts: under it the results of its tasks are read."""
    has_ended: bool = False
    """Whether a task of the call may have ended."""

    def changes(self, use: NameUse) -> bool:
        """True if the value that is read may be another than at the call."""
        if use.name in _OF_THE_READER:
            return True
        if use.name == "_prev":
            return self.has_ended
        if use.name in ("ctx", "iter"):
            names = self.ctx if use.name == "ctx" else self.iter
            return use.fields[0].name in names if use.fields else bool(names)
        if self.label and self.has_ended and tuple(use.path[: len(self.label)]) == self.label:
            return True
        return use.name not in NAMESPACES and use.name in self.ctx | self.iter


def require_stable(
    entries: tuple[ast.PipelineEntry, ...],
    arguments: Arguments,
    workbook: Mapping[str, ast.WorkbookTask],
    label: str = "",
) -> None:
    """Refuse a call whose tasks could read another value than the call gives. `label` is the call's own."""
    if _is_single(entries, workbook):
        return
    written = _written(ast.nested_tasks(entries), workbook)._replace(
        label=tuple(label.split(".")) if label else (), has_ended=True
    )
    changing: dict[tuple[str, Writes], NameUse | None] = {}
    for node, before, visible in _Reads(workbook, written).of(entries, frozenset(arguments.given)):
        for leaf in nodes.scalars(node):
            for name in _arguments_read(leaf, arguments):
                if name not in visible:
                    continue
                if (name, before) not in changing:
                    changing[name, before] = _changing(arguments.given[name], before)
                _require_none(changing[name, before], name, leaf.span)


def _is_single(entries: Sequence[ast.PipelineEntry], workbook: Mapping[str, ast.WorkbookTask]) -> bool:
    """Return whether a call stands for one task, whatever the number of calls between (S42)."""
    seen: set[int] = set()
    while len(entries) == 1 and isinstance(entries[0], ast.Task) and id(entries) not in seen:
        seen.add(id(entries))
        inner = called_entries(entries[0], workbook)
        if inner is None:
            return True
        entries = inner
    return False


def _changing(argument: Node, before: Writes) -> NameUse | None:
    """Return the first name that an argument reads whose value may differ from the call's."""
    return next((use for use in reads(argument) if before.changes(use)), None)


def _require_none(use: NameUse | None, name: str, place: Span) -> None:
    if use is None:
        return
    path = ".".join(use.path[:2])
    raise ExpansionError(
        "P118",
        place,
        f"`{ARGS}.{name}` is `{path}` here, and that is another value than it was when the workbook was called",
        f"keep `{path}` under a name that these tasks do not write, with `set_iter` or `set_ctx` before the call, and "
        "pass that",
    )


def _arguments_read(leaf: nodes.Scalar, arguments: Arguments) -> Iterator[str]:
    for use in reads(leaf):
        if use.name != ARGS:
            if use.name in arguments.given and use.name not in NAMESPACES:
                yield use.name
        elif not use.fields:
            yield from arguments.given
        elif use.fields[0].name in arguments.given:
            yield use.fields[0].name


def _written(tasks: Iterator[ast.Task], workbook: Mapping[str, ast.WorkbookTask], directive: str = "") -> Writes:
    """Collect the keys that tasks write, those of nested calls included; with a directive, only the rules with it."""
    found: dict[str, set[str]] = {"ctx": set(), "iter": set()}
    seen: set[int] = set()
    waiting = [tasks]
    while waiting:
        for task in waiting.pop():
            for _, then in thens(task):
                if not directive or (then.do and then.do.text == directive):
                    for patch, item in patches(then):
                        found[_SHARED[patch]].add(item.key.text)
            called = called_entries(task, workbook)
            if called is not None and id(called) not in seen:
                seen.add(id(called))
                waiting.append(ast.nested_tasks(called))
    return Writes(frozenset(found["ctx"]), frozenset(found["iter"]))


class _Read(NamedTuple):
    """A value of a call's tasks that may hold templates."""

    node: Node
    before: Writes
    """What may have been written before it is evaluated."""
    visible: frozenset[str]
    """The call's arguments that no inner call replaces there."""


class _Tasks(NamedTuple):
    """Tasks that a call stands for, directly or by a call among them."""

    entries: tuple[ast.PipelineEntry, ...]
    is_first: bool
    """No task of the call has ended before."""
    visible: frozenset[str]


class _Reads:
    """The values of a call's tasks. Calls in each other may be thousands deep, so that they wait in a queue."""

    def __init__(self, workbook: Mapping[str, ast.WorkbookTask], written: Writes) -> None:
        self._workbook = workbook
        self._written = written
        self._seen: dict[tuple[int, bool], frozenset[str]] = {}
        self._waiting: deque[_Tasks] = deque()

    def of(self, entries: tuple[ast.PipelineEntry, ...], names: frozenset[str]) -> Iterator[_Read]:
        """Yield each value that may read one of these arguments."""
        self._waiting.append(_Tasks(entries, is_first=True, visible=names))
        while self._waiting:
            tasks = self._waiting.popleft()
            key = (id(tasks.entries), tasks.is_first)
            seen = self._seen.get(key, frozenset())
            if tasks.visible - seen:
                self._seen[key] = seen | tasks.visible
                within = ast.nested_tasks(tasks.entries)
                jumped_to = {then.to.text for task in within for _, then in thens(task) if then.to}
                yield from self._list(tasks._replace(visible=tasks.visible - seen), jumped_to)

    def _list(self, tasks: _Tasks, jumped_to: set[str]) -> Iterator[_Read]:
        is_first, visible = tasks.is_first, tasks.visible
        for entry in tasks.entries:
            if isinstance(entry, ast.Task):
                # One without a written label may be jumped to by its generated one: then any jump counts.
                is_target = entry.label.text in jumped_to if entry.label else bool(jumped_to)
                yield from self._task(entry, is_first and not is_target, visible)
            else:
                first = is_first and isinstance(entry, ast.Choose)
                before = Writes() if first else self._written
                yield from (_Read(placed.node, before, visible) for placed in placed_values(entry))
                for body in ast.bodies(entry):
                    yield from self._list(_Tasks(tuple(body), first, visible), jumped_to)
            is_first = False

    def _task(self, task: ast.Task, is_first: bool, visible: frozenset[str]) -> Iterator[_Read]:
        retried = _written(iter((task,)), {}, "retry") if is_first else self._written
        for placed in placed_values(task):
            yield _Read(placed.node, retried if placed.key.repeats else self._written, visible)
        inner = called_entries(task, self._workbook)
        if inner is not None:
            given = task.get_extra(ARGS)
            names = [entry.key.text for entry in given.entries] if isinstance(given, nodes.Mapping) else []
            self._waiting.append(_Tasks(inner, is_first, visible.difference(names)))
