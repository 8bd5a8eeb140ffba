"""Encoding and decoding: nothing is lost, equal programs have equal bytes, and limits hold on both sides."""

from __future__ import annotations

import json
import math
import os
import random
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgpack  # type: ignore[import-untyped]  # it ships no types
import pytest
from hypothesis import given, settings

from noetlvm.bytecode import limits
from noetlvm.bytecode.codec import writer
from noetlvm.bytecode.codec.container import HEADER, SECTIONS, bundle_id, sections
from noetlvm.bytecode.codec.decoder import Pools, decode
from noetlvm.bytecode.codec.encoder import encode
from noetlvm.bytecode.codec.reader import ByteReader
from noetlvm.bytecode.codec.writer import EncodingError
from noetlvm.bytecode.isa import BACKOFFS, COMPARISONS, EXPRESSION, ISA_VERSION, NAMES, OPCODES, Operand
from noetlvm.bytecode.program import (
    ExpressionCode,
    Instruction,
    MalformedBundleError,
    Mark,
    Pipeline,
    Program,
    Transition,
    Value,
    addresses,
)
from noetlvm.record import changed
from tests.noetlvm.bytecode.malformed.pieces import unsealed
from tests.noetlvm.bytecode.programs import (
    SAMPLES,
    arc,
    chain,
    constant,
    every_opcode,
    expression,
    minimal,
    pipeline,
    playbook,
    program,
    programs,
    step,
    two_steps,
    values,
    with_debug,
)

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[3]


def of_value(value: Value) -> Program:
    """A program that holds a constant."""
    return program(playbook(step("start", arc("start", None, constant(value)))))


def test_instructions_of_a_version_are_never_encoded_in_another_way() -> None:
    rows = [(row.number, row.name, row.area.value, [kind.value for kind in row.operands]) for row in OPCODES]
    encoding = json.dumps([rows, NAMES, COMPARISONS, BACKOFFS], separators=(",", ":"))
    digest = sha256(encoding.encode()).hexdigest()[:16]
    remedy = "raise ISA_VERSION: a reader of the version before would misread a bundle"
    assert {ISA_VERSION: digest} == {3: "c36ceaec67d021b0"}, remedy


def of_step(**flags: Any) -> Program:
    return program(playbook(changed(step("start"), **flags)))


def payload(data: bytes, id: str) -> bytes:
    return next(data[slice(*section.payload)] for section in sections(data) if section.id == id)


def pool(bundle: Program) -> list[Value]:
    """The constants as the bundle has them."""
    pools = Pools(ByteReader(payload(encode(bundle), "constants"), "constants"))
    pools.read_constants()
    return pools.constants


# -- round trips


@pytest.mark.parametrize("make", SAMPLES.values(), ids=SAMPLES.keys())
def test_a_sample_is_read_back_as_it_was_written(make: Callable[[], Program]) -> None:
    sample = make()
    data = encode(sample)
    assert decode(data) == sample
    assert encode(decode(data)) == data


@settings(max_examples=60, deadline=None)
@given(programs())
def test_any_program_is_read_back_as_it_was_written(generated: Program) -> None:
    data = encode(generated)
    assert decode(data) == generated
    assert encode(decode(data)) == data
    assert decode(data, debug=False) == changed(generated, debug=None)


def test_the_samples_use_every_opcode() -> None:
    used = {instruction.opcode for address in addresses(every_opcode()) for instruction in address.code}
    assert used == set(OPCODES)


@settings(max_examples=300, deadline=None)
@given(values())
def test_values_are_plain_msgpack(value: Value) -> None:
    def big_integer(code: int, digits: bytes) -> int:
        assert code == 1
        return int(digits)

    data = writer.value(value)
    assert repr(msgpack.unpackb(data, ext_hook=big_integer)) == repr(value)
    assert repr(ByteReader(data, "value").value()) == repr(value)


def test_constants_that_python_takes_for_equal_stay_apart() -> None:
    alike: list[Value] = [0, 0.0, -0.0, False, 1, 1.0, True]
    code = [("CONST", value) for value in alike]
    sample = program(playbook(step("start", arc("start", None, expression(*code, ("LIST", len(alike)), "RETURN")))))
    args = decode(encode(sample)).playbooks[0].steps[0].arcs[0].args
    assert args is not None
    assert repr([instruction.operands[0] for instruction in args.code[: len(alike)]]) == repr(alike)


# -- the same program, the same bytes


def test_the_bytes_do_not_depend_on_the_hash_seed_or_the_folder(tmp_path: Path) -> None:
    script = (
        "import hashlib; from tests.noetlvm.bytecode.programs import SAMPLES\n"
        "from noetlvm.bytecode.codec.encoder import encode\n"
        "print(hashlib.sha256(b''.join(encode(make()) for make in SAMPLES.values())).hexdigest())"
    )

    def digest(seed: str, folder: Path) -> str:
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            [sys.executable, "-c", script], env=environment, cwd=folder, capture_output=True, text=True, check=True
        )
        return done.stdout

    assert digest("0", ROOT) == digest("1", tmp_path) == digest("4242", ROOT)


def test_each_constant_and_expression_is_there_once() -> None:
    same = expression(("CONST", "twice"), ("CONST", "twice"), ("LIST", 2), "RETURN")
    equal = expression(("CONST", "twice"), ("CONST", "twice"), ("LIST", 2), "RETURN")
    sample = program(
        playbook(step("start", arc("start", None, same), arc("start", None, same), arc("start", None, equal)))
    )
    data = encode(sample)
    assert data.count(b"twice") == 1
    once = encode(program(playbook(step("start", arc("start", None, same)))))
    assert payload(data, "expressions") == payload(once, "expressions")


def test_constants_are_numbered_by_expressions_then_pipelines_then_net_then_metadata() -> None:
    code = pipeline(("ENTER", "task"), ("CALL", "noop", constant("inputs"), constant("spec")), "END")
    nets = changed(playbook(step("start", arc("start", None, constant("args")), code=code)), final_step="elsewhere")
    assert pool(program(nets)) == ["inputs", "spec", "args", "task", "noop", "start", {}, "elsewhere"]


# -- what is in a section


@pytest.mark.parametrize("name", SAMPLES)
def test_any_msgpack_reader_reads_every_section(name: str) -> None:
    data = encode(SAMPLES[name]())
    for part in sections(data):
        unpacker = msgpack.Unpacker(strict_map_key=False)
        unpacker.feed(data[slice(*part.payload)])
        values = list(unpacker)
        assert unpacker.tell() == part.payload[1] - part.payload[0]
        if part.id == "constants":
            assert [packed(value) for value in values] == [packed(value) for value in pool(SAMPLES[name]())]


def packed(value: object) -> bytes:
    """Return a value as msgpack; unlike `==` it distinguishes 1, 1.0 and true."""
    return bytes(msgpack.packb(value, default=lambda large: msgpack.ExtType(1, str(large).encode())))


@pytest.mark.parametrize(("path", "name"), [("a/b", "b"), ("b", "b"), ("a/", ""), ("", ""), ("a/b", "a"), ("a/b", "")])
def test_a_name_that_is_the_last_part_of_the_path_is_not_written_again(path: str, name: str) -> None:
    sample = program(playbook(step("start"), name=name, path=path))
    assert decode(encode(sample)) == sample
    assert payload(encode(sample), "metadata")[1:2] == (
        b"\xc0" if path.split("/")[-1] == name else writer.text(name)[:1]
    )


def test_a_comment_or_another_line_changes_only_the_debug_section() -> None:
    bare = with_debug(two_steps())
    assert bare.debug is not None
    entries = tuple(
        changed(entry, marks=tuple(Mark(mark.file, mark.line + 3, mark.column) for mark in entry.marks))
        for entry in bare.debug.entries
    )
    moved = changed(bare, debug=changed(bare.debug, entries=entries))
    before, after = encode(bare), encode(moved)
    assert payload(before, "debug") != payload(after, "debug")
    assert bundle_id(before) == bundle_id(after)


def test_equal_instructions_become_one_object() -> None:
    steps = decode(encode(chain(2))).playbooks[0].steps
    first, second = (one.pipeline for one in steps)
    assert first is not None
    assert second is not None
    assert first.code[-1] is second.code[-1]


def test_a_bundle_is_small_because_nothing_is_written_twice() -> None:
    one, many = (len(encode(with_debug(chain(count)))) for count in (1, 101))
    # What a step of the chain adds: its own texts, code of a few bytes an instruction, and a byte or two a mark.
    marks = sum(address.marks for address in addresses(chain(1)))
    assert (many - one) / 100 < 5 * marks


# -- whatever is read is canonical


def test_a_changed_bundle_is_refused_or_canonical() -> None:
    """Change single bytes at random: what is still read must be exactly what the encoder would write."""
    chance = random.Random(20_240)
    originals = [unsealed(encode(with_debug(program))) for program in (two_steps(), every_opcode())]
    accepted = 0
    for _ in range(3_000):
        original = chance.choice(originals)
        at = chance.randrange(len(HEADER), len(original))
        data = original[:at] + chance.randbytes(1) + original[at + 1 :]
        try:
            other = decode(data)
        except MalformedBundleError:
            continue
        accepted += 1
        # A section whose number was hit is an unknown one, which is skipped.
        if all(section.id in SECTIONS for section in sections(data)):
            assert unsealed(encode(other)) == data
    assert accepted


# -- what cannot be written

_HUGE = limits.OPERAND_MAX + 1

UNENCODABLE: dict[str, Callable[[], Program]] = {
    "no playbook": lambda: Program(()),
    "a tuple": lambda: of_value((1, 2)),  # type: ignore[arg-type]
    "bytes": lambda: of_value(b"x"),  # type: ignore[arg-type]
    "a set": lambda: of_value({1}),  # type: ignore[arg-type]
    "a key that is no text": lambda: of_value({1: 2}),  # type: ignore[dict-item]
    "a subclass of str": lambda: of_value(Operand.TEXT),
    "half a character": lambda: of_value("\ud800"),
    "half a character in a key": lambda: of_value({"\ud800": 1}),
    "an integer past the limit": lambda: of_value(10**limits.BIG_INTEGER_CHARS_MAX),
    "an integer far past the limit": lambda: of_value(1 << 10_000_000),
    "a text past the limit": lambda: of_value("x" * (limits.TEXT_BYTES_MAX + 1)),
    "a wide text past the limit": lambda: of_value("é" * (limits.TEXT_BYTES_MAX // 2 + 1)),
    "words in a tuple": lambda: of_step(admit=expression(("FILTER", "length", 0, (), 0), "RETURN")),
    "words that are numbers": lambda: of_step(admit=expression(("FILTER", "length", 0, [1], 0), "RETURN")),
    "a spread of 4": lambda: of_step(admit=expression(("FILTER", "length", 0, [], 4), "RETURN")),
    "a namespace that does not exist": lambda: of_step(admit=expression(("NAME", "secrets"), "RETURN")),
    "a comparison that does not exist": lambda: of_step(admit=expression(("COMPARE", "is"), "RETURN")),
    "an attribute that is no text": lambda: of_step(admit=expression(("ATTR", 1), "RETURN")),
    "a negative count": lambda: of_step(admit=expression(("LIST", -1), "RETURN")),
    "a boolean count": lambda: of_step(admit=expression(("LIST", True), "RETURN")),
    "a huge count": lambda: of_step(admit=expression(("LIST", _HUGE), "RETURN")),
    "too few operands": lambda: of_step(admit=ExpressionCode((Instruction(EXPRESSION["ATTR"], ()),))),
    "too many slots": lambda: of_step(admit=expression("RETURN", slots=limits.SLOTS_MAX + 1)),
    "negative slots": lambda: of_step(admit=expression("RETURN", slots=-1)),
    "too many counters": lambda: of_step(pipeline=Pipeline((), limits.SLOTS_MAX + 1)),
    "too much code": lambda: of_step(admit=expression(*["NOT"] * limits.CODE_BYTES_MAX)),
    "no expression where there must be one": lambda: of_step(pipeline=pipeline(("CALL", "noop", None, constant({})))),
    "a step without a name": lambda: of_step(name=None),
    "an arc without a target": lambda: of_step(arcs=(arc(None),)),  # type: ignore[arg-type]
    "a debug map with an entry too few": lambda: changed(
        with_debug(minimal()),
        debug=changed(with_debug(minimal()).debug, entries=()),  # type: ignore[type-var]
    ),
}


@pytest.mark.parametrize("make", UNENCODABLE.values(), ids=UNENCODABLE.keys())
def test_what_the_decoder_would_refuse_is_not_written(make: Callable[[], Program]) -> None:
    unencodable = make()
    with pytest.raises(EncodingError):
        encode(unencodable)


@pytest.mark.parametrize(
    ("address", "marks"),
    [
        ("elsewhere", (Mark(0, 1, 1),)),
        ("start", ()),
        ("start", (Mark(0, 1, 1), Mark(0, 1, 2))),
        ("start", (Mark(1, 1, 1),)),
        ("start", (Mark(0, 0, 1),)),
        ("start", (Mark(0, 1, 0),)),
        ("start", (Mark(0, 1, _HUGE),)),
    ],
)
def test_a_debug_map_that_does_not_fit_is_not_written(address: str, marks: tuple[Mark, ...]) -> None:
    fitting = with_debug(minimal())
    assert fitting.debug is not None
    entry = changed(fitting.debug.entries[0], address=address, marks=marks)
    with pytest.raises(EncodingError):
        encode(changed(fitting, debug=changed(fitting.debug, entries=(entry,))))


# -- at the limits

AT_THE_LIMIT: dict[str, Callable[[], Program]] = {
    "the largest operand": lambda: of_step(admit=expression(("LIST", limits.OPERAND_MAX), "RETURN")),
    "the most slots": lambda: of_step(admit=expression("RETURN", slots=limits.SLOTS_MAX)),
    "the longest text": lambda: of_value("x" * limits.TEXT_BYTES_MAX),
    "the longest integer": lambda: of_value(-(10 ** (limits.BIG_INTEGER_CHARS_MAX - 2))),
    "the longest code": lambda: of_step(admit=expression(*["NOT"] * (limits.CODE_BYTES_MAX - 1))),
    "empty code": lambda: of_step(admit=ExpressionCode(()), pipeline=Pipeline(())),
}


@pytest.mark.parametrize("make", AT_THE_LIMIT.values(), ids=AT_THE_LIMIT.keys())
def test_what_is_at_a_limit_is_written_and_read(make: Callable[[], Program]) -> None:
    sample = make()
    assert decode(encode(sample)) == sample


def test_a_mark_may_be_as_far_away_as_the_limit_and_come_back() -> None:
    far = limits.OPERAND_MAX
    there_and_back = (Mark(0, far, far), Mark(0, far, 1), Mark(0, 1, far), Mark(1, 1, 1), Mark(0, far, 1))
    bare = of_step(admit=expression(*["NOT"] * len(there_and_back)))
    sample = with_debug(bare, ("a.yaml", "b.yaml"))
    assert sample.debug is not None
    start, admit = sample.debug.entries
    sample = changed(sample, debug=changed(sample.debug, entries=(start, changed(admit, marks=there_and_back))))
    assert decode(encode(sample)) == sample


def test_values_nest_as_deep_as_the_limit_and_no_deeper() -> None:
    def nested(depth: int) -> Value:
        value: Value = 1
        for level in range(depth):
            value = [value] if level % 2 else {"k": value}
        return value

    deepest = of_value(nested(limits.DEPTH_MAX))
    assert decode(encode(deepest)) == deepest
    with pytest.raises(EncodingError):
        encode(of_value(nested(limits.DEPTH_MAX + 1)))


def test_not_a_number_is_one_value_however_it_was_made() -> None:
    other = -float("nan")
    assert encode(of_value(other)) == encode(of_value(math.nan))
    assert decode(encode(of_value(other))) == of_value(math.nan)


def test_a_bundle_past_the_limit_is_not_written() -> None:
    parts: list[Value] = [
        "x" * limits.TEXT_BYTES_MAX,
        *(f"{number}" + "x" * (limits.TEXT_BYTES_MAX - 1) for number in range(8)),
    ]
    with pytest.raises(EncodingError, match="bytes"):
        encode(of_value(parts))


def test_a_step_holds_everything_it_was_given() -> None:
    fields = {name: index % 2 == 0 for index, name in enumerate(("drops_denied", "best_effort", "inclusive"))}
    for flags in (fields, {name: not value for name, value in fields.items()}):
        sample = of_step(**flags)
        read: Transition = decode(encode(sample)).playbooks[0].steps[0]
        assert {name: getattr(read, name) for name in fields} == flags
