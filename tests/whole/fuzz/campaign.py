"""Runs the fuzzer: makes cases, loads them, evaluates what is accepted, and keeps what must not be.

A case is a number; the same number gives the same case.
"""

from __future__ import annotations

import traceback
from collections import Counter
from dataclasses import dataclass, field
from random import Random

from noetlvm.bytecode.codec.container import SECTIONS, sections
from noetlvm.bytecode.codec.encoder import encode
from noetlvm.bytecode.codec.writer import EncodingError
from noetlvm.bytecode.program import BundleError, ExpressionCode, Program
from noetlvm.bytecode.verify.verifier import load
from noetlvm.expr.errors import ExpressionError, Fuel
from noetlvm.expr.interpret import compile_expression
from noetlvm.record import changed
from tests.noetlvm.bytecode.malformed.pieces import HEADER, unsealed
from tests.whole.fuzz.mutations import changed_bytes, changed_program, changed_sections
from tests.whole.fuzz.parts import expressions
from tests.whole.fuzz.seeds import generated, seeds
from tests.whole.oracle.generator import CONTEXT

STEPS, BYTES = 5_000, 1 << 18

SCOPES: tuple[dict[str, object], ...] = (
    CONTEXT,
    {},
    dict.fromkeys(CONTEXT),
    {name: [[1, "a"], {"a": [None]}] for name in CONTEXT if name != "steps"},
    {name: {"a": {"id": 1, "rows": [1, 2.5, "x"]}, "items": "abc"} for name in CONTEXT if name != "steps"},
)


@dataclass
class Findings:
    """What a run saw."""

    counts: Counter[str] = field(default_factory=Counter)
    """Cases by how they ended, and the refused ones by code."""
    defects: list[str] = field(default_factory=list)


def run(count: int, seed: int) -> Findings:
    """Run cases `seed * 2**32` and following."""
    findings = Findings()
    bases = seeds()
    bundles = [unsealed(encode(program)) for program in bases]  # a checksum would refuse every change
    for number in range(count):
        case = (seed << 32) + number
        try:
            _one(Random(case), bases, bundles, findings.counts)
        except Exception:  # whatever it is, it is what this looks for
            findings.defects.append(f"case {case}\n{traceback.format_exc()}")
    return findings


def _one(random: Random, bases: list[Program], bundles: list[bytes], counts: Counter[str]) -> None:
    try:
        data = _bundle(random, bases, bundles)
    except EncodingError:
        counts["cannot be written"] += 1
        return
    try:
        program = load(data)
    except BundleError as error:
        counts["refused"] += 1
        counts[error.code] += 1
        return
    counts["accepted"] += 1
    before = (encode(program), repr(SCOPES))
    if unsealed(before[0]) != unsealed(data) and _is_of_this_version(data):
        raise AssertionError("what was accepted is not written back as it was")
    for expression in expressions(program):
        _evaluate(random, expression, counts)
    if (encode(program), repr(SCOPES)) != before:
        raise AssertionError("an expression changed a constant or its scope")


def _is_of_this_version(data: bytes) -> bool:
    """Return whether a bundle has nothing that only a later minor version writes; such things are read over."""
    return unsealed(data).startswith(HEADER) and all(section.id in SECTIONS for section in sections(data))


def _bundle(random: Random, bases: list[Program], bundles: list[bytes]) -> bytes:
    chance = random.random()
    if chance < 0.2:
        return changed_bytes(random, random.choice(bundles), random.choice(bundles))
    if chance < 0.25:
        return changed_sections(random, random.choice(bundles), random.choice(bundles))
    base = generated(random) if chance < 0.5 else random.choice(bases)
    # With its map, most changes would be refused for a mark too many.
    return encode(changed_program(random, base if random.random() < 0.1 else changed(base, debug=None)))


def _evaluate(random: Random, expression: ExpressionCode, counts: Counter[str]) -> None:
    """Run an expression in checked mode and translated; both must end alike, and only in ways that are foreseen."""
    scope = random.choice(SCOPES)
    checked = _outcome(expression, scope, checked=True)
    translated = _outcome(expression, scope, checked=False)
    counts["evaluated"] += 1
    if checked != translated:
        raise AssertionError(f"checked {checked}, translated {translated}")


def _outcome(expression: ExpressionCode, scope: dict[str, object], *, checked: bool) -> str:
    try:
        return repr(compile_expression(expression, checked=checked)(scope, Fuel(STEPS, BYTES)))
    except ExpressionError as error:
        return f"error {error.kind}"
