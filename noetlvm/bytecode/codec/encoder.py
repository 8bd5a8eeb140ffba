"""Writes a program as a bundle: the same program, the same bytes. `layout` defines what goes where.

Each constant and each expression is in a pool once, numbered in the order in which the decoder meets it first:
expressions by the pipelines, then the net; constants by the expressions, then the pipelines, the net and the metadata.
Whether a program makes sense is for the verifier to check.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from noetlvm.bytecode.codec import layout, writer
from noetlvm.bytecode.codec.container import DEBUG, REQUIRED, frame
from noetlvm.bytecode.codec.debug_section import encode_debug
from noetlvm.bytecode.codec.writer import EncodingError
from noetlvm.bytecode.isa import BACKOFFS, COMPARISONS, NAMES, Operand
from noetlvm.bytecode.limits import BUNDLE_BYTES_MAX, CODE_BYTES_MAX, LIMIT_MAX, OPERAND_MAX, SLOTS_MAX
from noetlvm.bytecode.program import (
    ArcCode,
    ExpressionCode,
    Instruction,
    KeychainEntry,
    LoopHeader,
    PlaybookCode,
    Program,
    Transition,
    usual_name,
)


def encode(program: Program, *, debug: bool = True) -> bytes:
    """Write a program, with its debug map if it has one and `debug` is set; raise `EncodingError`."""
    if not program.playbooks:
        raise EncodingError("a program has at least one playbook")
    data = frame((id, payload) for id, payload in _payloads(program, debug) if payload or id in REQUIRED)
    if len(data) > BUNDLE_BYTES_MAX:
        raise EncodingError(f"a bundle has at most {BUNDLE_BYTES_MAX} bytes, and this one would have {len(data)}")
    return data


def _payloads(program: Program, debug: bool) -> Iterator[tuple[str, bytes]]:
    playbooks = program.playbooks
    steps = [step for playbook in playbooks for step in playbook.steps]
    pools = _Pools()
    for expression in _expressions(steps):
        pools.expression(expression)
    codes = [pools.code(step.pipeline.counters, step.pipeline.code) for step in steps if step.pipeline]
    net = b"".join(writer.array([_step(step, pools) for step in playbook.steps]) for playbook in playbooks)
    yield "metadata", b"".join([_metadata(playbook, pools) for playbook in playbooks])
    yield "constants", b"".join(pools.constants)
    yield "expressions", b"".join(map(writer.binary, pools.expressions))
    yield "net", net
    yield "pipelines", b"".join(map(writer.binary, codes))
    if any(playbook.keychain for playbook in playbooks):
        yield "keychain", b"".join(writer.array([_credential(c) for c in p.keychain]) for p in playbooks)
    if any(playbook.workload for playbook in playbooks):
        yield "workload", b"".join(writer.value(playbook.workload) for playbook in playbooks)
    if debug and program.debug is not None:
        yield DEBUG, encode_debug(program, program.debug)


def _expressions(steps: list[Transition]) -> Iterator[ExpressionCode]:
    """Yield every expression in the order of its number, and again where it is used again."""
    for step in steps:
        for instruction in step.pipeline.code if step.pipeline else ():
            yield from (operand for operand in instruction.operands if isinstance(operand, ExpressionCode))
    for step in steps:
        used: list[object] = [step.admit]
        for loop in step.loops:
            used += (loop.collection, loop.width, loop.rate)
        for arc in step.arcs:
            used += (arc.guard, arc.args)
        yield from (found for found in used if isinstance(found, ExpressionCode))


# -- records


def _metadata(playbook: PlaybookCode, pools: _Pools) -> bytes:
    path = writer.checked_text(playbook.path)
    return writer.array(
        [
            writer.value(None) if playbook.name == usual_name(path) else writer.text(playbook.name),
            writer.text(path),
            writer.value(playbook.metadata),
            writer.value(playbook.executor),
            writer.number(pools.text(playbook.entry_step)),
            writer.number(0 if playbook.final_step is None else 1 + pools.text(playbook.final_step)),
            writer.value(bool(playbook.no_next_is_error)),
        ]
    )


def _credential(credential: KeychainEntry) -> bytes:
    return writer.array([writer.text(credential.name), writer.text(credential.kind), writer.value(credential.settings)])


def _step(step: Transition, pools: _Pools) -> bytes:
    bits = (
        layout.DROPS_DENIED * step.drops_denied
        | layout.BEST_EFFORT * step.best_effort
        | layout.INCLUSIVE * step.inclusive
        | layout.HAS_PIPELINE * (step.pipeline is not None)
    )
    return writer.array(
        [
            writer.number(pools.text(step.name)),
            writer.number(bits),
            writer.number(pools.optional(step.admit)),
            writer.array([_loop(loop, pools) for loop in step.loops]),
            writer.array([_arc(arc, pools) for arc in step.arcs]),
            writer.number(pools.constant(step.settings)),
        ]
    )


def _loop(loop: LoopHeader, pools: _Pools) -> bytes:
    return writer.array(
        [
            writer.number(pools.expression(loop.collection)),
            writer.number(pools.text(loop.iterator)),
            writer.number(layout.PARALLEL * loop.parallel | layout.DISTRIBUTED * loop.distributed),
            writer.number(pools.limit(loop.width)),
            writer.number(pools.optional(loop.rate)),
            writer.array([writer.number(pools.text(word)) for pair in loop.reducers for word in pair]),
        ]
    )


def _arc(arc: ArcCode, pools: _Pools) -> bytes:
    return writer.array(
        [
            writer.number(pools.text(arc.target)),
            writer.number(layout.HANDLES_FAILURE * arc.handles_failure),
            writer.number(pools.optional(arc.guard)),
            writer.number(pools.optional(arc.args)),
        ]
    )


# -- pools and code


class _Pools:
    """The constants and expressions seen so far, each with its number."""

    def __init__(self) -> None:
        # By their bytes: 1, 1.0 and true are equal in Python and three constants here.
        self.constants: dict[bytes, int] = {}
        self.expressions: dict[bytes, int] = {}
        self._texts: dict[str, int] = {}
        # By `id`, which is unique while the program is alive; saves writing shared code again.
        self._numbers: dict[int, int] = {}

    def constant(self, value: object) -> int:
        return self.constants.setdefault(writer.value(value), len(self.constants))

    def text(self, value: object) -> int:
        text = writer.checked_text(value)
        number = self._texts.get(text)
        if number is None:
            number = self._texts[text] = self.constant(text)
        return number

    def words(self, value: object) -> int:
        if type(value) is not list or not all(type(word) is str for word in value):
            raise EncodingError(f"a list of texts is expected, not {value!r:.80}")
        return self.constant(value)

    def expression(self, value: object) -> int:
        number = self._numbers.get(id(value))
        if number is None:
            if not isinstance(value, ExpressionCode):
                raise EncodingError(f"an expression is expected, not {value!r:.80}")
            code = self.code(value.slots, value.code)
            number = self._numbers[id(value)] = self.expressions.setdefault(code, len(self.expressions))
        return number

    def optional(self, value: object) -> int:
        return 0 if value is None else 1 + self.expression(value)

    def limit(self, value: object) -> int:
        if isinstance(value, ExpressionCode):
            return 2 * self.expression(value) + 1
        return 2 * _number(value, LIMIT_MAX)

    def code(self, slots: int, code: tuple[Instruction, ...]) -> bytes:
        if slots > SLOTS_MAX:
            raise EncodingError(f"code has at most {SLOTS_MAX} slots, not {slots}")
        result = bytearray()
        writer.varint(result, _number(slots))
        for instruction in code:
            opcode, operands = instruction.opcode, instruction.operands
            if len(opcode.operands) != len(operands):
                raise EncodingError(f"{opcode.name} has {len(opcode.operands)} operands, not {len(operands)}")
            result.append(opcode.number)
            for kind, operand in zip(opcode.operands, operands, strict=True):
                writer.varint(result, _OPERANDS[kind](self, operand))
        if len(result) > CODE_BYTES_MAX:
            raise EncodingError(f"code has at most {CODE_BYTES_MAX} bytes, and this has {len(result)}")
        return bytes(result)


def _number(value: object, greatest: int = OPERAND_MAX) -> int:
    if type(value) is not int or not 0 <= value <= greatest:
        raise EncodingError(f"a number from 0 to {greatest} is expected, not {value!r:.80}")
    return value


def _place_in(words: tuple[str, ...]) -> Callable[[_Pools, object], int]:
    def place(_pools: _Pools, value: object) -> int:
        if value not in words:
            raise EncodingError(f"one of {', '.join(words)} is expected, not {value!r:.80}")
        return words.index(str(value))

    return place


_OPERANDS: Final[dict[Operand, Callable[[_Pools, object], int]]] = {
    Operand.CONST: _Pools.constant,
    Operand.WORDS: _Pools.words,
    Operand.EXPR: _Pools.expression,
    Operand.OPTIONAL_EXPR: _Pools.optional,
    Operand.LIMIT: _Pools.limit,
    Operand.NAME: _place_in(NAMES),
    Operand.COMPARISON: _place_in(COMPARISONS),
    Operand.BACKOFF: _place_in(BACKOFFS),
    Operand.SPREAD: lambda _pools, value: _number(value, layout.SPREAD_BITS),
    **dict.fromkeys((Operand.TEXT, Operand.FILTER, Operand.TEST, Operand.FUNCTION, Operand.METHOD), _Pools.text),
    **dict.fromkeys((Operand.TARGET, Operand.COUNT, Operand.SLOT), lambda _pools, value: _number(value)),
}
"""How an operand becomes a number."""
