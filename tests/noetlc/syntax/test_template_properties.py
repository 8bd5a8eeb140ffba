"""Properties of template parsing over generated text, with Jinja2's own parser as the oracle."""

from __future__ import annotations

import warnings
from typing import Any

import jinja2
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from jinja2 import nodes

from noetlc.syntax import template_ast as ast
from noetlc.syntax.template_parser import parse_template
from noetlvm.record import fields_of
from tests.noetlc.syntax.whole_templates import print_template, same_tree

pytestmark = pytest.mark.filterwarnings("ignore:.*invalid escape sequence:DeprecationWarning")

ENVIRONMENT = jinja2.Environment()


def words(text: str) -> list[str]:
    return text.split()


RESERVED = frozenset(words("and or not in is if else true false none True False None"))
NAMES = st.sampled_from(words("a b ctx outcome status x1 _y größe"))
BINARY_OPERATORS = [*words("+ - * / // % ** ~ == != < <= > >= in and or if"), "not in"]
NUMBERS = words("0 00 1 42 1_000 0x1F 0b10 0o17 1.5 1e3 2.5E-1 1_0.0_1")
CONSTANTS = words("true True false False none None () [] {}")
STRINGS = ["'s'", '"d"', r"'it\'s\n\u00e9\x41'", "'a' \"b\"", "'}}'", "'{{ x'"]
LITERALS = st.sampled_from([*NUMBERS, *CONSTANTS, *STRINGS])


def join(*parts: str | st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.tuples(*(st.just(part) if isinstance(part, str) else part for part in parts)).map("".join)


def larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Build around smaller expressions, without parentheses unless requested: precedence decides what comes out."""
    listed = st.lists(inner, max_size=3).map(", ".join)
    keyword = join(NAMES, "=", inner)
    argument = st.one_of(inner, keyword, join("*", inner), join("**", inner))
    arguments = st.lists(argument, max_size=3).map(lambda items: f"({', '.join(items)})")
    test_name = st.sampled_from(words("defined none in divisibleby sameas my.test true"))
    optional = st.one_of(st.just(""), inner)
    return st.one_of(
        join("(", inner, ")"),
        join(inner, " ", st.sampled_from(BINARY_OPERATORS), " ", inner),
        join(inner, " if ", inner, " else ", inner),
        join("not ", inner),
        join(st.sampled_from("-+"), inner),
        join(inner, ".", st.one_of(NAMES, st.sampled_from(words("if in is not 0 12 items")))),
        join(inner, "[", inner, "]"),
        join(inner, "[", optional, ":", optional, st.one_of(st.just(""), join(":", optional)), "]"),
        join(inner, "[", inner, ", ", optional, ":", optional, "]"),
        join(inner, arguments),
        join(inner, " | ", st.sampled_from(words("upper default my.filter")), st.one_of(st.just(""), arguments)),
        join(inner, st.sampled_from([" is ", " is not "]), test_name, st.one_of(st.just(""), arguments)),
        join(inner, st.sampled_from([" is ", " is not "]), test_name, " ", inner),
        join("[", listed, "]"),
        join("(", inner, ", ", listed, ")"),
        join("(", inner, ",)"),
        join("{ ", inner, ": ", inner, "}"),
    )


EXPRESSIONS = st.recursive(st.one_of(NAMES, LITERALS), larger, max_leaves=12)


def statements(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    sign = st.sampled_from(["", "-", "+"])

    def tag(*parts: str | st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        return join("{%", sign, " ", *parts, " ", sign, "%}")

    targets = st.sampled_from(["x", "x, y", "(x, y)", "x, (y, z)"])
    otherwise = st.one_of(st.just(""), join(tag("else"), inner))
    return st.one_of(
        join(inner, inner),
        join(tag("if ", EXPRESSIONS), inner, otherwise, tag("endif")),
        join(tag("if ", EXPRESSIONS), inner, tag("elif ", EXPRESSIONS), inner, otherwise, tag("endif")),
        join(tag("for ", targets, " in ", EXPRESSIONS), inner, otherwise, tag("endfor")),
        join(tag("for ", targets, " in ", NAMES, " if ", EXPRESSIONS, " recursive"), inner, tag("endfor")),
        tag("set ", targets, " = ", EXPRESSIONS),
        tag("set ns.x = ", EXPRESSIONS),
        join(tag("set x | upper | default(1)"), inner, tag("endset")),
        join(tag("raw"), "{{ x }} {#\n", tag("endraw")),
        join("{#", sign, " {{ note }} ", sign, "#}"),
        join("{{", st.sampled_from(["", "-"]), " ", EXPRESSIONS, " ", st.sampled_from(["", "-"]), "}}"),
    )


TEMPLATES = st.recursive(
    st.sampled_from(["", " ", "text", " a\n", "\n\n", "\r\n b", "{ ", "}}", "%"]), statements, max_leaves=6
)
MARKS = words("{{ }} {{- -}} {% %} {%- -%} {# #} } {")
SIGNS = words("( ) [ ] ' \" \\ , . : | = == ! && || ? ~ - * **")
STATEMENT_WORDS = words("if elif else endif for in endfor set endset raw endraw macro endmacro recursive")
OTHERS = [*words("is not and or a b 1 2.5 true 's' {{a}}"), "{% if", "{% endif %}", "\n", "\x00", "\ud800", "é", "“"]
SOUP = st.lists(st.sampled_from([" ", *MARKS, *SIGNS, *STATEMENT_WORDS, *OTHERS]), max_size=40).map("".join)


def theirs(node: Any) -> Any:
    """Return a Jinja2 tree as nested lists."""
    if isinstance(node, list):
        return [theirs(item) for item in node]
    if not isinstance(node, nodes.Node):
        return (type(node), node)
    if isinstance(node, nodes.Name) and node.name in RESERVED:
        raise jinja2.TemplateSyntaxError("a reserved word as a name", 1)
    if isinstance(node, nodes.Test) and any(getattr(arg, "name", "") == "recursive" for arg in node.args):
        raise jinja2.TemplateSyntaxError("the word for a recursive loop as a test's argument", 1)
    if isinstance(node, nodes.If):
        branches = [(theirs(branch.test), parts_of_theirs(branch.body)) for branch in (node, *node.elif_)]
        return ("If", branches, parts_of_theirs(node.else_))
    if isinstance(node, nodes.For):
        head = (theirs(node.target), theirs(node.iter), theirs(node.test), node.recursive)
        return ("For", head, parts_of_theirs(node.body), parts_of_theirs(node.else_))
    if isinstance(node, nodes.AssignBlock):
        return ("SetBlock", theirs(node.target), theirs(node.filter), parts_of_theirs(node.body))
    if isinstance(node, nodes.NSRef):
        return ("Getattr", ("Name", (str, node.name)), (str, node.attr))
    if isinstance(node, nodes.TemplateData):
        return ("Data", node.data)
    names = [name for name in node.fields if name != "ctx"]
    return (type(node).__name__, *(theirs(getattr(node, name)) for name in names))


def parts_of_theirs(body: list[nodes.Node]) -> list[Any]:
    parts: list[Any] = []
    for node in body:
        parts += map(theirs, node.nodes) if isinstance(node, nodes.Output) else [theirs(node)]
    return parts


BINARY = {"+": "Add", "-": "Sub", "*": "Mul", "/": "Div", "//": "FloorDiv", "%": "Mod", "**": "Pow"}
COMPARISONS = {
    "==": "eq", "!=": "ne", "<": "lt", "<=": "lteq", ">": "gt", ">=": "gteq", "in": "in", "not in": "notin"
}  # fmt: skip


def ours(node: Any) -> Any:
    """Return our tree in the shape that `theirs` gives."""
    if isinstance(node, tuple):
        return [ours(item) for item in node]
    if not isinstance(node, ast.Node):
        return (type(node), node)
    return OURS.get(type(node), ours_by_fields)(node)


def ours_by_fields(node: Any) -> Any:
    fields = [name for name in fields_of(type(node)) if not name.endswith("span")]
    return (type(node).__name__, *(ours(getattr(node, name)) for name in fields))


def folded(kind: str, operands: tuple[ast.Expression, ...]) -> Any:
    result = ours(operands[0])
    for operand in operands[1:]:
        result = (kind, result, ours(operand))
    return result


OURS: dict[type[Any], Any] = {
    ast.And: lambda node: folded("And", node.operands),
    ast.Or: lambda node: folded("Or", node.operands),
    ast.Binary: lambda node: (BINARY[node.op], ours(node.left), ours(node.right)),
    ast.Comparand: lambda node: ("Operand", (str, COMPARISONS[node.op]), ours(node.expression)),
    ast.Cond: lambda node: ("CondExpr", ours(node.test), ours(node.then), ours(node.otherwise)),
    ast.Output: lambda node: ours(node.expression),
    ast.Data: lambda node: ("Data", node.text),
    ast.Set: lambda node: ("Assign", ours(node.target), ours(node.value)),
    ast.If: lambda node: ("If", [(ours(b.test), ours(b.body)) for b in node.branches], ours(node.otherwise)),
    ast.For: lambda node: (
        "For",
        (ours(node.target), ours(node.iterable), ours(node.test), node.recursive),
        ours(node.body),
        ours(node.otherwise),
    ),
}


def parsed_by_jinja2(text: str) -> list[Any] | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            return parts_of_theirs(ENVIRONMENT.parse(text).body)
        except jinja2.TemplateSyntaxError:
            return None


def assert_agrees(text: str) -> None:
    template = parse_template(text)
    expected = parsed_by_jinja2(text)
    if expected is None:
        assert template.problems, "Jinja2 refuses this"
    else:
        assert not template.problems
        assert ours(template.parts) == expected


@settings(max_examples=600, deadline=None)
@given(EXPRESSIONS)
@example("a if b else c if d")
@example("a if b if c")
@example("2 ** 3 ** -x | abs")
@example("-x.y(1)[2] | f(1)(2) is foo(3)(4)")
@example("a | f(1).b")
@example("a is in b.c[0](1) | upper")
@example("a is foo is bar")
@example("a is defined if b else c")
@example("a is foo(1) if b else c")
@example("not a is not in b in c")
@example("a.0.1.b, ")
@example("a[]")
@example("a[1,]")
@example("a[::], b[:, 1:2:3]")
@example("f(a, *b, c=1, **d,)")
@example("f(a=1, b)")
@example("f(**a, b=1)")
@example("f(if=1, not=2, true=3)")
@example("'a' 'b' \"c\" ~ 'd' 'e'")
@example("{'a': {'b': {}}}")
@example("recursive.x")
@example("1.foo")
@example("1 .5")
@example("007")
@example("a < b <= c not in d == e")
@example("[a, b,]")
@example("[,]")
@example("{'a': 1,}")
@example("a ~ b + c ~ d * e")
@example("")
def test_an_expression_parses_as_jinja2_parses_it(text: str) -> None:
    assert_agrees(f"{{{{ {text} }}}}")


@settings(max_examples=300, deadline=None)
@given(TEMPLATES)
@example("{% set a = b %}{% set c %}{% set d = 1 %}{% endset %}\n")
@example("{% for (a), b in c, d recursive: %}{% else: %}{% endfor %}")
@example("a {%- raw -%} {{ b }} {%- endraw -%} c")
@example("a {#- b -#} c {#+ d +#} e")
@example("{{-1}} {{+1}} {{--1}}")
@example("x\n")
@example("x\r\n\r\n")
@example("{{ x }}\n")
@example("{% if a, b %}{% endif %}")
@example("{% if a if b else c %}{% endif %}")
@example("{% for x in (a if b else c) if d if e else f %}{% endfor %}")
@example("{% set x | a | b(1) %}{% endset %}")
@example("{% for x in a if a is defined recursive %}{% endfor %}")
@example("{% for x in recursive if recursive recursive %}{% endfor %}")
def test_a_template_parses_as_jinja2_parses_it(text: str) -> None:
    assert_agrees(text)


@settings(max_examples=300, deadline=None)
@given(st.one_of(SOUP, st.text(), st.text("{}%#- '\"a", max_size=30), EXPRESSIONS.map("{{{{{}}}".format)))
@example("{{ '\\N{' }}")
@example("{{ '\\")
@example("{% set")
@example("{% for %}{% if %}{% else if a %}{% set b %}{% endfor %}")
@example("{{ {{ {% {# {{ ")
@example("\ud800{{ '\ud800' ~ \ud800 }}")
@example("{{ 1" + "0" * 5000 + " }}")
@example("{{ 0x1" + "0" * 5000 + " }}")
@example("{{ ² }}")
def test_any_text_gives_a_tree_that_prints_and_reads_back(text: str) -> None:
    template = parse_template(text)
    assert template.text == text
    for problem in template.problems:
        assert 0 <= problem.span.start <= problem.span.end <= len(text)
        assert problem.message
        assert problem.help
    assert same_tree(parse_template(print_template(template)), template)


@settings(max_examples=200, deadline=None)
@given(st.one_of(EXPRESSIONS.map("{{{{ {} }}}}".format), TEMPLATES))
def test_printing_and_reading_gives_the_same_tree(text: str) -> None:
    template = parse_template(text)
    again = parse_template(print_template(template))
    assert same_tree(again, template)
    assert template.problems or not again.problems


@settings(max_examples=200, deadline=None)
@given(EXPRESSIONS)
def test_the_text_under_a_span_is_the_expression(text: str) -> None:
    template = parse_template(f"{{{{ {text} }}}}")
    for node in ast.walk(template):
        assert template.span.start <= node.span.start <= node.span.end <= template.span.end
        for child in ast.children(node):
            assert node.span.start <= child.span.start
            assert child.span.end <= node.span.end
        if isinstance(node, (ast.Name, ast.Getattr)):
            assert template.text[slice(*node.name_span)] == node.name
        if template.problems or not isinstance(node, ast.Expression) or isinstance(node, (ast.Slice, ast.Error)):
            continue
        if isinstance(node, ast.Tuple) and any(isinstance(item, ast.Slice) for item in node.items):
            continue
        again = parse_template(f"{{{{ {template.text[slice(*node.span)]} }}}}").parts[0]
        assert isinstance(again, ast.Output)
        expression = again.expression
        if isinstance(node, ast.Test) and isinstance(expression, ast.Not):
            expression = expression.node  # `is not` stands inside the test's text
        assert same_tree(expression, node)


@settings(max_examples=300, deadline=None)
@given(SOUP)
def test_no_problems_means_that_jinja2_takes_it_too(text: str) -> None:
    if parse_template(text).problems:
        return
    assert parsed_by_jinja2(text) == ours(parse_template(text).parts)
