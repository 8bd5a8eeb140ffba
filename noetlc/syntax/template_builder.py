"""Turns the reductions of `grammar/expression.lark` into nodes of the template's tree.

A child is a node, the `Span` of a token, or one of the small tuples below that exist only until their parent is
built. The builder also checks the few things that the grammar leaves to it, and bounds the height of the tree so that
a walk over it may recurse. It does not read tokens or recover: the parser does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from noetlc.syntax import template_ast as ast
from noetlc.syntax.input import EXPRESSION_DEPTH_MAX
from noetlc.syntax.lalr import Production
from noetlc.syntax.span import Span
from noetlvm.record import changed

TREE_HEIGHT_MAX = 2 * EXPRESSION_DEPTH_MAX
"""Levels of one expression's tree: room for chains such as `a + b + …`, which lean to the left, beside the nesting."""

_LINE_BREAK = re.compile(r"\r\n|\r")
_TAKEN_BY_BARE_TEST = {"IF": "if", "IN": "in", "NOT": "not", "IS": "is", "RECURSIVE": "recursive"}


class _Dotted(NamedTuple):
    span: Span
    name: str


class _Arguments(NamedTuple):
    span: Span
    args: tuple[ast.Expression, ...]
    kwargs: tuple[ast.Keyword, ...]
    dyn_args: ast.Expression | None
    dyn_kwargs: ast.Expression | None


class _Subscripts(NamedTuple):
    span: Span
    value: ast.Expression


class _Star(NamedTuple):
    span: Span
    value: ast.Expression


class _DoubleStar(NamedTuple):
    span: Span
    value: ast.Expression


class _ForTest(NamedTuple):
    span: Span
    test: ast.Expression


class _Recursive(NamedTuple):
    span: Span


class _ForHead(NamedTuple):
    span: Span
    target: ast.Expression
    iterable: ast.Expression
    test: ast.Expression | None
    recursive: bool


class _SetHead(NamedTuple):
    span: Span
    target: ast.Expression
    filter: ast.Filter | None


class _Head(NamedTuple):
    span: Span
    test: ast.Expression


class _ElseBody(NamedTuple):
    span: Span
    body: tuple[ast.Part, ...]


class _Body(NamedTuple):
    span: Span | None
    parts: tuple[ast.Part, ...]


Children = list[Any]


def normalised(text: str) -> str:
    """Return text with every line break as a line feed."""
    return _LINE_BREAK.sub("\n", text) if "\r" in text else text


class TreeBuilder:
    """Builds one template's tree."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.problems: list[ast.TemplateProblem] = []
        self.next_terminal = ""
        """The token that the parser is about to shift."""
        self.next_span = Span(0, 0)

    def reduce(self, production: Production, children: Children) -> Any:
        return BUILDERS[production.label](self, children)

    # ---- statements

    def on_if_branch(self, children: Children) -> ast.IfBranch:
        head, body = children
        return ast.IfBranch(Span(head.span.start, (body.span or head.span).end), head.test, body.parts)

    def on_if_block(self, children: Children) -> ast.If:
        branches = tuple(child for child in children if isinstance(child, ast.IfBranch))
        return ast.If(_span(children), branches, _otherwise(children))

    def on_for_head(self, children: Children) -> _ForHead:
        target, iterable = children[1:3]
        test = next((child.test for child in children if isinstance(child, _ForTest)), None)
        recursive = any(isinstance(child, _Recursive) for child in children)
        bounded_test = self._bounded(test) if test else None
        return _ForHead(_span(children), self._bounded(target), self._bounded(iterable), bounded_test, recursive)

    def on_for_block(self, children: Children) -> ast.For:
        head, body = children[:2]
        return ast.For(
            _span(children), head.target, head.iterable, head.test, body.parts, _otherwise(children), head.recursive
        )

    def on_set(self, children: Children) -> ast.Set:
        return ast.Set(_span(children), self._bounded(children[1]), self._bounded(children[2]))

    def on_set_head(self, children: Children) -> _SetHead:
        chain: ast.Filter | None = None
        for item in children[2:-1]:
            chain = changed(item, node=chain, span=Span(_start(chain or item), item.span.end))
        return _SetHead(_span(children), self._bounded(children[1]), self._bounded_filter(chain))

    def on_set_block(self, children: Children) -> ast.SetBlock:
        head, body = children[:2]
        return ast.SetBlock(_span(children), head.target, head.filter, body.parts)

    # ---- operators

    def on_conditional(self, children: Children) -> ast.Cond:
        then, test, *otherwise = children
        return ast.Cond(_span(children), test, then, otherwise[0] if otherwise else None)

    def on_comparison(self, children: Children) -> ast.Compare:
        pairs = zip(children[1::2], children[2::2], strict=True)
        ops = tuple(ast.Comparand(_span((op, right)), op.name, op.span, right) for op, right in pairs)
        return ast.Compare(_span(children), children[0], ops)

    def on_comparison_operator(self, children: Children) -> _Dotted:
        return _Dotted(_span(children), " ".join(self._word(child) for child in children))

    def on_binary(self, children: Children) -> ast.Binary:
        left, op, right = children
        return ast.Binary(_span(children), self._word(op), left, right)

    # ---- filters, tests, calls

    def on_filter(self, children: Children) -> ast.Filter:
        node, dotted, *arguments = children
        span = Span(_start(node or dotted), _end(children[-1]))
        return ast.Filter(span, node, dotted.name, dotted.span, *_unpacked(arguments))

    def on_test(self, children: Children) -> ast.Expression:
        span = _span(children)
        node, *negated, dotted, arguments = children
        test = ast.Test(span, node, dotted.name, dotted.span, *_unpacked([arguments]))
        return ast.Not(span, test) if negated else test

    def on_test_of_value(self, children: Children) -> ast.Expression:
        value = children[-1]
        return self.on_test([*children[:-1], _Arguments(value.span, (value,), (), None, None)])

    def on_bare_test(self, children: Children) -> ast.Expression:
        dotted = children[-1]
        word = _TAKEN_BY_BARE_TEST.get(self.next_terminal)
        if word:
            self._problem(
                "syntax",
                self.next_span,
                f"`{word}` cannot follow `is {dotted.name}` directly: it would be read as the test's argument",
                f"put the test in parentheses: `({self._text[_start(children[0]) : dotted.span.end]}) {word} …`",
            )
        return self.on_test([*children, _Arguments(dotted.span, (), (), None, None)])

    def on_dotted_name(self, children: Children) -> _Dotted:
        return _Dotted(_span(children), ".".join(self._word(child) for child in children))

    def on_call(self, children: Children) -> ast.Call:
        node, arguments = children
        return ast.Call(_span(children), node, *_unpacked([arguments]))

    def on_arguments(self, children: Children) -> _Arguments:
        args: list[ast.Expression] = []
        kwargs: list[ast.Keyword] = []
        stars: list[_Star] = []
        double_stars: list[_DoubleStar] = []
        for item in children:
            if isinstance(item, Span):
                continue
            mistake = _misplaced_argument(item, kwargs, stars, double_stars)
            if mistake:
                self._problem("syntax", item.span, *mistake)
            if isinstance(item, _Star):
                stars.append(item)
            elif isinstance(item, _DoubleStar):
                double_stars.append(item)
            elif isinstance(item, ast.Keyword):
                kwargs.append(item)
            else:
                args.append(item)
        dyn_args = stars[0].value if stars else None
        dyn_kwargs = double_stars[0].value if double_stars else None
        return _Arguments(_span(children), tuple(args), tuple(kwargs), dyn_args, dyn_kwargs)

    def on_keyword(self, children: Children) -> ast.Keyword:
        name, _, value = children
        return ast.Keyword(_span(children), self._word(name), name, value)

    # ---- values

    def on_getattr(self, children: Children) -> ast.Getattr:
        node, name = children
        return ast.Getattr(_span(children), node, self._word(name), name)

    def on_getitem_number(self, children: Children) -> ast.Getitem:
        node, number = children
        return ast.Getitem(_span(children), node, self.on_integer([number]))

    def on_getitem(self, children: Children) -> ast.Getitem:
        node, subscripts = children
        return ast.Getitem(_span(children), node, subscripts.value)

    def on_subscripts(self, children: Children) -> _Subscripts:
        span, items = _span(children), _nodes(children)
        if len(items) == 1:
            return _Subscripts(span, items[0])
        return _Subscripts(span, ast.Tuple(_span(items) if items else span, items))

    def on_slice(self, children: Children) -> ast.Slice:
        bounds: list[ast.Expression | None] = [None, None, None]
        colons = 0
        for child in children:
            if isinstance(child, Span):
                colons += 1
            else:
                bounds[colons] = child
        return ast.Slice(_span(children), *bounds)

    def on_parentheses(self, children: Children) -> ast.Expression:
        inner: ast.Expression = children[1]
        return changed(inner, span=_span(children))

    def on_dict(self, children: Children) -> ast.Dict:
        pairs = tuple(child for child in children if isinstance(child, ast.Pair))
        return ast.Dict(_span(children), pairs)

    def on_string(self, children: Children) -> ast.Expression:
        texts = [self._string_value(span) for span in children]
        if None in texts:
            return ast.Error(_span(children))
        return ast.Const(_span(children), "".join(text for text in texts if text))

    def on_integer(self, children: Children) -> ast.Expression:
        text = self._word(children[0]).replace("_", "")
        try:
            return ast.Const(children[0], int(text, 0))
        except ValueError:  # Python reads only so many decimal digits
            self._problem("size", children[0], f"a number of {len(text)} digits is too long", "write a shorter number")
            return ast.Error(children[0])

    # ---- checks

    def _word(self, span: Span) -> str:
        return self._text[span.start : span.end]

    def _string_value(self, span: Span) -> str | None:
        text = normalised(self._text[span.start + 1 : span.end - 1])
        if "\\" not in text:
            return text
        try:
            return text.encode("ascii", "backslashreplace").decode("unicode-escape")
        except UnicodeDecodeError as error:
            self._problem(
                "string", span, f"the string has a broken escape: {error.reason}", "write `\\\\` for one `\\`"
            )
            return None

    def _bounded(self, expression: ast.Expression) -> ast.Expression:
        """Return the expression, or an `Error` in place of one whose tree is too high."""
        start, end = expression.span
        if end - start <= TREE_HEIGHT_MAX or not _is_higher_than(expression, TREE_HEIGHT_MAX):
            return expression  # each level of a tree takes at least a character
        self._problem(
            "depth",
            expression.span,
            f"the expression nests deeper than {TREE_HEIGHT_MAX} operators",
            "split it: compute parts of it in earlier tasks, or use a list with a filter such as `sum` or `join`",
        )
        return ast.Error(expression.span)

    def _bounded_filter(self, chain: ast.Filter | None) -> ast.Filter | None:
        if chain is None:
            return None
        bounded = self._bounded(chain)
        return bounded if isinstance(bounded, ast.Filter) else None

    def _problem(self, kind: ast.ProblemName, span: Span, message: str, help: str) -> None:
        self.problems.append(ast.TemplateProblem(kind, span, message, help))


def _start(child: Any) -> int:
    return child.start if type(child) is Span else child.span.start


def _end(child: Any) -> int:
    return child.end if type(child) is Span else child.span.end


def _span(children: Any) -> Span:
    return Span(_start(children[0]), _end(children[-1]))


def _nodes(children: Iterable[Any]) -> tuple[ast.Expression, ...]:
    return tuple(child for child in children if isinstance(child, ast.Expression))


def _otherwise(children: Children) -> tuple[ast.Part, ...]:
    return next((child.body for child in children if isinstance(child, _ElseBody)), ())


def _unpacked(arguments: Children) -> tuple[Any, ...]:
    return arguments[0][1:] if arguments else ()


def _misplaced_argument(item: Any, kwargs: Children, stars: Children, double_stars: Children) -> tuple[str, str] | None:
    """Return what is wrong with an argument after those that came before it, and the remedy."""
    if isinstance(item, _DoubleStar):
        return ("a second `**` argument", "merge the two mappings into one") if double_stars else None
    if double_stars:
        return ("no argument may follow the `**` argument", "move the `**` argument to the end")
    if isinstance(item, _Star):
        return ("a second `*` argument", "join the two lists into one") if stars else None
    if not isinstance(item, ast.Keyword) and (kwargs or stars):
        return (
            "a positional argument after a keyword or `*` argument",
            "move it before them, or name it: `name=value`",
        )
    return None


def _is_higher_than(expression: ast.Expression, limit: int) -> bool:
    level: list[ast.Node] = [expression]
    for _ in range(limit):
        level = [child for node in level for child in ast.children(node)]
        if not level:
            return False
    return True


_PLAIN: dict[str, Callable[[TreeBuilder, Children], Any]] = {
    "start": lambda _, children: tuple(children),
    "body": lambda _, children: _Body(_span(children) if children else None, tuple(children)),
    "output": lambda builder, children: ast.Output(_span(children), builder._bounded(children[1])),
    "if_head": lambda builder, children: _Head(_span(children), builder._bounded(children[1])),
    "else_body": lambda _, children: _ElseBody(_span(children[:-1]), children[-1].parts),
    "end_tag": lambda _, children: _span(children),
    "broken_for_head": lambda _, children: _ForHead(_span(children), children[1], children[1], None, False),
    "for_test": lambda _, children: _ForTest(children[0].span, children[0]),
    "recursive": lambda _, children: _Recursive(children[0]),
    "broken_set": lambda _, children: ast.Set(_span(children), children[1], children[1]),
    "set_filter": lambda builder, children: builder.on_filter([None, *children]),
    "disjunction": lambda _, children: ast.Or(_span(children), tuple(children)),
    "conjunction": lambda _, children: ast.And(_span(children), tuple(children)),
    "concatenation": lambda _, children: ast.Concat(_span(children), tuple(children)),
    "not": lambda _, children: ast.Not(_span(children), children[1]),
    "negative": lambda _, children: ast.Neg(_span(children), children[1]),
    "positive": lambda _, children: ast.Pos(_span(children), children[1]),
    "negated": lambda _, children: _span(children),
    "star": lambda _, children: _Star(_span(children), children[1]),
    "double_star": lambda _, children: _DoubleStar(_span(children), children[1]),
    "variable": lambda builder, children: ast.Name(children[0], builder._word(children[0]), children[0]),
    "tuple": lambda _, children: ast.Tuple(_span(children), _nodes(children)),
    "list": lambda _, children: ast.List(_span(children), _nodes(children)),
    "pair": lambda _, children: ast.Pair(_span(children), *children),
    "float": lambda builder, children: ast.Const(children[0], float(builder._word(children[0]).replace("_", ""))),
    "true": lambda _, children: ast.Const(children[0], True),
    "false": lambda _, children: ast.Const(children[0], False),
    "none": lambda _, children: ast.Const(children[0], None),
}
"""Labels of the grammar whose nodes one expression builds."""

BUILDERS = _PLAIN | {
    name.removeprefix("on_"): method for name, method in vars(TreeBuilder).items() if name.startswith("on_")
}
"""Each label of the grammar, and what builds its node: a row above, or the method named after it."""
