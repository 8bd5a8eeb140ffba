"""Checks that an argument of a workbook call has the same value where it is read as at the call.

The compiler inlines arguments, so they are evaluated where they are read. Until the first of the call's tasks has
ended nothing has changed. After that `_prev` has, and so may the keys of `ctx` and `iter` that a task writes; `_task`
and `_attempt` are the reading task's own from the beginning.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from noetlc.analysis.model import patches, thens
from noetlc.analysis.names import NameUse
from noetlc.canon.arguments import ARGS, Arguments, reads
from noetlc.canon.errors import ExpansionError
from noetlc.syntax import ast, nodes
from noetlc.syntax.nodes import Node
from noetlc.syntax.span import Span
from noetlvm.language.scopes import NAMESPACES

_OF_THE_READER = frozenset({"_task", "_attempt"})
_SHARED = {"set_ctx": "ctx", "set_iter": "iter"}


class Writes(NamedTuple):
    """The keys of `ctx` and of `iter` that the tasks of a call write."""

    ctx: frozenset[str]
    iter: frozenset[str]
    label: tuple[str, ...] = ()
    """The call's own label, in parts: under it the results of its tasks are read."""

    def changes(self, use: NameUse) -> bool:
        """True if the value that is read may change when a task ends."""
        if use.name == "_prev":
            return True
        if use.name in ("ctx", "iter"):
            names = self.ctx if use.name == "ctx" else self.iter
            return use.fields[0].name in names if use.fields else bool(names)
        if self.label and tuple(use.path[: len(self.label)]) == self.label:
            return True
        return use.name not in NAMESPACES and use.name in self.ctx | self.iter


def require_stable(
    entries: tuple[ast.PipelineEntry, ...],
    arguments: Arguments,
    workbook: Mapping[str, ast.WorkbookTask],
    label: str = "",
) -> None:
    """Refuse a call whose tasks could read another value than the call gives. `label` is the call's own."""
    if len(entries) == 1 and isinstance(entries[0], ast.Task):
        return
    written = _written(entries, workbook, label)
    jumped_to = {then.to.text for task in ast.nested_tasks(entries) for _, then in thens(task) if then.to}
    changing: dict[tuple[str, bool], NameUse | None] = {}
    for node, is_early in _placed(entries, True, jumped_to):
        for leaf in nodes.scalars(node):
            for name in _arguments_read(leaf, arguments):
                if (name, is_early) not in changing:
                    changing[name, is_early] = _changing(arguments.given[name], written, is_early)
                _require_none(changing[name, is_early], name, leaf.span)


def _changing(argument: Node, written: Writes, is_early: bool) -> NameUse | None:
    """Return the first name that an argument reads whose value may differ from the call's."""
    for use in reads(argument):
        if use.name in _OF_THE_READER or (not is_early and written.changes(use)):
            return use
    return None


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


def _written(entries: Sequence[ast.PipelineEntry], workbook: Mapping[str, ast.WorkbookTask], label: str) -> Writes:
    """Collect the keys that the tasks write, nested calls included."""
    found: dict[str, set[str]] = {"ctx": set(), "iter": set()}
    seen: set[str] = set()
    waiting = [tuple(entries)]
    while waiting:
        for task in ast.nested_tasks(waiting.pop()):
            for _, then in thens(task):
                for patch, item in patches(then):
                    found[_SHARED[patch]].add(item.key.text)
            called = task.get_extra("task")
            name = called.text if isinstance(called, nodes.Scalar) and task.tool_kind == "workbook" else ""
            if name in workbook and name not in seen:
                seen.add(name)
                waiting.append(workbook[name].entries)
    return Writes(frozenset(found["ctx"]), frozenset(found["iter"]), tuple(label.split(".")) if label else ())


def _placed(entries: Sequence[ast.PipelineEntry], is_early: bool, jumped_to: set[str]) -> Iterator[tuple[Node, bool]]:
    """Yield every value that may hold templates, and whether it is evaluated before any task has ended."""
    for entry in entries:
        if isinstance(entry, ast.Task):
            # One without a written label may be jumped to by its generated one: then any jump counts.
            is_target = entry.label.text in jumped_to if entry.label else bool(jumped_to)
            early = is_early and not is_target
            yield from ((node, early) for node in _task_values(entry))
        else:
            early = is_early and isinstance(entry, ast.Choose)
            yield from ((node, early) for node in _guards(entry))
            for body in ast.bodies(entry):
                yield from _placed(body, early, jumped_to)
        is_early = False


def _guards(block: ast.Choose | ast.Repeat) -> Iterator[Node]:
    for holder in block.choose if isinstance(block, ast.Choose) else (block,):
        if holder.when:
            yield holder.when
    if isinstance(block, ast.Repeat) and block.delay:
        yield block.delay


def _task_values(task: ast.Task) -> Iterator[Node]:
    yield from (item.value for item in task.extra)
    yield from (item.value for item in task.settings)
    yield from (rule.when for rule in task.rules if rule.when)
    for _, then in thens(task):
        if then.delay:
            yield then.delay
        yield from (item.value for _, item in patches(then))
