"""Playbooks to a program: their nets, their settings, and the debug map."""

from __future__ import annotations

from collections.abc import Sequence

from noetlc.codegen.net import CodeSource, SourceMap, entries_data, lower_step, struct_data
from noetlc.syntax import ast, nodes
from noetlc.syntax.span import Source
from noetlvm.bytecode.addresses import addresses
from noetlvm.bytecode.program import DebugEntry, DebugMap, KeychainEntry, Mark, PlaybookCode, Program, Value
from noetlvm.record import Record, changed

FIRST_STEP = "start"
"""The default entry step, if a step has this name (S4)."""


class Unit(Record):
    """A playbook in canonical form, and the file it was written in."""

    playbook: ast.Playbook
    source: Source
    file: str
    """The name of the file in the debug map."""
    constructs: dict[str, str]
    """The construct behind a generated label, by `step/label`."""

    @property
    def path(self) -> str:
        metadata = self.playbook.metadata
        return metadata.path.text if metadata and metadata.path else ""


class LoweredPlaybook(Record):
    """A playbook's code and its sources."""

    unit: Unit
    playbook: PlaybookCode
    sources: dict[str, CodeSource]
    """By the address of the code within the playbook."""


def lower_playbook(unit: Unit) -> LoweredPlaybook:
    """Return the code of one playbook. Raises LoweringError."""
    playbook = unit.playbook
    sources = SourceMap(unit.source.text, unit.constructs)
    metadata, executor = playbook.metadata, playbook.executor
    spec = executor.spec if executor else None
    steps = playbook.workflow or ()
    lowered = PlaybookCode(
        name=_text(metadata.name if metadata else None),
        path=unit.path,
        metadata=entries_data(metadata.extra) if metadata else {},
        executor=_executor(executor),
        entry_step=_entry(spec, steps),
        final_step=spec.final_step.text if spec and spec.final_step else None,
        no_next_is_error=bool(spec and spec.no_next_is_error and spec.no_next_is_error.value is True),
        workload=entries_data(playbook.workload.entries) if playbook.workload else {},
        keychain=tuple(_credential(credential) for credential in playbook.keychain or ()),
        steps=tuple(lower_step(step, _text(step.step), sources) for step in steps),
    )
    return LoweredPlaybook(unit, lowered, sources.by_address)


def link(lowered: Sequence[LoweredPlaybook]) -> Program:
    """Link playbooks into one program; the first is the main one, the others are sorted by path."""
    ordered = [lowered[0], *sorted(lowered[1:], key=lambda one: one.playbook.path)]
    program = Program(tuple(one.playbook for one in ordered))
    return changed(program, debug=_debug(program, ordered))


def _text(scalar: nodes.Scalar | None) -> str:
    return scalar.text if scalar else ""


def _executor(executor: ast.Executor | None) -> dict[str, Value]:
    found = struct_data(executor, "spec")
    compiled = ("entry_step", "final_step", "no_next_is_error", "unguarded_arcs")
    settings = struct_data(executor.spec if executor else None, *compiled)
    return found | {"spec": settings} if settings else found


def _entry(spec: ast.ExecutorSpec | None, steps: tuple[ast.Step, ...]) -> str:
    if spec and spec.entry_step:
        return spec.entry_step.text
    names = [_text(step.step) for step in steps]
    return FIRST_STEP if FIRST_STEP in names else names[0]


def _credential(credential: ast.Credential) -> KeychainEntry:
    return KeychainEntry(_text(credential.name), _text(credential.kind), entries_data(credential.extra))


class _Marks(dict[int, Mark]):
    """The marks of one file by offset, made on first use: many instructions share an offset."""

    def __init__(self, file: int, source: Source) -> None:
        super().__init__()
        self._file = file
        self._source = source

    def __missing__(self, offset: int) -> Mark:
        mark = self[offset] = Mark(self._file, *self._source.position(offset))
        return mark


def _debug(program: Program, lowered: Sequence[LoweredPlaybook]) -> DebugMap:
    sources: dict[str, tuple[CodeSource, _Marks]] = {}
    for index, one in enumerate(lowered):
        marks = _Marks(index, one.unit.source)
        prefix = f"{one.playbook.path}#" if index else ""
        sources.update((prefix + address, (source, marks)) for address, source in one.sources.items())
    entries = []
    for address in addresses(program):
        source, marks = sources[address.name]
        entries.append(DebugEntry(address.name, source.construct, tuple(map(marks.__getitem__, source.offsets))))
    return DebugMap(tuple(one.unit.file for one in lowered), tuple(entries))
