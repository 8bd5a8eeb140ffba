"""Proves the net of each playbook: names, arcs, loops, credentials, and the debug map. Code is proven elsewhere."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import TypeAlias

from noetlvm.bytecode.isa import REDUCERS
from noetlvm.bytecode.limits import LOOPS_MAX
from noetlvm.bytecode.program import DebugEntry, DebugMap, LoopHeader, PlaybookCode, Program, Transition, addresses
from noetlvm.bytecode.verify.operands import CheckError
from noetlvm.language.names import ONE_LINE, STEP_NAME, VARIABLE, WORD
from noetlvm.language.scopes import given_fields

_GIVEN = given_fields("iter")

Reducers: TypeAlias = tuple[tuple[str, str], ...]
"""As a loop has them: keys of ctx, and what combines them."""


def check_playbooks(playbooks: tuple[PlaybookCode, ...]) -> None:
    """Refuse playbooks that cannot live in one bundle. Offsets count playbooks."""
    if not playbooks:
        raise CheckError("V070", 0, "the first playbook of a bundle is the one that it runs")
    for index, playbook in enumerate(playbooks):
        if not ONE_LINE.match(playbook.name) or not ONE_LINE.match(playbook.path):
            raise CheckError("V072", index, f"name {playbook.name!r}, path {playbook.path!r}")
    paths = [playbook.path for playbook in playbooks]
    repeated = first_repeated(paths)
    if repeated is not None:
        raise CheckError("V073", repeated, f"`{paths[repeated]}`")
    for index in range(2, len(paths)):
        if paths[index] < paths[index - 1]:
            raise CheckError("V074", index, f"`{paths[index]}` after `{paths[index - 1]}`")


def check_steps(playbook: PlaybookCode) -> frozenset[str]:
    """Refuse steps with duplicate or missing names; return their names. Offsets count steps."""
    names = [step.name for step in playbook.steps]
    if not names:
        raise CheckError("V071", 0, "at least the entry step is needed")
    plain = Plain(STEP_NAME)
    for index, name in enumerate(names):
        if not plain.holds(name):
            raise CheckError("V076", index, f"`{name}`")
    repeated = first_repeated(names)
    if repeated is not None:
        raise CheckError("V075", repeated, f"`{names[repeated]}`")
    if playbook.entry_step not in names:
        raise CheckError("V077", 0, f"`{playbook.entry_step}`")
    if playbook.final_step is not None and playbook.final_step not in names:
        raise CheckError("V078", 0, f"`{playbook.final_step}`")
    return frozenset(names)


class StepChecks:
    """Checks steps, remembering what is in order: many loops may share an iterator's name or a list of reducers."""

    def __init__(self) -> None:
        self._iterators = Plain(VARIABLE)
        self._reducers: set[Reducers] = set()

    def check(self, step: Transition, index: int, names: Collection[str]) -> None:
        """Refuse a step with a loop that cannot run or an arc to nowhere; `index` is where the step stands."""
        for number, arc in enumerate(step.arcs, 1):
            if arc.target not in names:
                raise CheckError("V079", index, f"`{arc.target}`", f"arc.{number}")
        if len(step.loops) > LOOPS_MAX:
            raise CheckError("V087", index, f"{len(step.loops)} levels, at most {LOOPS_MAX} may be")
        iterators: set[str] = set()
        for level, loop in enumerate(step.loops, 1):
            self._check_loop(loop, index, f"loop.{level}")
            if loop.iterator in iterators:
                raise CheckError("V084", index, f"`{loop.iterator}`", f"loop.{level}")
            iterators.add(loop.iterator)

    def _check_loop(self, loop: LoopHeader, index: int, part: str) -> None:
        if loop.width == 0:
            raise CheckError("V081", index, "its width is 0", part)
        if loop.width != 1 and not loop.parallel:
            width = loop.width if isinstance(loop.width, int) else "an expression"
            raise CheckError("V082", index, f"its width is {width}", part)
        if not self._iterators.holds(loop.iterator) or loop.iterator in _GIVEN:
            raise CheckError("V083", index, f"`{loop.iterator}`", part)
        if loop.reducers not in self._reducers:
            _check_reducers(loop.reducers, index, part)
            self._reducers.add(loop.reducers)


def _check_reducers(reducers: Reducers, index: int, part: str) -> None:
    previous: str | None = None
    for key, reducer in reducers:
        if reducer not in REDUCERS:
            raise CheckError("V085", index, f"`{reducer}` of `{key}`; there are {', '.join(REDUCERS)}", part)
        if previous is not None and key <= previous:
            raise CheckError("V086", index, f"`{key}` after `{previous}`", part)
        previous = key


def check_keychain(playbook: PlaybookCode) -> None:
    """Refuse credentials with duplicate or invalid names. Offsets count credentials."""
    names = [credential.name for credential in playbook.keychain]
    for index, credential in enumerate(playbook.keychain):
        if not WORD.match(credential.name):
            raise CheckError("V089", index, f"`{credential.name}`")
        if not ONE_LINE.match(credential.kind):
            raise CheckError("V090", index, f"`{credential.name}`")
    repeated = first_repeated(names)
    if repeated is not None:
        raise CheckError("V088", repeated, f"`{names[repeated]}`")


class Plain:
    """Names that were found to be plain in one verification, so that a long name is checked once."""

    __slots__ = ("_shape", "_texts")

    def __init__(self, shape: re.Pattern[str]) -> None:
        self._shape = shape
        self._texts: set[str] = set()

    def holds(self, text: str) -> bool:
        """Return whether the text has the shape."""
        if text in self._texts:
            return True
        if not self._shape.match(text):
            return False
        self._texts.add(text)
        return True


def first_repeated(names: Iterable[str]) -> int | None:
    """Return the index of the first duplicate name."""
    seen: set[str] = set()
    for index, name in enumerate(names):
        if name in seen:
            return index
        seen.add(name)
    return None


def check_debug(program: Program, debug: DebugMap) -> None:
    """Refuse a debug map that does not belong to the program. Offsets count entries, those of files count files."""
    files = debug.files
    repeated = first_repeated(files)
    if repeated is not None:
        raise CheckError("V106", repeated, f"`{files[repeated]}`")
    count = 0
    for index, address in enumerate(addresses(program)):
        count += 1
        if index >= len(debug.entries):
            raise CheckError("V100", index, f"`{address.name}`")
        entry = debug.entries[index]
        if entry.address != address.name:
            raise CheckError("V102", index, f"`{entry.address}` instead of `{address.name}`")
        if len(entry.marks) != address.marks:
            raise CheckError("V103", index, f"`{entry.address}` has {len(entry.marks)}, not {address.marks}")
        _check_marks(entry, index, len(files))
    if len(debug.entries) > count:
        raise CheckError("V101", count, f"`{debug.entries[count].address}`")


def _check_marks(entry: DebugEntry, index: int, files: int) -> None:
    for mark in entry.marks:
        if not 0 <= mark.file < files:
            raise CheckError("V104", index, f"file {mark.file} of {files}, at `{entry.address}`")
        if mark.line < 1 or mark.column < 1:
            raise CheckError("V105", index, f"{mark.line}:{mark.column}, at `{entry.address}`")
