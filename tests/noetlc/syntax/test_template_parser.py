"""What templates mean, what is wrong with broken ones and where, and that hostile ones cost little."""

from __future__ import annotations

import pytest

from noetlc.syntax import template_ast as ast
from noetlc.syntax.input import EXPRESSION_CHARS_MAX, EXPRESSION_DEPTH_MAX
from noetlc.syntax.lalr import load_grammar
from noetlc.syntax.span import Span
from noetlc.syntax.template_builder import BUILDERS, TREE_HEIGHT_MAX
from noetlc.syntax.template_parser import PROBLEMS_MAX, parse_template
from tests.noetlc.syntax.whole_templates import same_tree


def expression(text: str) -> ast.Expression:
    template = parse_template(f"{{{{ {text} }}}}")
    assert template.problems == ()
    (part,) = template.parts
    assert isinstance(part, ast.Output)
    return part.expression


def test_every_label_of_the_grammar_has_a_builder() -> None:
    productions = load_grammar("expression").productions
    labels = {production.label for production in productions if not production.inlined and not production.passes}
    collapsing = {production.name for production in productions if production.collapses}
    built = set(BUILDERS)
    assert built <= labels
    assert labels - built <= collapsing


# ---- spans


@pytest.mark.parametrize(
    ("text", "kind", "under"),
    [
        ("(a + b) * c", ast.Binary, ["(a + b) * c", "(a + b)"]),
        ("a.b.c", ast.Getattr, ["a.b.c", "a.b"]),
        ("x | f(1) | g", ast.Filter, ["x | f(1) | g", "x | f(1)"]),
        ("x is not divisibleby 3", ast.Test, ["x is not divisibleby 3"]),
        ("f(a, k=1, *b)", ast.Keyword, ["k=1"]),
        ("a <b not in c", ast.Comparand, ["<b", "not in c"]),
        ("{'k': [1, 2]}", ast.Pair, ["'k': [1, 2]"]),
        ("'a'  'b' ~ c", ast.Const, ["'a'  'b'"]),
        ("a[1:, ::2]", ast.Slice, ["1:", "::2"]),
        ("f()[()]", ast.Tuple, ["()"]),
        ("a if b else c", ast.Cond, ["a if b else c"]),
        ("- -a", ast.Neg, ["- -a", "-a"]),
    ],
)
def test_a_span_covers_exactly_its_expression(text: str, kind: type[ast.Node], under: list[str]) -> None:
    spans = [node.span for node in ast.walk(expression(text)) if isinstance(node, kind)]
    assert [f"{{{{ {text} }}}}"[slice(*span)] for span in spans] == under


def test_names_of_filters_tests_attributes_and_keywords_have_their_own_spans() -> None:
    text = "{{ (ctx) . total | my . filter(key=1) is not my . test }}"
    found = {
        (type(node).__name__, node.name): text[slice(*node.name_span)]
        for node in ast.walk(parse_template(text))
        if isinstance(node, (ast.Name, ast.Getattr, ast.Filter, ast.Test, ast.Keyword))
    }
    assert found == {
        ("Name", "ctx"): "ctx",
        ("Getattr", "total"): "total",
        ("Filter", "my.filter"): "my . filter",
        ("Keyword", "key"): "key",
        ("Test", "my.test"): "my . test",
    }


def test_blocks_span_from_their_first_mark_to_their_last() -> None:
    text = "a{%- if x %}b{% elif y %}c{% endif -%} d{% for i in z %}{% else %}e{% endfor %}{% set q %}f{% endset %}"
    parts = parse_template(text).parts
    assert [text[slice(*part.span)] for part in parts] == [
        "a",
        "{%- if x %}b{% elif y %}c{% endif -%}",
        "d",
        "{% for i in z %}{% else %}e{% endfor %}",
        "{% set q %}f{% endset %}",
    ]


# ---- text


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("a  {{- x -}}  b", ["a", "b"]),
        ("a {%- if x +%} b {%- endif %} c", ["a", " b", " c"]),
        ("a {#- note -#} b", ["a", "b"]),
        ("{% raw %}{{ x }}{% endraw %}", ["{{ x }}"]),
        ("a {%- raw -%} {{ x }} {%- endraw -%} b", ["a", "{{ x }}", "b"]),
        ("a\r\nb\rc\n", ["a\nb\nc"]),
        ("a\n\n", ["a\n"]),
        ("{{ x }}\n", []),
    ],
)
def test_text_comes_out_as_in_jinja2(text: str, data: list[str]) -> None:
    assert [node.text for node in ast.walk(parse_template(text)) if isinstance(node, ast.Data)] == data


@pytest.mark.parametrize(
    ("text", "single"),
    [
        ("{{ x }}", True),
        ("{{- x -}}", True),
        ("{{ x }}\n", True),
        (" {{ x }}", False),
        ("{{ x }} ", False),
        ("{{ x }}{{ y }}", False),
        ("{# note #}{{ x }}", False),
        ("  {{- x }}", False),
        ("{% if x %}{{ x }}{% endif %}", False),
        ("{{ '{{ x }}' }}", True),
        ("{{ x", True),
        ("", False),
    ],
)
def test_a_single_expression_keeps_its_type(text: str, single: bool) -> None:
    assert parse_template(text).is_single is single


# ---- trees


def test_long_conditions_are_flat() -> None:
    tree = expression(" or ".join(f"a{n} and b ~ c ~ d" for n in range(500)))
    assert isinstance(tree, ast.Or)
    assert len(tree.operands) == 500
    assert all(isinstance(operand, ast.And) and len(operand.operands) == 2 for operand in tree.operands)


def test_statements_nest() -> None:
    text = (
        "{% for a, b in rows if a recursive %}{% if a %}{% set ns.x = b, 1 %}{% else %}{{ b }}{% endif %}{% endfor %}"
    )
    (loop,) = parse_template(text).parts
    assert isinstance(loop, ast.For)
    assert isinstance(loop.target, ast.Tuple)
    assert isinstance(loop.test, ast.Name)
    assert loop.recursive
    (choice,) = loop.body
    assert isinstance(choice, ast.If)
    (assignment,) = choice.branches[0].body
    assert isinstance(assignment, ast.Set)
    assert isinstance(assignment.target, ast.Getattr)
    assert isinstance(assignment.value, ast.Tuple)
    assert isinstance(choice.otherwise[0], ast.Output)


def test_filters_of_a_set_block_begin_with_its_text() -> None:
    (block,) = parse_template("{% set x | trim | default('a') %}b{% endset %}").parts
    assert isinstance(block, ast.SetBlock)
    assert block.filter is not None
    assert block.filter.name == "default"
    assert isinstance(block.filter.node, ast.Filter)
    assert (block.filter.node.name, block.filter.node.node) == ("trim", None)


def test_a_tree_equals_another_but_for_places_and_never_but_for_types() -> None:
    assert same_tree(expression("a+1"), expression(" (a  + (1))"))
    assert not same_tree(expression("a + 1"), expression("a + 1.0"))
    assert not same_tree(expression("true"), expression("1"))
    assert not same_tree(expression("[a]"), expression("[a, b]"))
    assert not same_tree(expression("a | b"), expression("a | c"))


# ---- mistakes


@pytest.mark.parametrize(
    ("text", "kind", "marked", "message", "help"),
    [
        ("{{ a && b }}", "syntax", "&&", "`&&` is not an operator", "write `and`"),
        ("{{ a || b }}", "syntax", "||", "`||` is not an operator", "write `or`"),
        ("{{ !a }}", "syntax", "!", "`!` is not an operator", "write `not`"),
        ("{{ a === b }}", "syntax", "===", "`===` is not an operator", "write `==`"),
        ("{{ a !== b }}", "syntax", "!==", "`!==` is not an operator", "write `!=`"),
        ("{{ a <> b }}", "syntax", "<>", "`<>` is not an operator", "write `!=`"),
        ("{{ a => b }}", "syntax", "=>", "`=>` is not an operator", "`>=`"),
        ("{{ a ? b : c }}", "syntax", "?", "`?` is not an operator", "a if condition else b"),
        ("{{ a = b }}", "syntax", "=", "`=` does not compare", "write `==`"),
        ("{{ $a }}", "syntax", "$", "`$` is not part of a name", "leave it out"),
        ("{{ a; b }}", "syntax", ";", "`;` has no meaning", "second"),
        ("{{ “a” }}", "syntax", "“", "typographic quote", "straight quotes"),
        ("{{ a @ b }}", "syntax", "@", "`@` has no meaning in an expression", "remove it"),
        ("{{ f(a }}", "syntax", "}}", "expected `)` before `}}`", "write `)`"),
        ("{{ [a, b }}", "syntax", "}}", "expected `]` before `}}`", "write `]`"),
        ("{% if f(a %}{% endif %}", "syntax", "%}", "expected `)` before `%}`", "write `)`"),
        ("{{ a) }}", "syntax", ")", "found `)`", "finish the expression"),
        ("{{ (a] }}", "syntax", "]", "expected `)`", "finish the expression"),
        ("{{ a + }}", "syntax", "}}", "expected a value between `+` and `}}`", "write a value"),
        ("{{ }}", "syntax", "}}", "nothing stands here", "write a value"),
        ("{{ a. }}", "syntax", "}}", "expected a name between `.` and `}}`", "attribute's name"),
        ("{{ a | 'x' }}", "syntax", "'x'", "expected a name, found `'x'`", "filter's name"),
        ("{{ a is }}", "syntax", "}}", "expected a name between `is` and `}}`", "test's name"),
        ("{{ a not b }}", "syntax", "b", "expected `in`, found `b`", "`not in`"),
        ("{% set = 1 %}", "syntax", "=", "expected a name after `set`", "{% set name = value %}"),
        ("{% if a %}{% endif a %}", "syntax", "a", "expected `%}`, found `a`", "{% endif %}"),
        ("{{ hello world }}", "syntax", "world", "an operator between `hello` and `world`", "quotes around text"),
        ("{{ a | first.b(1).c }}", "syntax", ".", "`.` cannot follow a filter", "parentheses"),
        ("{{ a is defined if b else c }}", "syntax", "if", "`if` cannot follow `is defined`", "`(a is defined) if …`"),
        ("{{ a is odd is even }}", "syntax", "is", "`is` cannot follow `is odd`", "parentheses"),
        ("{{ f(a=1, b) }}", "syntax", "b", "positional argument after", "before them"),
        ("{{ f(**a, b=1) }}", "syntax", "b=1", "may follow the `**`", "to the end"),
        ("{{ f(*a, *b) }}", "syntax", "*b", "second `*`", "one"),
        ("{{ f(**a, **b) }}", "syntax", "**b", "second `**`", "one"),
        ("{{ ctx.x }", "unclosed", "}", "`{{` is closed with `}`", "write `}}`"),
        ("{{ {'a': 1}}", "unclosed", "}", "`{{` is closed with `}`", "write `} }}`"),
        ("{{ a %}", "unclosed", "%}", "`{{` is closed with `%}`", "write `}}`"),
        ("{% if a }}{% endif %}", "unclosed", "}}", "`{%` is closed with `}}`", "write `%}`"),
        ("{{ ctx.x", "unclosed", "{{", "`{{` is never closed", "write `}}`"),
        ("{{ ctx.x and {{ y }}", "unclosed", "{{", "`{{` is never closed", "write `}}`"),
        ("{{ is how templates begin", "unclosed", "{{", "`{{` is never closed", "write `}}`"),
        ("{% set a = 1", "unclosed", "{%", "`{%` is never closed", "write `%}`"),
        ("{# note", "unclosed", "{#", "the comment is never closed", "write `#}`"),
        ("{% raw %}x", "unclosed", "{% raw %}", "never closed", "endraw"),
        ("{{ 'abc }}", "string", "'", "is never closed", "write '"),
        ("{{ a ~ 'it's' }}", "syntax", "s", "an operator between `'it'` and `s`", "quotes"),
        ("{{ '\\x' }}", "string", "'\\x'", "broken escape", "write `\\\\`"),
        (
            "{% macro f() %}{% endmacro %}",
            "statement",
            "{% macro",
            "does not work in playbooks",
            "`if`, `for` and `set`",
        ),
        ("{% include 'x' %}", "statement", "{% include", "does not work in playbooks", "`if`, `for` and `set`"),
        ("{% fro x in y %}", "statement", "{% fro", "`fro` is not a statement", "did you mean `for`?"),
        ("{% %}", "statement", "{% ", "needs a statement", "`if`"),
        ("{% if a %}{% elseif b %}{% endif %}", "statement", "{% elseif", "`elseif` is not", "write `elif`"),
        ("{% endraw %}", "statement", "{% endraw", "cannot stand", "{% raw %}"),
        ("{% if a %}{% else if b %}{% endif %}", "syntax", "if", "`else` takes no condition", "{% elif"),
        ("{% set a 1 %}", "syntax", "1", "expected `=` after the name", "{% set name = value %}"),
        ("{% set a 1 %}{% endset %}", "syntax", "1", "expected `=`", "{% set"),
        ("{% if a if b else c %}{% endif %}", "syntax", "if", "a condition cannot stand here", "parentheses"),
        ("{% for a of b %}{% endfor %}", "syntax", "of", "expected `,` or `in`, found `of`", "for name in values"),
        ("{% endif a %}", "block", "{% endif", "has no open `{% if %}`", "remove it"),
        ("{% else %}", "block", "{% else", "has no open `{% if %}` or `{% for %}`", "remove it"),
        ("{% if a %}", "block", "{% if", "`{% if %}` is never closed", "{% endif %}"),
        ("{% for a in b %}{% if a %}{% endfor %}", "block", "{% if", "not closed before `{% endfor %}`", "endif"),
        ("{{ 1" + "0" * 5000 + " }}", "size", "1" + "0" * 5000, "5001 digits", "shorter"),
    ],
)
def test_a_mistake_is_explained_where_it_stands(text: str, kind: str, marked: str, message: str, help: str) -> None:
    (problem,) = parse_template(text).problems
    assert problem.kind == kind
    assert text[slice(*problem.span)] == marked
    assert message in problem.message
    assert help in problem.help


def test_the_place_of_a_mistake_is_its_own_not_an_earlier_look_alike() -> None:
    (problem,) = parse_template("a && b {{ c || d }}").problems
    assert problem.span == Span(12, 14)


def test_one_run_finds_the_mistakes_of_every_mark() -> None:
    text = (
        "{{ a && }} {{ ok }} {% if b c %}{{ 'x }} {{ d( }}{% macro m() %}{{ '\\x' }}{% endfor %}"
        "{% for in y %}{{ e }} {% else x %}{{ f }"
    )
    found = [(problem.kind, text[slice(*problem.span)]) for problem in parse_template(text).problems]
    assert found == [
        ("syntax", "&&"),
        ("block", "{% if"),
        ("syntax", "c"),
        ("string", "'"),
        ("syntax", "}}"),
        ("statement", "{% macro"),
        ("string", "'\\x'"),
        ("block", "{% endfor"),
        ("block", "{% for"),
        ("syntax", "in"),
        ("syntax", "x"),
        ("unclosed", "}"),
    ]
    names = {node.name for node in ast.walk(parse_template(text)) if isinstance(node, ast.Name)}
    assert names == {"ok", "e", "f"}


def test_a_runaway_quote_does_not_hide_what_follows() -> None:
    text = "{{ it's }} and {{ it's }} and {{ a b }}"
    assert [problem.kind for problem in parse_template(text).problems] == ["string", "string", "syntax"]


# ---- limits


def height(node: ast.Node) -> int:
    level, count = [node], 0
    while level:
        level = [child for parent in level for child in ast.children(parent)]
        count += 1
    return count


def nested(depth: int) -> str:
    return "{{ " + "(" * depth + "a" + ")" * depth + " }}"


def test_brackets_nest_up_to_the_limit() -> None:
    assert parse_template(nested(EXPRESSION_DEPTH_MAX)).problems == ()
    (problem,) = parse_template(nested(EXPRESSION_DEPTH_MAX + 1)).problems
    assert problem.kind == "depth"
    assert problem.span.start == 3 + EXPRESSION_DEPTH_MAX


def test_blocks_nest_up_to_the_limit() -> None:
    def blocks(depth: int) -> str:
        return "{% if a %}" * depth + "{% endif %}" * depth

    assert parse_template(blocks(EXPRESSION_DEPTH_MAX)).problems == ()
    (problem,) = parse_template(blocks(EXPRESSION_DEPTH_MAX + 1)).problems
    assert problem.kind == "depth"


def test_chains_grow_up_to_the_limit() -> None:
    assert parse_template("{{ " + " + ".join("a" * TREE_HEIGHT_MAX) + " }}").problems == ()
    (problem,) = parse_template("{{ " + " + ".join("a" * (TREE_HEIGHT_MAX + 1)) + " }}").problems
    assert problem.kind == "depth"


def test_text_is_read_up_to_the_limit() -> None:
    text = "{{ a }}".ljust(EXPRESSION_CHARS_MAX)
    assert parse_template(text).problems == ()
    (problem,) = parse_template(text + " ").problems
    assert problem.kind == "size"


@pytest.mark.parametrize(
    "text",
    [
        nested(10_000),
        "{{ " + "(" * 60_000,
        "{{ " + "[" * 30_000 + "]" * 30_000 + " }}",
        "{{ " + "not " * 15_000 + "a }}",
        "{{ " + "-" * 60_000 + "a }}",
        "{{ a" + ".b" * 30_000 + " }}",
        "{{ a" + "|b" * 30_000 + " }}",
        "{{ a" + " if b else c" * 5_000 + " }}",
        "{{ a" + " + a" * 15_000 + " }}",
        "{{ a" + "()" * 30_000 + " }}",
        "{% if a %}" * 6_000,
        "{% for a in b %}" * 4_000,
        "{% set a %}" * 5_000,
        "{% endif %}" * 5_000,
        "{{" * 30_000,
        "{{}}" * 16_000,
        "{{ '" * 10_000,
        "{{ ' }}" + "{{ \\' }}" * 8_000,
        "{{ '}}\" }}" * 7_000,
        "{#" * 30_000,
        "{% raw %}" * 7_000,
        "{%" + " " * 60_000,
        "{% set " + "a" * 60_000,
        "{% set a" * 8_000,
        "{{ " + "1_" * 30_000 + " }}",
        "{{ " + "9" * 60_000 + " }}",
        "\x00" * 60_000 + "{{ \x00 }}",
        "\ud800{{ '\ud800" * 8_000,
        "{{ a }}" * 200_000,
    ],
    ids=lambda text: f"{text[:8]!r}x{len(text)}",
)
def test_hostile_text_gets_few_problems_and_a_low_tree(text: str) -> None:
    template = parse_template(text)
    assert 0 < len(template.problems) <= PROBLEMS_MAX + EXPRESSION_DEPTH_MAX + 1
    assert height(template) <= TREE_HEIGHT_MAX + 2 * EXPRESSION_DEPTH_MAX + 4
