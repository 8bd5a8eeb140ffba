"""Templates to stack code."""

from __future__ import annotations

import pytest

from noetlc.codegen.expressions import lower_guard, lower_template, lower_value, lower_verdict
from noetlc.codegen.stack_code import LoweringError
from noetlc.syntax.nodes import Mapping, Scalar, Sequence
from noetlc.syntax.span import Span
from noetlc.syntax.template_parser import parse_template
from noetlc.syntax.yaml_reader import read_document
from tests.noetlc.codegen.listing import listing, lowered

CTX = frozenset({"ctx"})


@pytest.mark.parametrize(
    ("template", "code"),
    [
        # names and data
        ("{{ ctx.user.name }}", "NAME 'ctx'; ATTR 'user'; ATTR 'name'"),
        ("{{ user }}", "BARE 'user'"),
        ("{{ outcome.status }}", "BARE 'outcome'; ATTR 'status'"),  # not visible here, so a bare name
        ("{{ ctx['a b'] }}", "NAME 'ctx'; ATTR 'a b'"),
        ("{{ ctx[key] }}", "NAME 'ctx'; BARE 'key'; ITEM"),
        ("{{ ctx.rows.0 }}", "NAME 'ctx'; ATTR 'rows'; CONST 0; ITEM"),
        ("{{ ctx[1:] }}", "NAME 'ctx'; CONST 1; CONST None; CONST None; SLICE"),
        ("{{ ctx[a:b:c] }}", "NAME 'ctx'; BARE 'a'; BARE 'b'; BARE 'c'; SLICE"),
        ("{{ ctx[1:2, 3] }}", "NAME 'ctx'; POP; UNDEFINED 'ctx[1:2, 3]'"),
        ("{{ [a, 1] }}", "BARE 'a'; CONST 1; LIST 2"),
        ("{{ (a, 1) }}", "BARE 'a'; CONST 1; TUPLE 2"),
        ("{{ {'k': a, b: 1} }}", "CONST 'k'; BARE 'a'; BARE 'b'; CONST 1; MAP 2"),
        # operators
        ("{{ a + b * c }}", "BARE 'a'; BARE 'b'; BARE 'c'; MUL; ADD"),
        ("{{ a - b / c // d % e ** f }}", "BARE 'a'; BARE 'b'; BARE 'c'; DIV; BARE 'd'; FLOORDIV; BARE 'e'; "
         "BARE 'f'; POW; MOD; SUB"),
        ("{{ -a }}", "BARE 'a'; NEG"),
        ("{{ +a }}", "BARE 'a'; POS"),
        ("{{ a ~ 'x' ~ b }}", "BARE 'a'; CONST 'x'; BARE 'b'; CONCAT 3"),
        ("{{ not a }}", "BARE 'a'; NOT"),
        ("{{ a == b }}", "BARE 'a'; BARE 'b'; COMPARE '=='"),
        ("{{ a not in [1, 2] }}", "BARE 'a'; CONST [1, 2]; COMPARE 'not in'"),
        ("{{ a in (1, 2) }}", "BARE 'a'; CONST [1, 2]; COMPARE 'in'"),
        ("{{ a < b <= c }}", "BARE 'a'; BARE 'b'; DUP; ROT3; COMPARE '<'; KEEP_UNLESS 9; BARE 'c'; COMPARE '<='; "
         "JUMP 11; SWAP; POP"),
        ("{{ a and b and c }}", "BARE 'a'; KEEP_UNLESS 5; BARE 'b'; KEEP_UNLESS 5; BARE 'c'"),
        ("{{ a or b }}", "BARE 'a'; KEEP_IF 3; BARE 'b'"),
        ("{{ b if a else c }}", "BARE 'a'; JUMP_UNLESS 4; BARE 'b'; JUMP 5; BARE 'c'"),
        ("{{ b if not a else c }}", "BARE 'a'; JUMP_IF 4; BARE 'b'; JUMP 5; BARE 'c'"),
        ("{{ b if a }}", "BARE 'a'; JUMP_UNLESS 4; BARE 'b'; JUMP 5; UNDEFINED 'b if a'"),
        # calls
        ("{{ a | upper }}", "BARE 'a'; FILTER 'upper' 0 [] 0"),
        ("{{ a | default(1, boolean=b) }}", "BARE 'a'; CONST 1; BARE 'b'; FILTER 'default' 1 ['boolean'] 0"),
        ("{{ a | format(*b, **c) }}", "BARE 'a'; BARE 'b'; BARE 'c'; FILTER 'format' 0 [] 3"),
        ("{{ a is defined }}", "BARE 'a'; TEST 'defined' 0 [] 0"),
        ("{{ a is not divisibleby 3 }}", "BARE 'a'; CONST 3; TEST 'divisibleby' 1 [] 0; NOT"),
        ("{{ range(3) }}", "CONST 3; CALL 'range' 1 [] 0"),
        ("{{ dict(a, x=1, **b) }}", "BARE 'a'; CONST 1; BARE 'b'; CALL 'dict' 1 ['x'] 2"),
        ("{{ a.split(',') }}", "BARE 'a'; CONST ','; METHOD 'split' 1 [] 0"),
        # text
        ("hello {{ a }}!", "TEXT_BEGIN; EMIT_CONST 'hello '; BARE 'a'; EMIT; EMIT_CONST '!'; TEXT_END"),
        (" {{ a }}", "TEXT_BEGIN; EMIT_CONST ' '; BARE 'a'; EMIT; TEXT_END"),
        ("{{ a }}\n", "BARE 'a'"),
        ("{% raw %}{{ a }}{% endraw %}", "CONST '{{ a }}'"),
        ("{# only a remark #}", "CONST ''"),
    ],
)  # fmt: skip
def test_code_of(template: str, code: str) -> None:
    assert lowered(template) == code


@pytest.mark.parametrize(
    ("template", "code"),
    [
        ("{% if a %}x{% endif %}", "BARE 'a'; JUMP_UNLESS 4; EMIT_CONST 'x'"),
        ("{% if a %}x{% elif b %}y{% else %}z{% endif %}", "BARE 'a'; JUMP_UNLESS 5; EMIT_CONST 'x'; JUMP 10; "
         "BARE 'b'; JUMP_UNLESS 9; EMIT_CONST 'y'; JUMP 10; EMIT_CONST 'z'"),
        ("{% if true %}x{% else %}y{% endif %}", "EMIT_CONST 'x'"),
        ("{% if a %}x{% elif true %}y{% elif b %}z{% endif %}", "BARE 'a'; JUMP_UNLESS 5; EMIT_CONST 'x'; JUMP 6; "
         "EMIT_CONST 'y'"),
        ("{% for x in a %}{{ x }}{% endfor %}", "BARE 'a'; ITER; NEXT 8; STORE 0; LOCAL 0; EMIT; JUMP 3; POP"),
        ("{% for x in a %}{% else %}-{% endfor %}", "BARE 'a'; ITER; NEXT 6; STORE 0; JUMP 3; JUMP_IF 8; "
         "EMIT_CONST '-'"),
        ("{% for x, (y, z) in a %}{{ z }}{% endfor %}", "BARE 'a'; ITER; NEXT 12; UNPACK 2; STORE 0; UNPACK 2; "
         "STORE 1; STORE 2; LOCAL 2; EMIT; JUMP 3; POP"),
        ("{% for x in a if x %}{{ loop.index }}{% endfor %}", "BARE 'a'; LIST 0; STORE 0; ITER; NEXT 16; DUP; "
         "STORE 1; STORE 2; LOCAL 2; JUMP_UNLESS 5; LOCAL 0; LOCAL 1; APPEND; STORE 0; JUMP 5; POP; LOCAL 0; ITER; "
         "NEXT 25; STORE 3; LOOP 0; ATTR 'index'; EMIT; JUMP 19; POP"),
        ("{% set x = 1 %}{{ x }}", "CONST 1; STORE 0; LOCAL 0; EMIT"),
        ("{% set x, y = a %}{{ y }}", "BARE 'a'; UNPACK 2; STORE 0; STORE 1; LOCAL 1; EMIT"),
        ("{% set x %}t{{ a }}{% endset %}{{ x }}", "TEXT_BEGIN; EMIT_CONST 't'; BARE 'a'; EMIT; TEXT_END; STORE 0; "
         "LOCAL 0; EMIT"),
        ("{% set x | upper | trim %}t{% endset %}", "TEXT_BEGIN; EMIT_CONST 't'; TEXT_END; FILTER 'upper' 0 [] 0; "
         "FILTER 'trim' 0 [] 0; STORE 0"),
    ],
)  # fmt: skip
def test_statements_add_to_a_text(template: str, code: str) -> None:
    assert lowered(template) == f"TEXT_BEGIN; {code}; TEXT_END"


@pytest.mark.parametrize(
    ("template", "reads"),
    [
        ("{{ x }}{% set x = 1 %}{{ x }}", ["BARE 'x'", "LOCAL 0"]),  # before it is set, a name comes from outside
        ("{% set ctx = 1 %}{{ ctx }}", ["LOCAL 0"]),
        ("{% for x in x %}{{ x }}{% endfor %}{{ x }}", ["BARE 'x'", "LOCAL 0", "BARE 'x'"]),
        ("{% for i in a %}{{ x }}{% set x = i %}{% endfor %}{{ x }}", ["BARE 'a'", "BARE 'x'", "LOCAL 0", "BARE 'x'"]),
        # only some paths assign: the others keep the outer meaning, which is stored before the branches part
        ("{% if a %}{% set x = 1 %}{% endif %}{{ x }}", ["BARE 'x'", "BARE 'a'", "LOCAL 0"]),
        ("{% if a %}{% set x = 1 %}{% else %}{% set x = 2 %}{% endif %}{{ x }}", ["BARE 'a'", "LOCAL 0"]),
        ("{% set x %}{% set y = 1 %}{{ y }}{% endset %}{{ y }}", ["LOCAL 0", "BARE 'y'"]),
        ("{% for i in a %}{% else %}{% set x = 1 %}{% endfor %}{{ x }}", ["BARE 'a'", "BARE 'x'"]),
        ("{{ loop }}", ["BARE 'loop'"]),
        ("{% for i in a %}{% for j in loop %}{{ loop }}{% endfor %}{{ loop }}{% endfor %}",
         ["BARE 'a'", "LOOP 0", "LOOP 0", "LOOP 0"]),
        # the test of an inner block still sees the outer block's loop, over one more iterator
        ("{% for i in a %}{% for j in i if loop.first %}{% endfor %}{% endfor %}",
         ["BARE 'a'", "LOCAL 0", "LOOP 1", "LOCAL 1", "LOCAL 2", "LOCAL 1"]),
    ],
)  # fmt: skip
def test_names_are_read_as_jinja_scopes_them(template: str, reads: list[str]) -> None:
    words = ("BARE", "LOCAL", "LOOP", "NAME")
    assert [line for line in lowered(template).split("; ") if line.startswith(words)] == reads


def test_no_local_variable_is_read_before_it_is_stored() -> None:
    code = lowered("{% if a %}{% if b %}{% set x = 1 %}{% endif %}{% set y = 2 %}{% endif %}{{ x }}{{ y }}").split("; ")
    assert code[1:5] == ["BARE 'x'", "STORE 0", "BARE 'y'", "STORE 1"]


@pytest.mark.parametrize(
    "template",
    [
        "{{ a",
        "{% macro m() %}{% endmacro %}",
        "{{ a | attr('b') }}",
        "{{ a is callable }}",
        "{{ a.__class__() }}",
        "{{ namespace() }}",
        "{{ a()() }}",
        "{% set range = 1 %}{{ range(3) }}",
        "{% for x in a recursive %}{{ loop(x) }}{% endfor %}",
        "{% for loop in a %}{% endfor %}",
        "{% for x in a %}{% set loop = 1 %}{% endfor %}",
        "{% set a.b = 1 %}",
    ],
)
def test_what_has_no_code_is_refused_with_a_place_and_a_remedy(template: str) -> None:
    with pytest.raises(LoweringError) as refused:
        lower_template(parse_template(template))
    assert 0 <= refused.value.span.start <= refused.value.span.end <= len(template)
    assert refused.value.message
    assert refused.value.help


def test_each_instruction_knows_where_it_was_written() -> None:
    text = "{{ ctx.a + ctx.b | upper }}"
    code = lower_template(parse_template(text))
    words = [text[offset:].split()[0] for offset in code.offsets]
    assert words == ["ctx.a", "a", "ctx.b", "b", "upper", "ctx.a", "{{"]


def test_a_guard_ends_in_the_truth_of_its_value() -> None:
    scalar = Scalar(Span(0, 4), True, "true", "")
    assert listing(lower_guard(scalar, "true", CTX).expression) == ["CONST True", "TRUTH", "RETURN"]
    assert listing(lower_template(parse_template("{{ a }}"), guard=True).expression)[-2:] == ["TRUTH", "RETURN"]


def test_required_templates_fail_when_undefined_and_name_the_field() -> None:
    assert lowered("{{ ctx.a }}", require="url") == "NAME 'ctx'; ATTR 'a'; REQUIRE 'url'"
    assert lowered("{{ 1 }}", require="url") == "CONST 1"


def test_required_texts_require_each_value_put_into_them() -> None:
    code = lowered("/{{ ctx.a }}/{{ 'b' }}", require="url")
    assert code == "TEXT_BEGIN; EMIT_CONST '/'; NAME 'ctx'; ATTR 'a'; REQUIRE 'url'; EMIT; EMIT_CONST '/'; " \
        "EMIT_CONST 'b'; TEXT_END"  # fmt: skip


def _value(text: str) -> Scalar | Sequence | Mapping:
    node = read_document(text).root
    assert node is not None
    return node


def test_a_value_without_templates_is_one_constant() -> None:
    text = "{a: [1, x], b: {c: null}}"
    code = lower_value(_value(text), text, CTX).expression
    assert listing(code) == ["CONST {'a': [1, 'x'], 'b': {'c': None}}", "RETURN"]


def test_a_value_is_built_around_its_templates_and_each_is_required_by_its_path() -> None:
    text = 'a: ["{{ ctx.x }}", {b: 1}]\nc: {d: "{{ ctx.y }}", e: [2]}\n'
    code = lower_value(_value(text), text, CTX, "args")
    assert listing(code.expression) == [
        "NAME 'ctx'", "ATTR 'x'", "REQUIRE 'args.a[0]'", "CONST {'b': 1}", "LIST 2",
        "NAME 'ctx'", "ATTR 'y'", "REQUIRE 'args.c.d'", "CONST [2]", "RECORD ['d', 'e']",
        "RECORD ['a', 'c']", "RETURN",
    ]  # fmt: skip
    assert text[code.offsets[6] :].startswith("y }}")


def test_a_refused_template_in_a_value_is_placed_in_the_file() -> None:
    text = 'a: "x {{ b | attr(1) }}"\n'
    with pytest.raises(LoweringError) as refused:
        lower_value(_value(text), text, CTX)
    assert text[refused.value.span.start : refused.value.span.end] == "b | attr(1)"


def test_a_verdict_is_that_of_the_first_rule_that_holds() -> None:
    text = '["{{ a }}", "{{ b }}"]'
    rules = _value(text)
    assert isinstance(rules, Sequence)
    first, second = rules.items
    assert isinstance(first, Scalar)
    assert isinstance(second, Scalar)
    code = lower_verdict([(first, True), (second, False), (None, True)], rules.span, text, CTX)
    assert "; ".join(listing(code.expression)) == (
        "BARE 'a'; TRUTH; JUMP_UNLESS 5; CONST True; JUMP 11; "
        "BARE 'b'; TRUTH; JUMP_UNLESS 10; CONST False; JUMP 11; CONST True; TRUTH; RETURN"
    )
    none_holds = lower_verdict([(first, True)], rules.span, text, CTX)
    assert listing(none_holds.expression)[-3:] == ["CONST False", "TRUTH", "RETURN"]
