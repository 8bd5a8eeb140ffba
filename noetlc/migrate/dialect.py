"""Recognises the dialect of a playbook by the words that only one dialect has."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from enum import StrEnum

from noetlc.syntax.nodes import Mapping, Node, Scalar, Sequence
from noetlvm.record import Record


class Dialect(StrEnum):
    """A way of writing playbooks."""

    V10 = "v10"
    IO = "io"
    EVAL = "eval"
    CASE = "case"


TITLES = {
    Dialect.V10: "canonical v10",
    Dialect.IO: "the dialect with `input`, `output` and `set`",
    Dialect.EVAL: "the older dialect with `eval`",
    Dialect.CASE: "the older dialect with `case`",
}

_MANY, _MANY_OF_IO = 2, 3
"""Marks of another dialect from which one finding on the whole file is clearer than one finding on each."""
_TASK_INPUT = "`input` on a task"
"""An accepted spelling by itself; it counts beside other words of its dialect."""

SINKS = ("sink", "save")
"""Blocks of a step or a task that store its result."""

_STEP_MARKS = {
    "case": Dialect.CASE,
    "pipe": Dialect.CASE,
    **dict.fromkeys(SINKS, Dialect.CASE),
    "vars": Dialect.CASE,
    "when": Dialect.EVAL,
    "set": Dialect.IO,
    "input": Dialect.IO,
    "output": Dialect.IO,
}
_LOOP_MARKS = ("collection", "element")
_TASK_MARKS = {
    "eval": Dialect.EVAL,
    "input": Dialect.IO,
    "set": Dialect.IO,
    **dict.fromkeys(SINKS, Dialect.CASE),
    "catch": Dialect.CASE,
}
_PATCHES = {"set_vars": Dialect.EVAL, "set_shared": Dialect.EVAL, "set_prev": Dialect.EVAL, "set": Dialect.IO}
_OUTPUT = re.compile(r"\{[{%][^}]*(?<![\w.])output(?=\.(?:data|status|error|http|pg|py|meta)\b|\s*[|}])")
_CALL_EVENTS = "`call.done`, `call.error`"
_CALL_EVENT = re.compile(r"""["']call\.(?:done|error)["']""")


class Recognised(Record):
    """A dialect, and how often each of its words occurs."""

    dialect: Dialect
    marks: tuple[tuple[str, int], ...] = ()
    canonical: int = 0
    """How many routers and policies have v10's form: a file with both is v10 with slips."""

    @property
    def is_foreign(self) -> bool:
        """Return whether the file as a whole is of another dialect."""
        total = sum(count for _, count in self.marks)
        if self.dialect is Dialect.IO:
            return total >= _MANY_OF_IO and any(word != _TASK_INPUT for word, _ in self.marks)
        return self.dialect is not Dialect.V10 and total >= _MANY and self.canonical == 0

    def described(self) -> str:
        return ", ".join(f"{word} ({count})" if count > 1 else word for word, count in self.marks[:6])


def recognise(root: Node | None) -> Recognised:
    found: Counter[tuple[Dialect, str]] = Counter(_marks(root))
    if any(dialect is Dialect.V10 for dialect, _ in found):
        found.pop((Dialect.CASE, _CALL_EVENTS), None)  # a slip, where the rest is v10
    by_dialect = Counter[Dialect]()
    for (dialect, _), count in found.items():
        by_dialect[dialect] += count
    dialect = next((one for one in (Dialect.CASE, Dialect.EVAL, Dialect.IO) if by_dialect[one]), Dialect.V10)
    marks = [(word, count) for (one, word), count in found.items() if one is not Dialect.V10]
    return Recognised(dialect, tuple(marks), by_dialect[Dialect.V10])


def _marks(root: Node | None) -> Iterator[tuple[Dialect, str]]:
    if not isinstance(root, Mapping):
        return
    if root.get("vars") is not None:
        yield Dialect.CASE, "`vars`"
    executor = root.get("executor")
    if isinstance(executor, Mapping) and executor.get("kind") is not None:
        yield Dialect.EVAL, "`executor.kind`"
    if isinstance(root.get("workbook"), Sequence):
        yield Dialect.EVAL, "`workbook` as a list"
    workflow = root.get("workflow")
    for step in workflow.items if isinstance(workflow, Sequence) else ():
        if isinstance(step, Mapping):
            yield from _step_marks(step)


def _step_marks(step: Mapping) -> Iterator[tuple[Dialect, str]]:
    for entry in step.entries:
        word, value = entry.key.text, entry.value
        if word in _STEP_MARKS:
            yield _STEP_MARKS[word], f"`{word}` on a step"
            if word == "case" and isinstance(value, Sequence):
                yield from [(Dialect.CASE, "its entries")] * (len(value.items) - 1)
        elif word == "loop" and isinstance(value, Mapping):
            yield from ((Dialect.EVAL, f"`loop.{old}`") for old in _LOOP_MARKS if value.get(old) is not None)
        elif word == "next":
            yield from _next_marks(value)
        elif word == "spec" and isinstance(value, Mapping) and value.get("next_mode") is not None:
            yield Dialect.EVAL, "`next_mode`"
        elif word == "tool" and isinstance(value, Scalar) and value.value:
            yield Dialect.CASE, "`tool` as text"
    yield from _task_marks(step.get("tool"))
    yield from _template_marks(step)


def _next_marks(value: Node) -> Iterator[tuple[Dialect, str]]:
    if isinstance(value, Sequence) or (isinstance(value, Scalar) and value.value is not None):
        yield Dialect.EVAL, "`next` as a list" if isinstance(value, Sequence) else "`next` as a name"
    elif isinstance(value, Mapping) and value.get("arcs") is not None:
        yield Dialect.V10, "`next.arcs`"


def _task_marks(node: Node | None) -> Iterator[tuple[Dialect, str]]:
    """Look at every mapping below a `tool`; inputs hold data, but these words are rare there."""
    waiting = [node] if node is not None else []
    while waiting:
        current = waiting.pop()
        if isinstance(current, Sequence):
            waiting.extend(current.items)
        elif isinstance(current, Mapping):
            is_task = current.get("kind") is not None or current.get("tool") is not None
            for entry in current.entries:
                word = entry.key.text
                if is_task and word in _TASK_MARKS:
                    yield _TASK_MARKS[word], f"`{word}` on a task"
                elif word in _PATCHES and current.get("do") is not None:
                    yield _PATCHES[word], f"`{word}` in a rule"
                elif word == "rules":
                    yield Dialect.V10, "`policy.rules`"
                if isinstance(entry.value, Mapping | Sequence) and word not in ("args", "params", "json", "headers"):
                    waiting.append(entry.value)


def _template_marks(step: Mapping) -> Iterator[tuple[Dialect, str]]:
    waiting: list[Node] = [step]
    while waiting:
        current = waiting.pop()
        if isinstance(current, Scalar):
            if "output" in current.text and _OUTPUT.search(current.text):
                yield Dialect.IO, "`output` in templates"
            if "call." in current.text and _CALL_EVENT.search(current.text):
                yield Dialect.CASE, _CALL_EVENTS
        elif isinstance(current, Sequence):
            waiting.extend(current.items)
        else:
            waiting.extend(entry.value for entry in current.entries)
