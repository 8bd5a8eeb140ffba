"""The syntax tree of a template: the text of one YAML scalar with `{{ … }}` or `{% … %}` in it.

Every node has a span of offsets in the template's own text; the caller maps them to
the file. An expression's span holds its parentheses, so the text under a span reads as the same expression. Nodes are
named as Jinja2 names them. Nothing here defines what a name, a filter or a test means.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from noetlc.syntax.span import Span
from noetlvm.record import Record, fields_of

ProblemName = Literal["syntax", "unclosed", "statement", "block", "depth", "size", "string"]


class TemplateProblem(Record):
    """One mistake in a template: where, what is wrong, what to write instead."""

    kind: ProblemName
    span: Span
    message: str
    help: str


class Node(Record):
    """Anything in the tree."""

    span: Span


class Expression(Node):
    """What has a value."""


class Error(Expression):
    """Placeholder for text that could not be parsed; a problem gives the reason."""


class Name(Expression):
    """A variable."""

    name: str
    name_span: Span


class Const(Expression):
    """A literal. Adjacent strings are one literal; escapes are resolved, and every line break is a line feed."""

    value: str | int | float | bool | None


class List(Expression):
    """`[a, b]`."""

    items: tuple[Expression, ...]


class Tuple(Expression):
    """`(a, b)`, or `a, b` where no parentheses are needed."""

    items: tuple[Expression, ...]


class Pair(Node):
    """One `key: value` of a mapping."""

    key: Expression
    value: Expression


class Dict(Expression):
    """`{key: value}`."""

    pairs: tuple[Pair, ...]


class Getattr(Expression):
    """`node.name`."""

    node: Expression
    name: str
    name_span: Span


class Getitem(Expression):
    """`node[index]`, or `node.0`. Several subscripts make a tuple; a `Slice` may be the index or stand in it."""

    node: Expression
    index: Expression


class Slice(Expression):
    """`start:stop:step` between square brackets."""

    start: Expression | None
    stop: Expression | None
    step: Expression | None


class Keyword(Node):
    """`name=value` among arguments."""

    name: str
    name_span: Span
    value: Expression


class Call(Expression):
    """`node(args)`; `dyn_args` is what follows `*`, `dyn_kwargs` what follows `**`."""

    node: Expression
    args: tuple[Expression, ...] = ()
    kwargs: tuple[Keyword, ...] = ()
    dyn_args: Expression | None = None
    dyn_kwargs: Expression | None = None


class Filter(Expression):
    """`node | name(args)`. The first filter of a `{% set x | name %}` block has no node: it gets the block's text."""

    node: Expression | None
    name: str
    name_span: Span
    args: tuple[Expression, ...] = ()
    kwargs: tuple[Keyword, ...] = ()
    dyn_args: Expression | None = None
    dyn_kwargs: Expression | None = None


class Test(Expression):
    """`node is name(args)`; `is not` is a `Not` around it."""

    __test__ = False  # pytest would collect the class by its name

    node: Expression
    name: str
    name_span: Span
    args: tuple[Expression, ...] = ()
    kwargs: tuple[Keyword, ...] = ()
    dyn_args: Expression | None = None
    dyn_kwargs: Expression | None = None


class Comparand(Node):
    """One further operand of a comparison, with the operator before it: `==`, `<`, `in`, `not in` and so on."""

    op: str
    op_span: Span
    expression: Expression


class Compare(Expression):
    """`left < a <= b`: a chain holds if each neighbouring pair does."""

    left: Expression
    ops: tuple[Comparand, ...]


class Binary(Expression):
    """Arithmetic: `+ - * / // % **`. Chains lean to the left."""

    op: str
    left: Expression
    right: Expression


class Neg(Expression):
    """`-node`."""

    node: Expression


class Pos(Expression):
    """`+node`."""

    node: Expression


class Not(Expression):
    """`not node`, or `node is not name` around the test."""

    node: Expression


class And(Expression):
    """`a and b and c`: two operands or more, so that long conditions stay flat."""

    operands: tuple[Expression, ...]


class Or(Expression):
    """`a or b or c`."""

    operands: tuple[Expression, ...]


class Concat(Expression):
    """`a ~ b ~ c`: text made of the operands."""

    operands: tuple[Expression, ...]


class Cond(Expression):
    """`then if test else otherwise`; without `else` the value may be undefined."""

    test: Expression
    then: Expression
    otherwise: Expression | None


class Part(Node):
    """A piece of the template, in the order of the text."""


class Data(Part):
    """Text that stands for itself, never empty.

    `text` is what comes out: whitespace control (`{{-`, `-%}`) has removed its blanks, every line break is a line
    feed, and the one at the very end of a template is gone. The span covers what is left, in the text as written.
    """

    text: str


class Output(Part):
    """`{{ expression }}`."""

    expression: Expression


class IfBranch(Node):
    """A test of an `if` and what comes out when it is the first that holds."""

    test: Expression
    body: tuple[Part, ...]


class If(Part):
    """`{% if %} … {% elif %} … {% else %} … {% endif %}`."""

    branches: tuple[IfBranch, ...]
    otherwise: tuple[Part, ...]


class For(Part):
    """`{% for target in iterable if test recursive %} … {% else %} … {% endfor %}`."""

    target: Expression
    iterable: Expression
    test: Expression | None
    body: tuple[Part, ...]
    otherwise: tuple[Part, ...]
    recursive: bool


class Set(Part):
    """`{% set target = value %}`; the target is a name, a tuple of names, or an attribute of a namespace."""

    target: Expression
    value: Expression


class SetBlock(Part):
    """`{% set target | filter %} … {% endset %}`."""

    target: Expression
    filter: Filter | None
    body: tuple[Part, ...]


class Unsupported(Part):
    """A statement that playbooks do not have, such as `{% macro %}`; there is a problem for it."""

    keyword: str


class Template(Node):
    """A whole template."""

    text: str
    parts: tuple[Part, ...]
    problems: tuple[TemplateProblem, ...]

    @property
    def is_single(self) -> bool:
        """Return whether the whole text is one `{{ … }}`, whose value then keeps its type (S8).

        The line break that ends a block scalar does not count. Blanks and comments around the marks do.
        """
        if len(self.parts) != 1 or not isinstance(self.parts[0], Output):
            return False
        return self.parts[0].span == (0, len(without_final_break(self.text)))


def without_final_break(text: str) -> str:
    """Return the text without one line break at its end, which a template never puts out."""
    if text.endswith("\r\n"):
        return text[:-2]
    return text[:-1] if text.endswith(("\n", "\r")) else text


def children(node: Node) -> list[Node]:
    found: list[Node] = []
    for name in _FIELDS[type(node)]:
        value = getattr(node, name)
        if isinstance(value, Node):
            found.append(value)
        elif isinstance(value, tuple):
            found.extend(item for item in value if isinstance(item, Node))
    return found


def walk(node: Node) -> Iterator[Node]:
    """Yield `node` and everything below it, parents first."""
    waiting = [node]
    while waiting:
        current = waiting.pop()
        yield current
        waiting.extend(reversed(children(current)))


_FIELDS: dict[type[Node], tuple[str, ...]] = {
    kind: tuple(name for name in fields_of(kind) if not name.endswith("span"))
    for kind in list(vars().values())
    if isinstance(kind, type) and issubclass(kind, Node)
} | {Template: ("parts",)}
"""The fields of each node apart from its position."""
