"""Playbooks to a program: the nets, what surrounds them, and the debug map over all of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from noetlc.codegen.net import Place, Written, lower_step
from noetlc.codegen.plain_data import entries_data, struct_data
from noetlc.syntax import ast, nodes
from noetlc.syntax.span import Source
from noetlvm.bytecode.addresses import addresses
from noetlvm.bytecode.program import Credential, DebugEntry, DebugMap, Mark, Playbook, Program, Value

FIRST_STEP = "start"
"""The step that gets the first token where the playbook does not say and a step has this name (S4)."""


@dataclass(frozen=True, slots=True)
class Unit:
    """A playbook in canonical form, and the file it was written in."""

    playbook: ast.Playbook
    source: Source
    file: str
    """What the debug map calls the file."""
    constructs: dict[str, str]
    """What the author wrote for a generated label, by `step/label`."""

    @property
    def path(self) -> str:
        metadata = self.playbook.metadata
        return metadata.path.text if metadata and metadata.path else ""


def lower_program(units: Sequence[Unit]) -> Program:
    """Return the program of several playbooks; the first is the main one. Raises CannotLower for what has no code."""
    ordered = [units[0], *sorted(units[1:], key=lambda unit: unit.path)]
    written = [Written(unit.source.text, unit.constructs) for unit in ordered]
    prefixes = ["", *(f"{unit.path}#" for unit in ordered[1:])]
    playbooks = tuple(_playbook(*parts) for parts in zip(ordered, prefixes, written, strict=True))
    return replace(program := Program(playbooks), debug=_debug(program, ordered, written))


def _playbook(unit: Unit, prefix: str, written: Written) -> Playbook:
    playbook = unit.playbook
    metadata, executor = playbook.metadata, playbook.executor
    spec = executor.spec if executor else None
    steps = playbook.workflow or ()
    return Playbook(
        name=_text(metadata.name if metadata else None),
        path=unit.path,
        metadata=entries_data(metadata.extra) if metadata else {},
        executor=_executor(executor),
        entry_step=_entry(spec, steps),
        final_step=spec.final_step.text if spec and spec.final_step else None,
        no_next_is_error=bool(spec and spec.no_next_is_error and spec.no_next_is_error.value is True),
        workload=entries_data(playbook.workload.entries) if playbook.workload else {},
        keychain=tuple(_credential(credential) for credential in playbook.keychain or ()),
        steps=tuple(lower_step(step, prefix + _text(step.step), written) for step in steps),
    )


def _text(scalar: nodes.Scalar | None) -> str:
    return scalar.text if scalar else ""


def _executor(executor: ast.Executor | None) -> dict[str, Value]:
    found = struct_data(executor, "spec")
    settings = struct_data(executor.spec if executor else None, "entry_step", "final_step", "no_next_is_error")
    return found | {"spec": settings} if settings else found


def _entry(spec: ast.ExecutorSpec | None, steps: tuple[ast.Step, ...]) -> str:
    if spec and spec.entry_step:
        return spec.entry_step.text
    names = [_text(step.step) for step in steps]
    return FIRST_STEP if FIRST_STEP in names else names[0]


def _credential(credential: ast.Credential) -> Credential:
    return Credential(_text(credential.name), _text(credential.kind), entries_data(credential.extra))


class _Marks:
    """Turns the offsets of one file into marks; code has many instructions at one place."""

    def __init__(self, file: int, source: Source) -> None:
        self._file = file
        self._source = source
        self._known: dict[int, Mark] = {}

    def of(self, offset: int) -> Mark:
        if offset not in self._known:
            self._known[offset] = Mark(self._file, *self._source.position(offset))
        return self._known[offset]


def _debug(program: Program, units: Sequence[Unit], written: Sequence[Written]) -> DebugMap:
    places: dict[str, tuple[Place, _Marks]] = {}
    for index, (unit, text) in enumerate(zip(units, written, strict=True)):
        marks = _Marks(index, unit.source)
        places.update((address, (place, marks)) for address, place in text.places.items())
    entries = []
    for address in addresses(program):
        place, marks = places[address.name]
        entries.append(DebugEntry(address.name, place.construct, tuple(marks.of(at) for at in place.offsets)))
    return DebugMap(tuple(unit.file for unit in units), tuple(entries))
