"""The labels behind a workbook call: its tasks are put in its place, their labels prefixed with its own (S42).

A template reads their results by label (S48): in the workbook by the label as it is written there, after the call as
`save.insert`, and under the call's own label the result of its last task.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, Protocol

from noetlc.analysis.model import patches, thens
from noetlc.syntax import ast
from noetlc.syntax.nodes import Scalar
from noetlvm.language.scopes import given_fields

KIND = "workbook"
_DEPTH_MAX = 64
"""Calls inside calls; a cycle is reported elsewhere."""

Entries = tuple[ast.PipelineEntry, ...]


class TaskList(Protocol):
    """A task of the workbook, as it is written or as the model has it."""

    @property
    def entries(self) -> Entries: ...


Workbook = Mapping[str, TaskList]


class ReadLabel(NamedTuple):
    """What the name of a task stands for in the canonical form."""

    label: str
    result: str | None
    """The label with the task's result; None for a call whose last entry is a block, which has no result of its own."""
    inner: frozenset[str] = frozenset()
    """Labels under it, for a call."""

    def named(self, field: str | None) -> str | None:
        """Return the label that a read of the name with this first field stands for, without the field."""
        return self.label if field in self.inner else self.result


def called_entries(task: ast.Task, workbook: Workbook) -> Entries | None:
    """Return the tasks that a call stands for; None if the task is not a call of a known one."""
    named = task.get_extra("task") if task.kind and task.kind.text == KIND else None
    known = isinstance(named, Scalar) and not named.is_template and named.text in workbook
    return workbook[named.text].entries if isinstance(named, Scalar) and known else None


def is_lone(entries: Entries) -> bool:
    """Return whether a list is one task without a label, which gets the caller's."""
    return len(entries) == 1 and isinstance(entries[0], ast.Task) and entries[0].label is None


def read_labels(entries: Entries, workbook: Workbook, caller: str = "") -> dict[str, ReadLabel]:
    """Return what the labels of a list's tasks stand for, by the names that its templates read.

    `caller` is the canonical label of the call that the list replaces; empty for a step's own list.
    """
    prefix = f"{caller}." if caller else ""
    return {local: read_label(task, f"{prefix}{local}", workbook) for local, task in _labelled(entries)}


class NamesBeforeLabels:
    """The names that a bare name finds in `args`, `ctx`, `iter` or `workload`, before a label (S48).

    Arguments of workbook calls are not among them: they hide labels only in the tasks that the call stands for.
    """

    def __init__(self, playbook: ast.Playbook) -> None:
        self._shared = [task.entries for task in playbook.shared_tasks]
        # In canonical form the tasks stand in the place of the calls, under labels with dots.
        self._matters = bool(self._shared) or any(
            task.label and "." in task.label.text for step in playbook.workflow or () for task in _tasks_of(step)
        )
        self._everywhere = frozenset(self._names(playbook)) if self._matters else frozenset()

    def of(self, step: ast.Step) -> frozenset[str]:
        """Return those that count in the tasks of a step."""
        if not self._matters or not step.loops:
            return self._everywhere
        iterators = {loop.iterator.text for loop in step.loops if loop.iterator}
        written = {name for entries in (step.tool or (), *self._shared) for name in _written(entries, "set_iter")}
        return self._everywhere | given_fields("iter") | iterators | written

    def _names(self, playbook: ast.Playbook) -> Iterator[str]:
        yield from (entry.key.text for entry in (playbook.workload.entries if playbook.workload else ()))
        for step in playbook.workflow or ():
            for arc in step.arcs:
                yield from (entry.key.text for entry in (arc.args.entries if arc.args else ()))
            yield from _written(step.tool or (), "set_ctx")
        for entries in self._shared:
            yield from _written(entries, "set_ctx")


def _tasks_of(step: ast.Step) -> Iterator[ast.Task]:
    return (entry for entry in step.tool or () if isinstance(entry, ast.Task))


def _written(entries: Entries, patch: str) -> Iterator[str]:
    for task in ast.nested_tasks(entries):
        for _, then in thens(task):
            yield from (entry.key.text for name, entry in patches(then) if name == patch)


def read_label(task: ast.Task, label: str, workbook: Workbook) -> ReadLabel:
    """Return what the name of a task stands for; `label` is its canonical one."""
    entries = called_entries(task, workbook)
    if entries is None or is_lone(entries):
        return ReadLabel(label, label)
    inner = (local for local, each in _labelled(entries) if _is_plain(each, workbook))
    return ReadLabel(label, _result_label(entries, label, workbook), frozenset(inner))


def _is_plain(task: ast.Task, workbook: Workbook) -> bool:
    entries = called_entries(task, workbook)
    return entries is None or is_lone(entries)


def _result_label(entries: Entries, label: str, workbook: Workbook) -> str | None:
    for _ in range(_DEPTH_MAX):
        last, local = list(ast.labelled(entries))[-1] if entries else (None, "")
        if not isinstance(last, ast.Task):
            return None
        label = f"{label}.{local}"
        inner = called_entries(last, workbook)
        if inner is None or is_lone(inner):
            return label
        entries = inner
    return None


def _labelled(entries: Entries) -> Iterable[tuple[str, ast.Task]]:
    for entry, label in ast.labelled(entries):
        if isinstance(entry, ast.Task):
            yield label, entry
        else:
            yield from ((task.label.text, task) for task in ast.nested_tasks((entry,)) if task.label)
