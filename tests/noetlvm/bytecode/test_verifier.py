"""The verifier: what it refuses and with which code, what it accepts, and what its errors say."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path
from typing import get_args

import pytest

import noetlvm
from noetlc.assembly.assembler import assemble
from noetlc.codegen.expressions import lower_template
from noetlc.syntax.template_parser import parse_template
from noetlvm.bytecode.codec.encoder import encode
from noetlvm.bytecode.isa import OPCODES, OpcodeName
from noetlvm.bytecode.limits import FOR_DEPTH_MAX, STACK_MAX, TEXT_DEPTH_MAX
from noetlvm.bytecode.program import InvalidBundleError, MalformedBundleError, Program
from noetlvm.bytecode.verify.expressions import prove
from noetlvm.bytecode.verify.operands import INVALID
from noetlvm.bytecode.verify.verifier import load, verify
from tests.noetlvm.bytecode.invalid import calls, edited, nets, positions, stack, tasks
from tests.noetlvm.bytecode.invalid.case import PLACES, Case, in_place, retry_text, with_pipeline
from tests.noetlvm.bytecode.programs import SAMPLES, chain, minimal, two_playbooks, with_debug
from tests.whole.fuzz.fitted import fitted

CASES: list[Case] = [
    *stack.CASES,
    *calls.CASES,
    *positions.CASES,
    *tasks.CASES,
    *nets.CASES,
    *edited.CASES,
]

WRITTEN_IN_TEXT = [*stack.CASES, *calls.CASES, *positions.CASES, *tasks.CASES, *nets.CASES]
"""What assembly can say, a bundle can hold."""

NEVER_IN_A_BUNDLE = frozenset({"V006", "V009", "V070"})
"""No bundle can say these: there is no number for such a spread, no room for so many slots, and always a playbook."""


def refusal(program: Program) -> InvalidBundleError:
    with pytest.raises(InvalidBundleError) as caught:
        verify(program)
    return caught.value


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.code} {case.name}")
def test_an_invalid_program_is_refused_with_its_code_at_its_place(case: Case) -> None:
    error = refusal(case.make())

    assert (error.code, error.section) == (case.code, case.section)
    if case.offset is not None:
        assert error.offset == case.offset


def test_the_invalid_set_is_large_and_each_case_is_a_different_one() -> None:
    assert len(CASES) >= 300
    assert [name for name, count in Counter((c.code, c.section, c.name) for c in CASES).items() if count > 1] == []


def test_every_code_has_a_case_and_every_case_a_code() -> None:
    assert {case.code for case in CASES} == set(INVALID)


def test_an_invalid_program_is_refused_after_a_trip_through_a_bundle() -> None:
    for case in WRITTEN_IN_TEXT:
        if case.code in NEVER_IN_A_BUNDLE:
            continue
        with pytest.raises(InvalidBundleError) as caught:
            load(encode(case.make()))
        assert caught.value.code == case.code, case.name


# ---- what is valid

_ENDINGS = {
    "admit": "TRUTH; RETURN",
    "arc when": "TRUTH; RETURN",
    "before call": "TRUTH; RETURN",
    "sugar": "TRUTH; RETURN",
    "rule": "TRUTH; RETURN",
    "loop": "RETURN",
    "inner loop": "RETURN",
    "delay": "RETURN",
}


@pytest.mark.parametrize("place", PLACES)
def test_the_programs_around_the_invalid_expressions_are_valid(place: str) -> None:
    ending = _ENDINGS.get(place, 'RECORD ["a"]; RETURN')

    verify(in_place(place, f"NAME workload; {ending}"))


@pytest.mark.parametrize("name", SAMPLES)
def test_the_sample_programs_are_valid(name: str) -> None:
    verify(fitted(SAMPLES[name]()))


VALID_EXPRESSIONS = {
    "a constant": "CONST 1; RETURN",
    "two ends": "CONST 1; JUMP_IF a; CONST 2; RETURN; a: CONST 3; RETURN",
    "a jump to what follows": "CONST 1; JUMP on; on: RETURN",
    "no positional argument, all by name": 'CONST "a"; CONST 1; CONST 2; FILTER "replace" 0 ["old", "new"] 0; RETURN',
    "everything missing may be spread": 'CONST "a"; CONST []; FILTER "replace" 0 [] 1; RETURN',
    "a spread of both kinds": 'CONST "a"; CONST []; CONST {}; FILTER "replace" 0 [] 3; RETURN',
    "a spread for what has no name": 'CONST []; CALL "range" 0 [] 1; RETURN',
    "a text in a text": 'TEXT_BEGIN; TEXT_BEGIN; EMIT_CONST "a"; TEXT_END; EMIT; TEXT_END; RETURN',
    "a text across a for block": "TEXT_BEGIN; CONST []; ITER; go: NEXT e; EMIT; JUMP go; e: POP; TEXT_END; RETURN",
    "loop of the outer for block": (
        "CONST []; ITER; a: NEXT x; ITER; b: NEXT y; POP; LOOP 1; POP; LOOP 0; POP; JUMP b; y: POP; JUMP a; x: RETURN"
    ),
    "loop of the outer for block while the inner has not begun": (
        "CONST []; ITER; a: NEXT x; ITER; LOOP 1; POP; b: NEXT y; POP; JUMP b; y: POP; JUMP a; x: RETURN"
    ),
    "two elements a round": "CONST []; ITER; go: NEXT a; POP; NEXT b; POP; JUMP go; a: RETURN; b: RETURN",
    "a branch back to NEXT": "CONST []; ITER; go: NEXT e; JUMP_IF go; JUMP go; e: RETURN",
    "a list that grows on the stack": "LIST 0; CONST 1; APPEND; CONST 2; APPEND; RETURN",
    "a list that grows under another": "LIST 0; LIST 0; CONST 1; APPEND; APPEND; RETURN",
    "a list that was exchanged": "LIST 0; CONST 1; SWAP; CONST 2; APPEND; LIST 2; RETURN",
    "a list that was turned": "CONST 1; CONST 2; LIST 0; ROT3; LIST 2; APPEND; RETURN",
    "a list in a slot": ".slots 1; LIST 0; STORE 0; LOCAL 0; CONST 1; APPEND; STORE 0; LOCAL 0; RETURN",
    "a list in a slot that grows in each round": (
        ".slots 1; LIST 0; STORE 0; CONST [1]; ITER; go: NEXT e; STORE 0; LIST 0; STORE 0; "
        "LOCAL 0; CONST 1; APPEND; STORE 0; JUMP go; e: POP; LOCAL 0; RETURN"
    ),
    "a list that grows in each round, which changes another": (
        ".slots 2; LIST 0; STORE 0; LIST 0; STORE 1; CONST [1]; ITER; go: NEXT e; STORE 0; "
        "LOCAL 1; CONST 1; APPEND; STORE 1; JUMP go; e: POP; LOCAL 1; RETURN"
    ),
    "a slot that is given away and made anew": (
        ".slots 1; LIST 0; STORE 0; LOCAL 0; LIST 1; POP; LIST 0; STORE 0; LOCAL 0; CONST 1; APPEND; RETURN"
    ),
    "a list that is the same on both paths": (
        "LIST 0; CONST 1; JUMP_IF on; CONST 2; APPEND; on: CONST 3; APPEND; RETURN"
    ),
}


@pytest.mark.parametrize("name", VALID_EXPRESSIONS)
def test_unusual_expressions_are_valid(name: str) -> None:
    verify(in_place("loop", VALID_EXPRESSIONS[name]))


VALID_PIPELINES = {
    "nothing to do": "END",
    "marks": 'MARK "a"; MARK "a.b"; END',
    "a task that is skipped for sure": 'ENTER "a"; SKIP end; end: END',
    "a task that fails for sure": 'ENTER "a"; FAIL',
    "a task entered in another": 'ENTER "a"; ENTER "b"; CALL "noop" <{}> <{}>; BREAK',
    "an endless jump": 'a: ENTER "a"; CALL "noop" <{}> <{}>; JUMP_TO a',
    "an empty while": (
        '.slots 1; MARK "w"; RESET 0; t: MARK "w.test"; UNLESS <more> e; ROUND 0 9; GOTO t; e: MARK "w.end"; END'
    ),
    "a task reached from below": (
        'ENTER "a"; CALL "noop" <{}> <{}>; CONTINUE c; b: ENTER "b"; CALL "noop" <{}> <{}>; BREAK; '
        'c: ENTER "c"; CALL "noop" <{}> <{}>; JUMP_TO b'
    ),
    "a call that is tried again": (
        f'ENTER "a"; go: CALL "noop" <{{}}> <{{}}>; {retry_text("3", "linear", "<1>")} go; FAIL'
    ),
    "a result bound to its label": 'ENTER "a"; CALL "noop" <{}> <{}>; BIND; CONTINUE e; e: END',
    "a patch of a rule that skips before the call": (
        'ENTER "a"; UNLESS <more> go; PATCH none <patch>; SKIP end; go: CALL "noop" <{}> <{}>; BREAK; end: END'
    ),
    "a patch of ctx": 'ENTER "a"; CALL "noop" <{}> <{}>; PATCH none <patch>; BREAK',
}


@pytest.mark.parametrize("name", VALID_PIPELINES)
def test_unusual_pipelines_are_valid(name: str) -> None:
    verify(with_pipeline(VALID_PIPELINES[name]))


TEMPLATES = [
    "{% for a in ctx.x if a %}{{ loop.index }}{{ a }}{% else %}none{% endfor %}",
    "{% for a in ctx.x if a %}{% for b in a if b %}{{ loop.index }}{% for c in b if c %}{{ c }}{% endfor %}"
    "{% endfor %}{% endfor %}",
    "{% for a in [ctx.x, []] if a in [[ctx.y]] %}{{ a }}{% endfor %}{% for a in ctx.y if a %}{{ a }}{% endfor %}",
    "{% set x = [] %}{% for a in ctx.x %}{% set x = [a] %}{% for b in x if b %}{{ b }}{% endfor %}{% endfor %}{{ x }}",
    "{% if ctx.a %}{% set x = [ctx.b] %}{% endif %}{% for a in x if a %}{{ a }}{% endfor %}{{ x }}",
    "{% set x %}{% for a in ctx.x if a > 1 and a < 5 %}{{ a }}{% endfor %}{% endset %}{{ x | upper }}",
    "{{ 1 < ctx.a < 3 <= ctx.b }}",
    "{{ (ctx.a or ctx.b) and (ctx.c if ctx.d else [ctx.e]) }}",
]


@pytest.mark.parametrize("template", TEMPLATES)
def test_what_templates_become_is_valid(template: str) -> None:
    prove(lower_template(parse_template(template)).expression, {})


def test_for_blocks_with_conditions_are_valid_however_deep() -> None:
    depth = 20
    blocks = "".join(f"{{% for a{n} in a{n - 1} if a{n} %}}{{% set l{n} = [a{n}] %}}" for n in range(1, depth + 1))

    prove(lower_template(parse_template(f"{blocks}{{{{ a1 }}}}{'{% endfor %}' * depth}")).expression, {})


_FILTERED = "{% for x in ctx.rows if x %}{{ x }}{% endfor %}"


@pytest.mark.parametrize("count", [1, 16, 17, 200])
def test_a_for_block_with_a_condition_is_valid_after_many_other_lists(count: int) -> None:
    outside = "".join(f"{{% set a{n} = [ctx.b] %}}" for n in range(count))
    inside = "".join(f"{{% set b{n} = [ctx.b] %}}" for n in range(count))
    for text in (outside + _FILTERED, f"{outside}{{% for y in ctx.rows if y %}}{inside}{_FILTERED}{{% endfor %}}"):
        prove(lower_template(parse_template(text)).expression, {})


@pytest.mark.parametrize("count", [1, 16, 17, 200])
def test_appending_is_valid_with_many_lists_below_on_the_stack(count: int) -> None:
    lists = "LIST 0; " * count
    verify(in_place("loop", f"{lists}LIST 0; CONST 1; APPEND; LIST {count + 1}; RETURN"))


# ---- limits


def test_as_many_values_as_allowed_are_valid() -> None:
    verify(in_place("loop", "CONST 1; " * STACK_MAX + f"LIST {STACK_MAX}; RETURN"))


def test_texts_as_deep_as_allowed_are_valid() -> None:
    verify(
        in_place(
            "loop", "TEXT_BEGIN; " * TEXT_DEPTH_MAX + "TEXT_END; EMIT; " * (TEXT_DEPTH_MAX - 1) + "TEXT_END; RETURN"
        )
    )


def test_for_blocks_as_deep_as_allowed_are_valid() -> None:
    opening = "".join(f"n{level}: NEXT e{level}; ITER; " for level in range(1, FOR_DEPTH_MAX))
    innermost = f"n{FOR_DEPTH_MAX}: NEXT e{FOR_DEPTH_MAX}; POP; JUMP n{FOR_DEPTH_MAX}; "
    closing = "".join(f"e{level}: POP; JUMP n{level - 1}; " for level in range(FOR_DEPTH_MAX, 1, -1))

    verify(in_place("loop", f"CONST []; ITER; {opening}{innermost}{closing}e1: RETURN"))


def test_code_with_very_many_joins_is_proven() -> None:
    branches = "".join(f"NAME ctx; JUMP_IF l{n}; CONST 1; POP; l{n}: " for n in range(20_000))

    verify(in_place("loop", f"{branches}CONST 1; RETURN"))


def test_a_playbook_of_many_steps_is_valid() -> None:
    verify(with_debug(chain(50)))


# ---- errors


def test_an_error_says_section_place_and_reason() -> None:
    error = refusal(in_place("arc args", "CONST 1; ADD; RETURN"))

    assert str(error) == (
        "V010: expressions, at 1: `start/arc.1/args`: more is taken off the stack than lies on it: "
        "ADD takes 2, there are 1"
    )


def test_an_error_in_a_pipelines_expression_names_instruction_and_operand() -> None:
    error = refusal(in_place("rule", "NAME event; TRUTH; RETURN"))

    assert (error.section, error.offset) == ("expressions", 0)
    assert error.reason.startswith("`start/tool.2.0`: ")


def test_an_error_in_a_loop_or_arc_names_it() -> None:
    by_code = {case.code: refusal(case.make()).reason for case in nets.CASES}

    assert by_code["V084"].startswith("`start/loop.3`: ")
    assert by_code["V080"].startswith("`start/arc.1`: ")


def test_an_error_in_a_child_playbook_names_its_path() -> None:
    text = (
        '.playbook "main" "main"\n.entry "a"\n.step "a"\n'
        '.playbook "child" "child"\n.entry "b"\n.step "b"\n.admit ( RETURN )'
    )

    assert refusal(assemble(text)).reason.startswith("`child#b/admit`: ")


def test_load_distinguishes_malformed_from_invalid() -> None:
    good = encode(minimal())
    bad = encode(in_place("loop", "CONST 1; CONST 2; RETURN"))

    assert load(good) == minimal()
    with pytest.raises(MalformedBundleError):
        load(good[:-1])
    with pytest.raises(InvalidBundleError):
        load(bad)


def test_a_bundle_without_its_debug_map_is_valid() -> None:
    assert load(encode(with_debug(two_playbooks()), debug=False)).debug is None


def test_the_type_of_opcode_names_has_exactly_the_names_of_the_table() -> None:
    assert set(get_args(OpcodeName)) == {opcode.name for opcode in OPCODES}


ROOT = Path(noetlvm.__file__).parents[1]
OF_BYTECODE = [*ROOT.glob("noetlc/**/*.py"), *ROOT.glob("noetlvm/**/*.py")]


@pytest.mark.parametrize(
    "file",
    [file for file in OF_BYTECODE if "opcode" in file.read_text(encoding="utf-8")],
    ids=lambda file: str(file.relative_to(ROOT)),
)
def test_names_that_code_compares_an_opcode_with_are_in_the_table(file: Path) -> None:
    """Mypy checks `==` against the names; in a tuple after `in` they would be plain texts."""
    compared = {
        item.value
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn)
        for item in getattr(node.comparators[0], "elts", [])
        if isinstance(item, ast.Constant) and isinstance(item.value, str) and item.value.isupper()
    }
    assert compared <= set(get_args(OpcodeName))
