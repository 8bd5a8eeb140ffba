"""How much work a hostile bundle can make: never more than an honest one of its size.

Work is counted in calls, which no other process can change; where it is hidden inside one call, times are compared.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import process_time

import pytest

from noetlvm.bytecode.codec.decoder import decode
from noetlvm.bytecode.codec.encoder import encode
from noetlvm.bytecode.isa import EXPRESSION
from noetlvm.bytecode.program import (
    ExpressionCode,
    Instruction,
    InvalidBundleError,
    LoopHeader,
    MalformedBundleError,
    PlaybookCode,
    Program,
    Transition,
)
from noetlvm.bytecode.verify.expressions import prove
from noetlvm.bytecode.verify.verifier import load
from noetlvm.language.names import NAME_CHARS_MAX
from noetlvm.record import changed
from tests.noetlvm.bytecode.malformed import hostile_cases
from tests.noetlvm.bytecode.malformed.pieces import Case
from tests.noetlvm.bytecode.programs import EMPTY, chain, minimal, pipeline, playbook, program, step

STEPS = 1_000
LONG = 1_000_000
"""Letters of a long text: half of what a bundle allows."""


def calls(work: Callable[[], object]) -> int:
    """Return how many functions this calls, those written in C included."""
    count = 0

    def called(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(called)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def refused(data: bytes) -> None:
    with pytest.raises(MalformedBundleError):
        decode(data)


@pytest.fixture(scope="module")
def honest_calls_a_byte() -> float:
    """Reading and verifying a playbook of many steps."""
    data = encode(chain(50))
    return calls(lambda: load(data)) / len(data)


@pytest.mark.parametrize("case", hostile_cases.CASES.values(), ids=hostile_cases.CASES.keys())
def test_a_hostile_bundle_takes_fewer_calls_a_byte_than_an_honest_one(case: Case, honest_calls_a_byte: float) -> None:
    data = case.bytes()
    assert calls(lambda: refused(data)) < honest_calls_a_byte * max(len(data), len(encode(minimal())))


def test_code_that_is_too_much_is_refused_before_instructions_are_made_of_it() -> None:
    data = hostile_cases.CASES["half a million different jumps"].bytes()
    assert calls(lambda: refused(data)) < 1_000


# ---- expressions


def instructions(*rows: tuple[object, ...]) -> list[Instruction]:
    return [Instruction(EXPRESSION[str(name)], operands) for name, *rest in rows for operands in [tuple(rest)]]


def joins(count: int, at: int) -> list[Instruction]:
    """Return branches that meet at once, from instruction `at` on."""
    return [made for n in range(count) for made in instructions(("NAME", "ctx"), ("JUMP_IF", at + 2 * n + 2))]


def test_many_lists_on_the_stack_make_the_way_through_code_little_longer() -> None:
    def work(lists: int) -> int:
        opening = instructions(("LIST", 0), ("CONST", 1), ("APPEND",), *[("LIST", 0)] * lists)
        code = (*opening, *joins(500, len(opening)), *instructions(("LIST", lists + 1), ("RETURN",)))
        return calls(lambda: prove(ExpressionCode(code), {}))

    assert work(200) < 3 * work(0)


# ---- one long text in many places


def of_steps(*, path: str = "b", **changes: object) -> Program:
    """Return a program with a second playbook of many steps, each with these changes."""
    steps = (changed(step(f"s{number}"), **changes) for number in range(STEPS))  # type: ignore[arg-type]
    return program(minimal().playbooks[0], changed(_named("b"), path=path, steps=tuple(steps), entry_step="s0"))


def _named(name: str) -> PlaybookCode:
    return playbook(step("start"), name=name, path=name)


def with_path(text: str) -> Program:
    return of_steps(path=text)


def with_label(text: str) -> Program:
    return of_steps(pipeline=pipeline(("ENTER", text), ("CALL", "noop", EMPTY, EMPTY), "BREAK"))


def with_iterator(text: str) -> Program:
    return of_steps(loops=(LoopHeader(EMPTY, text, False, 1, False, ()),))


def with_reducers(text: str) -> Program:
    reducers = ((f"{text}a", "sum"), (f"{text}b", "sum"))
    return of_steps(loops=(LoopHeader(EMPTY, "item", False, 1, False, reducers),))


def seconds(data: bytes) -> float:
    """Return the time to load this, at its best."""
    times = []
    for _ in range(3):
        began = process_time()
        load(data)
        times.append(process_time() - began)
    return min(times)


@pytest.mark.parametrize(
    ("make", "length"),
    [(with_path, NAME_CHARS_MAX), (with_label, NAME_CHARS_MAX), (with_iterator, NAME_CHARS_MAX), (with_reducers, LONG)],
)
def test_a_long_text_in_many_places_is_looked_at_once(make: Callable[[str], Program], length: int) -> None:
    assert seconds(encode(make("a" * length))) < 10 * seconds(encode(make("a")))


def test_a_step_name_of_many_steps_is_looked_at_once() -> None:
    def refusal(name: str) -> float:
        steps: tuple[Transition, ...] = (step(name),) * STEPS
        data = encode(program(changed(_named("p"), steps=steps, entry_step=name)))
        began = process_time()
        with pytest.raises(InvalidBundleError, match="V075"):
            load(data)
        return process_time() - began

    assert min(refusal("a" * NAME_CHARS_MAX) for _ in range(3)) < 10 * min(refusal("a") for _ in range(3))
