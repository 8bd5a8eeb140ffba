"""The text form: the assembler takes back what the disassembler writes, and says what is wrong with anything else."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noetlc.assembly.assembler import AssemblyError, assemble
from noetlc.assembly.disassembler import disassemble
from noetlc.assembly.lexer import ARC_FLAGS, LOOP_FLAGS, PIECES_MAX, PLAYBOOK_FLAGS, STEP_FLAGS, TEXT_CHARS_MAX
from noetlc.syntax.lalr import load_grammar
from noetlvm.bytecode.codec.decoder import decode
from noetlvm.bytecode.codec.encoder import encode
from noetlvm.bytecode.isa import EXPRESSION, ISA_VERSION, OPCODES, PIPELINE, Opcode, Operand
from noetlvm.bytecode.limits import BIG_INTEGER_CHARS_MAX, DEPTH_MAX, OPERAND_MAX
from noetlvm.bytecode.program import (
    DebugEntry,
    DebugMap,
    ExpressionCode,
    Instruction,
    KeychainEntry,
    LoopHeader,
    Mark,
    Pipeline,
    Program,
    Value,
)
from noetlvm.conformance.stages import without_version
from noetlvm.record import changed
from tests.noetlvm.bytecode.programs import (
    EMPTY,
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
    with_debug,
)

if TYPE_CHECKING:
    from collections.abc import Callable


def assert_comes_back(original: Program) -> None:
    """Compare by `repr`: unlike `==` it distinguishes 1, 1.0 and true, and takes NaN for itself."""
    text = disassemble(original)
    again = assemble(text)
    assert repr(again) == repr(original)
    assert disassemble(again) == text


def with_code(code: str) -> str:
    """Return the text of a program whose only step has this expression for a gate."""
    return f'.playbook "p" "p"\n  .entry "a"\n.step "a"\n  .admit (\n{code}\n)\n'


CODE_BEGINS = with_code("here").split("\n").index("here") + 1


def gate(code: str) -> ExpressionCode:
    admit = assemble(with_code(code)).playbooks[0].steps[0].admit
    assert admit is not None
    return admit


def refused(text: str) -> AssemblyError:
    with pytest.raises(AssemblyError) as error:
        assemble(text)
    return error.value


# -- what comes back -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SAMPLES)
def test_samples_come_back(name: str) -> None:
    assert_comes_back(SAMPLES[name]())


@pytest.mark.parametrize("name", SAMPLES)
def test_the_bytes_of_a_bundle_come_back(name: str) -> None:
    data = encode(SAMPLES[name]())
    assert encode(assemble(disassemble(decode(data)))) == data


@settings(deadline=None, max_examples=60)
@given(programs())
def test_generated_programs_come_back(original: Program) -> None:
    assert_comes_back(original)


OPERANDS: dict[Operand, st.SearchStrategy[object]] = {
    Operand.CONST: st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
        max_leaves=6,
    ),
    Operand.WORDS: st.lists(st.text(), max_size=3),
    Operand.EXPR: st.deferred(lambda: any_expressions()),
    Operand.OPTIONAL_EXPR: st.none() | st.deferred(lambda: any_expressions()),
    Operand.TARGET: st.integers(0, 6) | st.just(OPERAND_MAX),
    **{kind: st.integers(0, OPERAND_MAX) for kind in (Operand.COUNT, Operand.SLOT, Operand.SPREAD)},
    Operand.LIMIT: st.integers(0, OPERAND_MAX) | st.deferred(lambda: any_expressions()),
    **{
        kind: st.text() | st.sampled_from(["L1", "fetch", "a.b"])
        for kind in (Operand.TEXT, Operand.FILTER, Operand.TEST, Operand.FUNCTION, Operand.METHOD)
    },
    Operand.NAME: st.sampled_from(["ctx", "_prev", "outcome"]),
    Operand.COMPARISON: st.sampled_from(["==", "<", "<=", "in", "not in"]),
    Operand.BACKOFF: st.sampled_from(["none", "linear", "exponential"]),
}
"""Operands of any value that a bundle can hold, sensible or not."""


@st.composite
def any_code(draw: st.DrawFn, opcodes: dict[str, Opcode]) -> tuple[Instruction, ...]:
    chosen = draw(st.lists(st.sampled_from(list(opcodes.values())), max_size=5))
    return tuple(Instruction(opcode, tuple(draw(OPERANDS[kind]) for kind in opcode.operands)) for opcode in chosen)


def any_expressions() -> st.SearchStrategy[ExpressionCode]:
    return st.builds(ExpressionCode, any_code(EXPRESSION), slots=st.integers(0, 3))


def any_pipelines() -> st.SearchStrategy[Pipeline]:
    return st.builds(Pipeline, any_code(PIPELINE), counters=st.integers(0, 3))


@settings(deadline=None, max_examples=150)
@given(any_pipelines(), any_expressions(), st.booleans())
def test_code_that_could_never_run_comes_back(code: Pipeline, admit: ExpressionCode, debug: bool) -> None:
    bare = program(playbook(step("a", code=code, admit=admit)))
    assert_comes_back(with_debug(bare) if debug else bare)


@settings(deadline=None)
@given(st.text(), st.text())
def test_names_of_any_text_come_back(name: str, other: str) -> None:
    loop = LoopHeader(EMPTY, name, parallel=False, width=0, distributed=True, reducers=((other, name), (name, other)))
    odd = step(name, arc(other), loops=(loop,))
    book = changed(
        playbook(odd, name=other, path=name), final_step=other, keychain=(KeychainEntry(name, other, {name: 1}),)
    )
    assert_comes_back(with_debug(program(book), (other, name)))


VALUES: list[Value] = [
    math.nan,
    math.inf,
    -math.inf,
    -0.0,
    1e308,
    5e-324,
    0.1,
    int("9" * BIG_INTEGER_CHARS_MAX),
    -(2**64),
    True,
    1,
    1.0,
    'quote " backslash \\ # comment ; ) ( @1:2 @"x"',
    "line\nbreak\r\n\ttab",
    "\0\x1b[31m\x7f\x85\u2028\u2029\u202e\ufeff\u200b",
    "é 😀 \U0001d518 \U0010ffff \ue000",
    {"": {"": [[], {}, None]}},
    ["long"] * 100,
]


@pytest.mark.parametrize("value", VALUES, ids=ascii)
def test_odd_constants_come_back(value: Value) -> None:
    assert_comes_back(program(playbook(step("a", arc("a", None, constant(value))))))


def test_a_constant_as_deep_as_a_bundle_allows_comes_back() -> None:
    deep: Value = []
    for _ in range(DEPTH_MAX - 1):
        deep = [deep]
    assert_comes_back(program(playbook(step("a", admit=constant(deep)))))


@pytest.mark.parametrize("debug", [False, True], ids=["bare", "debug"])
@pytest.mark.parametrize(
    "bare",
    [
        Program(()),
        program(playbook(step("a", code=Pipeline(())))),
        program(playbook(step("a", admit=ExpressionCode(())))),
        program(playbook(step("a", code=pipeline(("UNLESS", ExpressionCode((), 3), 7))))),
        program(changed(playbook(step("a")), steps=())),
        program(playbook(step("a"), step("a"))),
    ],
    ids=["nothing", "empty pipeline", "empty gate", "empty guard", "no steps", "one name twice"],
)
def test_empty_things_come_back(bare: Program, debug: bool) -> None:
    assert_comes_back(with_debug(bare) if debug else bare)


@pytest.mark.parametrize(
    "debug",
    [
        DebugMap((), ()),
        DebugMap(("a.yaml",), (DebugEntry("elsewhere", "step", (Mark(0, 1, 1),)),)),
        DebugMap(("a.yaml",), (DebugEntry("start", "step", (Mark(0, 1, 1), Mark(3, 0, 0))),)),
        DebugMap(("a.yaml",), (DebugEntry("start", 'a "step"\n', ()),)),
    ],
    ids=["no entries", "another address", "too many marks", "no mark"],
)
def test_a_debug_map_that_does_not_fit_comes_back(debug: DebugMap) -> None:
    assert_comes_back(changed(minimal(), debug=debug))


def test_a_mark_in_a_file_that_is_not_listed_comes_back() -> None:
    assert_comes_back(changed(minimal(), debug=DebugMap((), (DebugEntry("start", "step", (Mark(9, 1, 1),)),))))


def test_without_source_lines_the_debug_map_is_left_out() -> None:
    bare = two_steps()
    assert disassemble(with_debug(bare), source_lines=False) == disassemble(bare)


# -- what the text looks like --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("two_steps.asm", two_steps),
        ("two_steps_debug.asm", lambda: with_debug(two_steps())),
        ("every_opcode.asm", every_opcode),
    ],
)
def test_text_is_as_it_was(name: str, make: Callable[[], Program], golden: Callable[[str, str], None]) -> None:
    golden(name, without_version(disassemble(make())))


def test_a_change_to_one_step_leaves_the_text_of_the_others_alone() -> None:
    before = chain(4)
    book = before.playbooks[0]
    other = step("new", code=pipeline(("ENTER", "x"), ("CALL", "noop", EMPTY, EMPTY), ("ON_ERROR", 1), "FAIL"))
    after = Program((changed(book, steps=(book.steps[0], other, *book.steps[2:])),))
    texts = [disassemble(version).split("\n.step ") for version in (before, after)]
    assert [same for same, pair in enumerate(zip(*texts, strict=True)) if pair[0] != pair[1]] == [2]


def test_invisible_characters_are_escaped() -> None:
    text = disassemble(program(playbook(step("a", admit=constant("é\u202e\x1b\u2028")))))
    assert r'"é\u202e\u001b\u2028"' in text
    assert all(character.isprintable() for character in text.replace("\n", ""))


def test_targets_are_labels_and_tasks_have_their_own() -> None:
    code = pipeline(
        ("ENTER", "a task"), ("GOTO", 3), ("ENTER", "L1"), ("ENTER", "fetch"), ("ENTER", "fetch"), ("GOTO", 4)
    )
    lines = [
        line.partition("#")[0].strip() for line in disassemble(program(playbook(step("a", code=code)))).splitlines()
    ]
    assert lines[lines.index(".tool (") :] == [
        ".tool (",
        'ENTER "a task"',
        "GOTO fetch",
        'ENTER "L1"',
        "fetch:",
        'ENTER "fetch"',
        "L1:",
        'ENTER "fetch"',
        "GOTO L1",
        ")",
    ]


def test_comments_show_what_lies_on_the_stack() -> None:
    code = expression(
        ("NAME", "ctx"),
        ("ATTR", "n"),
        ("CONST", 1),
        "ADD",
        ("CONST", [1, 2]),
        ("COMPARE", "not in"),
        ("FILTER", "default", 0, [], 0),
        ("JUMP_IF", 8),
        "RETURN",
    )
    comments = [line.partition("# ")[2] for line in disassemble(program(playbook(step("a", admit=code)))).splitlines()]
    assert [comment for comment in comments if comment] == [
        "ctx.n",
        "ctx.n + 1",
        "(ctx.n + 1) not in [1, 2]",
        "default((ctx.n + 1) not in [1, 2])",
        "default((ctx.n + 1) not in [1, 2]) →",
    ]


def test_a_mark_is_written_where_it_changes() -> None:
    code = expression(("CONST", 1), "NEG", "RETURN")
    entries = (
        DebugEntry("a", "step", (Mark(0, 1, 1),)),
        DebugEntry("a/admit", "admit", (Mark(0, 2, 1), Mark(0, 2, 1), Mark(1, 3, 5))),
    )
    lines = disassemble(changed(program(playbook(step("a", admit=code))), debug=DebugMap(("x", "y"), entries)))
    assert [line.partition("@")[2].split() for line in lines.splitlines() if line.startswith("    ")] == [
        ["2:1"],
        [],
        ["1:3:5"],
    ]


# -- what may be written by hand -----------------------------------------------------------------------------------


def test_layout_is_free() -> None:
    expected = gate('NAME ctx; ATTR "x"; RETURN')
    assert gate('  NAME\tctx # a comment; POP\r\n\n;;ATTR   "x"\nRETURN') == expected


def test_a_label_may_stand_beside_its_instruction_and_at_the_end() -> None:
    code = gate("again: JUMP again\n JUMP end\n end:").code
    assert [instruction.operands for instruction in code] == [(0,), (2,)]


def test_every_instruction_can_be_written() -> None:
    samples = {
        Operand.TARGET: "0",
        Operand.EXPR: "()",
        Operand.OPTIONAL_EXPR: "none",
        Operand.NAME: "ctx",
        Operand.COMPARISON: "not in",
        Operand.BACKOFF: "linear",
        Operand.WORDS: '["a"]',
        **dict.fromkeys((Operand.COUNT, Operand.LIMIT, Operand.SLOT, Operand.SPREAD), "1"),
    }
    for opcode in OPCODES:
        line = " ".join([opcode.name, *(samples.get(kind, '"text"') for kind in opcode.operands)])
        part = ".admit" if EXPRESSION.get(opcode.name) is opcode else ".tool"
        written = assemble(with_code(line).replace(".admit", part)).playbooks[0].steps[0]
        code = written.admit or written.pipeline
        assert code is not None
        assert [instruction.opcode for instruction in code.code] == [opcode]


# -- what is refused -----------------------------------------------------------------------------------------------

WRONG_CODE = {
    "misspelt opcode": ("NAM ctx", (1, 1), "there is no instruction `NAM` here; did you mean `NAME`?"),
    "lower case": ("POP\nreturn", (2, 1), "did you mean `RETURN`?"),
    "opcode of the other machine": ("ENTER 1", (1, 1), "there is no instruction `ENTER` here"),
    "no operand": ("CONST", (1, 6), "expected the operand `const` of CONST, found the end of the line"),
    "operand on the next line": ('ATTR\n"x"', (1, 5), "in double quotes, found the end of the line"),
    "too many operands": ("POP 1", (1, 5), "`1` is unexpected here"),
    "two on a line": ("POP POP", (1, 5), "`POP` is unexpected here; continue on a new line or after `;`"),
    "bare text": ("ATTR status", (1, 6), "expected the operand `text` of ATTR in double quotes, found `status`"),
    "text that is a number": ("ATTR 1", (1, 6), "in double quotes, found `1`"),
    "unclosed text": ('ATTR "x', (1, 8), "this is not JSON: Invalid control character"),
    "single quotes": ("CONST 'x'", (1, 7), "this is not JSON"),
    "raw tab in text": ('CONST "a\tb"', (1, 9), "this is not JSON"),
    "half a surrogate pair": (r'CONST "\ud800"', (1, 7), "half of a surrogate pair"),
    "half a pair in a key": (r'CONST [{"\udc00": 1}]', (1, 7), "half of a surrogate pair"),
    "key twice": ('CONST {"a": 1, "b": 2, "a": 3}', (1, 7), 'the key "a" is given twice'),
    "many digits": ("CONST " + "1" * (BIG_INTEGER_CHARS_MAX + 1), (1, 7), "an integer has more than"),
    "nested deeply": ("CONST " + "[" * 65 + "]" * 65, (1, 7), "nested more than 64 levels"),
    "nested without end": ("CONST " + "[" * 100_000, (1, 7), "nested more than 64 levels"),
    "words of numbers": ('FILTER "join" 0 [1] 0', (1, 17), "a list of strings"),
    "words that are a text": ('FILTER "join" 0 "d" 0', (1, 17), "a list of strings"),
    "count that is text": ('LIST "1"', (1, 6), '(a number), found `"1"`'),
    "negative count": ("LIST -1", (1, 6), "(a number), found `-1`"),
    "count without end": ("LIST " + "1" * 50, (1, 6), "(a number)"),
    "fractional count": ("LIST 1.5", (1, 6), "(a number), found `1.5`"),
    "unknown namespace": ("NAME workloads", (1, 6), "did you mean `workload`?"),
    "namespace in quotes": ('NAME "ctx"', (1, 6), "expected the operand `name` of NAME"),
    "unknown comparison": ("COMPARE ~", (1, 9), "write one of `!=`, `<`, `<=`, `==`, `>`, `>=`, `in`, `not in`"),
    "unknown label": ("end:\nJUMP ende", (2, 6), "there is no label `ende` in this code; did you mean `end`?"),
    "no label at all": ("JUMP end", (1, 6), "write `end:` in front of an instruction"),
    "label twice": ("L1: POP\nL1: POP", (2, 1), "the label `L1` stands in this code already"),
    "label like a number": ("1: POP", (1, 1), "`1` is not a label"),
    "target that is text": ('JUMP "L1"', (1, 6), "a label or (a number), found"),
    "mark without files": ("POP @1:2", (1, 5), "write `.files` after `.isa`"),
    "broken mark": ("POP @1", (1, 5), "`@line:column`"),
    "slots in the middle": ("POP\n.slots 1", (2, 1), "there is no instruction `.slots` here"),
    "stray parenthesis": ("POP\n(", (2, 1), "there is no instruction `(` here"),
}
"""Code, the line in it and the column where it goes wrong, and what is said."""


@pytest.mark.parametrize("name", WRONG_CODE)
def test_wrong_code_is_refused_with_its_place(name: str) -> None:
    code, (line, column), message = WRONG_CODE[name]
    error = refused(with_code(code))
    assert message in error.message
    assert (error.line - CODE_BEGINS + 1, error.column) == (line, column)


WRONG_TEXT = {
    "no version": (".isa", "expected the version (a number), found the end of the text"),
    "another version": (f".isa {ISA_VERSION + 1}", f"only {ISA_VERSION} is known"),
    "version behind the files": (".files []\n.isa 1", "`.isa` cannot stand here; what can is `.playbook`, `.debug`"),
    "step outside": ('.step "a"', "`.step` cannot stand here; what can is `.isa`, `.files`, `.playbook`, `.debug`"),
    "misspelt directive": (".playbok", "there is no directive `.playbok`; did you mean `.playbook`?"),
    "code outside": ("POP", "expected `.isa`, `.files`, `.playbook`, `.debug`, found `POP`"),
    "files that are no list": ('.files "a"', "a list of strings"),
    "playbook without a name": ('.playbook "p"', "expected the playbook name in double quotes"),
    "playbook with a wrong flag": ('.playbook "p" "p" strict', "`strict` is unexpected here"),
    "no entry": ('.playbook "p" "p"\n.step "a"', 'expected `.entry "step"`'),
    "metadata that is a list": ('.playbook "p" "p"\n.metadata []', "a mapping such as"),
    "gate after tool": (with_code("END").replace(".admit", ".tool") + ".admit ()", "`.admit` cannot stand here"),
    "open code": (with_code("POP").rstrip(")\n"), "a code is not closed"),
    "gate without code": ('.playbook "p" "p"\n.entry "a"\n.step "a"\n.admit', "expected `(`, found the end"),
    "loop without width": (
        '.playbook "p" "p"\n.entry "a"\n.step "a"\n.loop "i"\n.in (CONST 1; RETURN)',
        "expected `width`",
    ),
    "loop without in": ('.playbook "p" "p"\n.entry "a"\n.step "a"\n.loop "i" width 1', "expected `.in (…)`"),
    "reducers by mapping": (
        '.playbook "p" "p"\n.entry "a"\n.step "a"\n.loop "i" width 1 reduce {"a": "sum"}',
        "a list of pairs",
    ),
    "reducer of three": (
        '.playbook "p" "p"\n.entry "a"\n.step "a"\n.loop "i" width 1 reduce [["a", "b", "c"]]',
        "a list of pairs",
    ),
    "step without its construct": (
        '.files []\n.playbook "p" "p"\n.entry "a"\n.step "a" @1:1',
        "what did the author write here?",
    ),
    "step without its mark": (
        '.files []\n.playbook "p" "p"\n.entry "a"\n.step "a" @"step"',
        "where was this written? Write `@line:column`",
    ),
    "construct without files": ('.playbook "p" "p"\n.entry "a"\n.step "a" @"step"', "write `.files` after"),
    "two debug maps": (".files []\n.debug []", "either in the code or spelled out here"),
    "entry without construct": ('.debug []\n.entry "a" @1:1', "expected the entry title in double quotes"),
    "text after the debug map": (".debug []\n.playbook", "`.playbook` cannot stand here; what can is `.entry`"),
    "byte order mark": ("\ufeff.files []", "expected `.isa`, `.files`, `.playbook`, `.debug`, found"),
    "lone surrogate": ("\ud800", "expected `.isa`, `.files`, `.playbook`, `.debug`, found"),
}


@pytest.mark.parametrize("name", WRONG_TEXT)
def test_wrong_text_is_refused(name: str) -> None:
    text, message = WRONG_TEXT[name]
    error = refused(text)
    assert message in error.message
    assert str(error) == f"line {error.line}, column {error.column}: {error.message}"
    assert 1 <= error.line <= text.count("\n") + 1


def test_the_grammar_and_the_disassembler_know_the_same_flags() -> None:
    grammar = load_grammar("assembly")
    for name, flags in {
        "PLAYBOOK_FLAG": PLAYBOOK_FLAGS,
        "STEP_FLAG": STEP_FLAGS,
        "LOOP_FLAG": LOOP_FLAGS,
        "ARC_FLAG": ARC_FLAGS,
    }.items():
        literals = [word for word, terminal in grammar.literals.items() if terminal == name]
        assert set(literals or re.findall(r"\w+", grammar.patterns[name].replace("(?:", ""))) == set(flags)


def test_huge_text_is_refused_unread() -> None:
    assert "characters" in refused("#" * (TEXT_CHARS_MAX + 1)).message
    assert "parts" in refused(with_code("CONST [" + "[]," * (PIECES_MAX // 2) + "1]")).message


def test_punctuation_inside_strings_counts_for_nothing() -> None:
    assert gate('CONST "' + "," * (PIECES_MAX + 1) + '"').code[0].operands == ("," * (PIECES_MAX + 1),)


DAMAGED = disassemble(with_debug(two_steps()))
INSERTED = (*'().;:@#"\\[]{}\n ', "0", "L1", ".step", "none", "\ud800", "RETURN")


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, len(DAMAGED)), st.sampled_from(INSERTED), st.integers(0, 12)), max_size=3))
def test_damaged_text_is_refused_or_read_but_never_breaks(damages: list[tuple[int, str, int]]) -> None:
    text = DAMAGED
    for at, inserted, lost in damages:
        text = text[:at] + inserted + text[at + lost :]
    made = read_if_it_can_be(text)
    if made is not None:
        assert_comes_back(made)


def read_if_it_can_be(text: str) -> Program | None:
    try:
        return assemble(text)
    except AssemblyError:
        return None
