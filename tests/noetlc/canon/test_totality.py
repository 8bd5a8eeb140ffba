"""The canonical form has every key of the language at its place, or `EXPANDED` says what becomes of it.

The tree is made from the classes of `ast.py`, each attribute with a value of its own, so a key that is added to the
language is part of the test without a change here.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator
from functools import cache
from itertools import count
from typing import Any

import pytest

from noetlc.canon.canonicalize import EXPANDED, canonicalize
from noetlc.canon.flow import scalar
from noetlc.syntax import ast, nodes
from noetlc.syntax.lalr import load_grammar
from noetlc.syntax.playbook_parser import OBJECTS
from noetlc.syntax.playbook_printer import print_playbook
from noetlc.syntax.span import Source, Span
from noetlc.syntax.tree import attributes, structs
from noetlvm.record import changed

CLASSES = [cls for cls in vars(ast).values() if isinstance(cls, type) and issubclass(cls, ast.Struct)]
OPEN = {
    OBJECTS[production.name.removesuffix("_field")]
    for production in load_grammar("playbook").productions
    if production.label == "open_field"
} | {ast.Reducers}
SPAN = Span(0, 1)
DEPTH = 5
"""Deep enough for an object of every class; the tree grows threefold with each level."""


class Filled:
    """Makes objects in which every attribute has a value that occurs nowhere else."""

    def __init__(self) -> None:
        self.numbers = count(1)
        self.owners: dict[str, tuple[type[ast.Struct], str]] = {}
        """The class and attribute of each value."""

    def struct(self, cls: type[ast.Struct], depth: int = 0) -> Any:
        hints = typing.get_type_hints(cls)
        values = {name: self.value(cls, name, hints[name], depth + 1) for name in attributes(cls)}
        extra = (nodes.MappingEntry(self.leaf(cls, "extra"), self.leaf(cls, "extra")),) if cls in OPEN else ()
        names = [ast.yaml_key(name) for name, value in values.items() if value is not None]
        keys = dict.fromkeys([*names, *(entry.key.text for entry in extra)], SPAN)
        return cls(span=SPAN, keys=keys, extra=extra, **values)

    def leaf(self, cls: type[ast.Struct], name: str) -> nodes.Scalar:
        number = next(self.numbers)
        value: int | str = 100_000 + number if (cls, name) == (ast.Repeat, "max") else f"value_{number}_"
        self.owners[str(value)] = (cls, name)
        return scalar(SPAN, value)

    def value(self, cls: type[ast.Struct], name: str, hint: Any, depth: int) -> Any:
        options = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
        wanted = next(option for option in options if option is not types.NoneType)
        if typing.get_origin(wanted) is typing.Literal:
            return typing.get_args(wanted)[0]
        if typing.get_origin(wanted) is tuple:
            return self.items(typing.get_args(wanted)[0], depth)
        if wanted is nodes.Scalar:
            return self.leaf(cls, name)
        if wanted is nodes.Mapping:
            return nodes.Mapping(SPAN, (nodes.MappingEntry(self.leaf(cls, name), self.leaf(cls, name)),))
        if wanted is nodes.Sequence:
            return nodes.Sequence(SPAN, (self.leaf(cls, name),))
        return None if depth > DEPTH and wanted is cls else self.struct(wanted, depth)

    def items(self, wanted: Any, depth: int) -> tuple[Any, ...]:
        if wanted is ast.WorkbookTask:
            return (ast.WorkbookTask(name=scalar(SPAN, "shared"), entries=(self.task(depth),)),)
        members = typing.get_args(wanted) or (wanted,)
        if ast.Task not in members:
            return tuple(made for member in members for made in self.alternatives(member, depth))
        return (self.task(depth),) if depth > DEPTH else (*self.entries(members, depth), self.call())

    def alternatives(self, cls: type[ast.Struct], depth: int) -> Iterator[Any]:
        """Yield an object; a rule as two, because one with `else` has nothing else."""
        whole = self.struct(cls, depth)
        if "else_" not in attributes(cls):
            yield whole
            return
        yield changed(whole, else_=None, keys={key: SPAN for key in whole.keys if key != "else"})
        otherwise = self.struct(cls, depth).else_
        if cls is ast.PolicyRule:  # control continues, so that what follows is reachable
            otherwise = changed(otherwise, then=changed(otherwise.then, do=scalar(SPAN, "continue")))
        yield cls(span=SPAN, keys={"else": SPAN}, else_=otherwise)  # type: ignore[call-arg]

    def entries(self, members: tuple[Any, ...], depth: int) -> Iterator[Any]:
        for member in members:
            yield self.task(depth) if member is ast.Task else self.struct(member, depth)
            if member is ast.Repeat:
                yield changed(self.struct(member, depth), word="until")

    def task(self, depth: int) -> ast.Task:
        task: ast.Task = self.struct(ast.Task, depth)
        return task

    def call(self) -> ast.Task:
        inputs = (nodes.MappingEntry(scalar(SPAN, "task"), scalar(SPAN, "shared")),)
        label = scalar(SPAN, f"call_{next(self.numbers)}")
        return ast.Task(span=SPAN, keys={}, extra=inputs, label=label, kind=scalar(SPAN, "workbook"))


@cache
def filled() -> tuple[ast.Playbook, Filled]:
    made = Filled()
    playbook: ast.Playbook = made.struct(ast.Playbook)
    return playbook, made


def texts(struct: ast.Struct) -> Iterator[tuple[type[ast.Struct], str, str]]:
    """Yield every scalar of a tree with the class and attribute that hold it."""
    for holder in structs(struct):
        for name in (*attributes(type(holder)), "extra"):
            for text in _texts(getattr(holder, name)):
                yield type(holder), name, text


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, nodes.Scalar):
        yield value.text
    elif isinstance(value, nodes.MappingEntry):
        yield value.key.text
        yield from _texts(value.value)
    elif isinstance(value, nodes.Sequence | nodes.Mapping | tuple):
        items = (
            value if isinstance(value, tuple) else value.items if isinstance(value, nodes.Sequence) else value.entries
        )
        for item in items:
            yield from _texts(item)


def test_every_attribute_of_every_object_survives_or_is_listed_as_expanded() -> None:
    playbook, made = filled()
    canonical = canonicalize(playbook, Source("filled.yaml", "")).playbook
    at_their_place = {(cls, name) for cls, name, text in texts(canonical) if made.owners.get(text) == (cls, name)}
    every = {(cls, name) for cls, name, text in texts(playbook) if text in made.owners}
    expanded = {(cls, name) for cls, names in EXPANDED.items() for name in names}
    assert {(cls.__name__, name) for cls, name in every - at_their_place - expanded} == set()


def test_no_value_is_lost_on_the_way_to_the_printed_form() -> None:
    playbook, made = filled()
    printed = print_playbook(canonicalize(playbook, Source("filled.yaml", "")).playbook)
    lost = {(cls.__name__, name) for cls, name, text in texts(playbook) if text in made.owners and text not in printed}
    assert lost == set()


def test_the_filled_tree_has_an_object_of_every_class() -> None:
    playbook, _ = filled()
    assert {type(struct) for struct in structs(playbook)} == set(CLASSES) - {ast.Struct}


@pytest.mark.parametrize("cls", EXPANDED, ids=lambda cls: cls.__name__)
def test_what_is_listed_as_expanded_is_gone_and_has_a_reason(cls: type[ast.Struct]) -> None:
    playbook, _ = filled()
    canonical = canonicalize(playbook, Source("filled.yaml", "")).playbook
    left = [struct for struct in structs(canonical) if type(struct) is cls]
    for name, reason in EXPANDED[cls].items():
        assert reason
        assert name in (*attributes(cls), "extra")
        assert not any(getattr(struct, name) for struct in left)


class OwnedStep(ast.Step):
    """A step of a later version of the language, with a key that nothing here knows."""

    owner: nodes.Scalar | None = None


def test_a_key_that_a_step_gains_is_not_dropped() -> None:
    step = OwnedStep(
        span=SPAN, keys={"owner": SPAN, "step": SPAN}, step=scalar(SPAN, "start"), owner=scalar(SPAN, "team-a")
    )
    playbook = ast.Playbook(span=SPAN, keys={"workflow": SPAN}, workflow=(step,))
    assert "owner: team-a" in print_playbook(canonicalize(playbook, Source("owned.yaml", "")).playbook)


def test_a_branch_with_both_then_and_else_keeps_the_labels_of_both_apart() -> None:
    task = ast.Task(span=SPAN, kind=scalar(SPAN, "noop"))
    branch = ast.Branch(span=SPAN, then=(task,), else_=ast.BranchElse(span=SPAN, then=(task,)))
    assert [name for name, _ in ast.named_bodies(ast.Choose(span=SPAN, choose=(branch,)))] == ["when_1", "else"]
