"""Reads a bundle back into a program, or refuses it with one `MalformedBundleError`. `layout` says what is where.

Decoding is canonical: a bundle is read only if encoding the program again would give the same bytes (a newer minor
version and unknown optional sections aside). That is not tried out but made sure of on the way: values and operands in
their shortest form, nothing left over, no key, constant or expression twice, none unused, and all of them in the order
of their first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from noetlvm.bytecode.codec import layout
from noetlvm.bytecode.codec.code_decoder import Pools
from noetlvm.bytecode.codec.container import DEBUG, REQUIRED, sections
from noetlvm.bytecode.codec.debug_section import decode_debug
from noetlvm.bytecode.codec.malformed import MalformedCode
from noetlvm.bytecode.codec.reader import ByteReader
from noetlvm.bytecode.limits import OPERAND_MAX
from noetlvm.bytecode.program import (
    ArcCode,
    KeychainEntry,
    LoopHeader,
    Pipeline,
    PlaybookCode,
    Program,
    Transition,
    Value,
)

if TYPE_CHECKING:
    from noetlvm.bytecode.program import DebugMap

_Head = tuple[str, str, dict[str, Value], dict[str, Value], str, str | None, bool]
"""The fields of a playbook's metadata, in the order of `Playbook`."""


def decode(data: bytes, *, debug: bool = True) -> Program:
    """Read a bundle; raise `MalformedBundleError` if there is anything wrong with it.

    Without `debug` the debug section stays unread: it is most of the work, and nothing runs by it.
    """
    return _Decoder(data).program(debug)


class _Decoder:
    """Reads the sections of one bundle, each after those it refers to."""

    def __init__(self, data: bytes) -> None:
        self.payloads = {section.id: section.payload for section in sections(data)}
        self.reader = ByteReader(data, "container")
        self.pools = Pools(self.reader)

    def program(self, debug: bool) -> Program:
        """Read everything."""
        self._open("constants")
        self.pools.read_constants()
        if self._open("expressions"):
            self.pools.read_expressions()
        pipelines = self.pools.read_pipelines() if self._open("pipelines") else []
        self._open("net")
        nets = self._nets(pipelines)
        self._open("metadata")
        heads = [self._head() for _ in nets]
        keychains = self._keychains(len(nets)) if self._open("keychain") else [()] * len(nets)
        workloads = self._workloads(len(nets)) if self._open("workload") else [{} for _ in nets]
        self.reader.close()
        self.pools.check_all_used()
        parts = zip(heads, workloads, keychains, nets, strict=True)
        program = Program(
            tuple(PlaybookCode(*head, workload, keychain, net) for head, workload, keychain, net in parts)
        )
        return Program(program.playbooks, self._debug(program)) if debug and DEBUG in self.payloads else program

    def _open(self, section: str) -> bool:
        """Go to a section, if the bundle has it; the section before it must have been read to its end."""
        if self.reader.section in self.payloads:
            self.reader.close()
        if section not in self.payloads:
            return False
        start, end = self.payloads[section]
        self.reader.open(section, start, end)
        if start == end and section not in REQUIRED:
            self._fail_empty()
        return True

    def _fail_empty(self) -> NoReturn:
        reader = self.reader
        reader.fail(
            MalformedCode.SECTION_EMPTY,
            f"the section `{reader.section}` is left out where it holds nothing",
            reader.start,
        )

    def _debug(self, program: Program) -> DebugMap:
        self._open(DEBUG)
        debug = decode_debug(self.reader, program)
        self.reader.close()
        return debug

    # -- sections with one value for each playbook

    def _nets(self, pipelines: list[Pipeline]) -> list[tuple[Transition, ...]]:
        """Read the nets. There are as many playbooks."""
        reader = self.reader
        pipelines.reverse()
        nets: list[tuple[Transition, ...]] = []
        while reader.at < reader.end:
            nets.append(tuple([self._step(pipelines) for _ in range(reader.array("the list of steps"))]))
        if not nets:
            reader.fail(MalformedCode.NO_PLAYBOOK, "a bundle holds at least one playbook")
        if pipelines:
            reader.fail(MalformedCode.PIPELINE_COUNT, f"{len(pipelines)} pipelines belong to no step")
        return nets

    def _keychains(self, count: int) -> list[tuple[KeychainEntry, ...]]:
        reader = self.reader
        keychains = [tuple([self._credential() for _ in range(reader.array("a keychain"))]) for _ in range(count)]
        if not any(keychains):
            self._fail_empty()
        return keychains

    def _workloads(self, count: int) -> list[dict[str, Value]]:
        workloads = [self.reader.mapping("a workload") for _ in range(count)]
        if not any(workloads):
            self._fail_empty()
        return workloads

    # -- records

    def _head(self) -> _Head:
        reader = self.reader
        reader.record("a playbook", 7)
        return (
            *self._name_and_path(),
            reader.mapping("the metadata of a playbook"),
            reader.mapping("the executor of a playbook"),
            self.pools.text(*self._number("the entry step")),
            self.pools.optional_text(*self._number("the final step")),
            reader.flag("whether a missing next is an error"),
        )

    def _name_and_path(self) -> tuple[str, str]:
        reader = self.reader
        at = reader.at
        name = None if reader.is_null() else reader.text("the name of a playbook")
        path = reader.text("the path of a playbook")
        usual = layout.usual_name(path)
        if name == usual:
            reader.fail(MalformedCode.PADDED_VALUE, "a name that is the last part of the path is left out", at)
        return usual if name is None else name, path

    def _credential(self) -> KeychainEntry:
        reader = self.reader
        reader.record("a credential", 3)
        return KeychainEntry(
            reader.text("the name of a credential"),
            reader.text("the kind of a credential"),
            reader.mapping("the settings of a credential"),
        )

    def _step(self, pipelines: list[Pipeline]) -> Transition:
        reader = self.reader
        reader.record("a step", 6)
        name = self.pools.text(*self._number("the name of a step"))
        at = reader.at
        bits = reader.number("the bits of a step", layout.STEP_BITS)
        if bits & layout.HAS_PIPELINE and not pipelines:
            reader.fail(MalformedCode.PIPELINE_COUNT, "the step has a pipeline, but there are no more", at)
        return Transition(
            name=name,
            admit=self.pools.optional_expression(*self._number("the admission of a step")),
            drops_denied=bool(bits & layout.DROPS_DENIED),
            loops=tuple([self._loop() for _ in range(reader.array("the loops of a step"))]),
            best_effort=bool(bits & layout.BEST_EFFORT),
            pipeline=pipelines.pop() if bits & layout.HAS_PIPELINE else None,
            inclusive=bool(bits & layout.INCLUSIVE),
            arcs=tuple([self._arc() for _ in range(reader.array("the arcs of a step"))]),
            settings=self.pools.mapping(*self._number("the settings of a step")),
        )

    def _loop(self) -> LoopHeader:
        reader = self.reader
        reader.record("a loop", 6)
        collection = self.pools.expression(*self._number("the collection of a loop"))
        iterator = self.pools.text(*self._number("the iterator of a loop"))
        bits = reader.number("the bits of a loop", layout.LOOP_BITS)
        return LoopHeader(
            collection=collection,
            iterator=iterator,
            parallel=bool(bits & layout.PARALLEL),
            width=self.pools.limit(*self._number("the width of a loop")),
            rate=self.pools.optional_expression(*self._number("the rate of a loop")),
            distributed=bool(bits & layout.DISTRIBUTED),
            reducers=self._reducers(),
        )

    def _reducers(self) -> tuple[tuple[str, str], ...]:
        at = self.reader.at
        count = self.reader.array("the reducers of a loop")
        if count % 2:
            self.reader.fail(MalformedCode.WRONG_LENGTH, "reducers come in pairs of a key and a reducer", at)
        words = [self.pools.text(*self._number("a word of the reducers")) for _ in range(count)]
        return tuple(zip(words[::2], words[1::2], strict=True))

    def _arc(self) -> ArcCode:
        reader = self.reader
        reader.record("an arc", 4)
        target = self.pools.text(*self._number("the target of an arc"))
        bits = reader.number("the bits of an arc", layout.ARC_BITS)
        return ArcCode(
            target=target,
            guard=self.pools.optional_expression(*self._number("the guard of an arc")),
            args=self.pools.optional_expression(*self._number("the arguments of an arc")),
            handles_failure=bool(bits & layout.HANDLES_FAILURE),
        )

    def _number(self, what: str) -> tuple[int, int]:
        """Read the number of something in a pool; return it and where it is written."""
        at = self.reader.at
        return self.reader.number(what, OPERAND_MAX), at
