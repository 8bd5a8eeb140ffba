"""Inlines the `args` of a workbook call into the tasks of the workbook (S42).

The tasks see the step's `args` overlaid by the call's. The compiler writes that out: `args.table`, and a bare `table`,
become the expression that the call gives for it; `args` as a whole becomes `dict(args, table=…)`. A template that is
only such a read becomes the argument itself, whatever its type. The author's text around the reads is unchanged.

So an argument is evaluated where it is read. `stability.py` refuses a call where that could give another value than at
the call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import isnan
from types import MappingProxyType

from noetlc.analysis.names import FOR_LOOP, NameUse, names_in
from noetlc.analysis.workbook_calls import ReadLabel
from noetlc.canon.errors import TOO_LARGE, ExpansionBudget, ExpansionError, require_shallow
from noetlc.canon.flow import scalar
from noetlc.syntax import nodes
from noetlc.syntax import template_ast as t
from noetlc.syntax.nodes import MappingEntry, Node, Scalar, scalars
from noetlc.syntax.span import Span
from noetlc.syntax.template_parser import parse_template
from noetlc.syntax.template_printer import print_expression
from noetlc.syntax.tree import Rewriter
from noetlvm.language.scopes import NAMESPACES
from noetlvm.record import Record

ARGS = "args"

_ATOMS = (t.Name, t.Getattr, t.Getitem, t.Call, t.List, t.Dict)
_MAY_BE_UNDEFINED = (t.Name, t.Getattr, t.Getitem, t.Call, t.Filter, t.Cond, t.And, t.Or)
"""A text with one of these in it is undefined where the value is: as at the call, where that is an error (S10)."""
_NOT_EVALUATED = frozenset({"label", "kind", "desc"})
_NOWHERE = Span(0, 0)


class Arguments(Record):
    """The arguments of the calls around a task, by name; none for a step's own tasks."""

    budget: ExpansionBudget
    given: Mapping[str, Node] = MappingProxyType({})
    labels: Mapping[str, ReadLabel] = MappingProxyType({})
    """What the labels of the list stand for, without those that another name hides."""
    hiding: frozenset[str] = frozenset()
    """The names that win over a label (S48)."""

    def overlaid(self, given: nodes.Mapping | None) -> Arguments:
        """Return the arguments of a nested call, whose own values have had these inlined already."""
        inner = {item.key.text: item.value for item in given.entries} if given else {}
        for argument in inner.values():
            require_shallow(argument)
        return Arguments(self.budget, {**self.given, **inner}, hiding=self.hiding)

    @property
    def is_empty(self) -> bool:
        return not self.given and not self.labels

    def in_node(self, node: Node) -> Node:
        if self.is_empty:
            return node
        if isinstance(node, nodes.Sequence):
            return nodes.Sequence(node.span, tuple(self.in_node(item) for item in node.items))
        if isinstance(node, nodes.Mapping):
            return nodes.Mapping(
                node.span, tuple(MappingEntry(item.key, self.in_node(item.value)) for item in node.entries)
            )
        return self._in_leaf(node) if node.is_template else node

    def in_scalar(self, leaf: Scalar) -> Scalar:
        """Return a scalar with the arguments inlined; a template stays a template."""
        return leaf if self.is_empty or not leaf.is_template else self._in_text(leaf)

    def _in_leaf(self, leaf: Scalar) -> Node:
        template = parse_template(leaf.text)
        if template.is_single:
            output = template.parts[0]
            for use in names_in(template).uses:
                read = self._argument_read(use)
                if read is not None and isinstance(output, t.Output) and read[0] is output.expression:
                    self.budget.take_text(read[1])
                    return read[1]
        return self._in_text(leaf)

    def _in_text(self, leaf: Scalar) -> Scalar:
        template = parse_template(leaf.text)
        edits = sorted(self._edits(template, leaf))
        if not edits:
            return leaf
        made = nodes.edited(leaf, edits)
        if parse_template(made.text).problems:  # it parsed before, so it has become too long or too deep
            help = "shorten the arguments, or keep them in `ctx` and read them there"
            raise ExpansionError(
                TOO_LARGE, leaf.span, "with the arguments of its call this template is too large", help
            )
        return made

    def _edits(self, template: t.Template, leaf: Scalar) -> Iterator[tuple[Span, str]]:
        bound = _bound_names(template)
        whole = {id(part.expression) for part in template.parts if isinstance(part, t.Output)}
        for use in names_in(template).uses:
            read = self._argument_read(use)
            if read is not None:
                self.budget.take_text(read[1])
                expression = as_expression(read[1])
                _require_unbound(expression, bound, leaf)
                yield read[0].span, _embedded(expression, alone=id(read[0]) in whole)
            elif use.name == ARGS and not use.fields:
                overlay = self._overlay()
                _require_unbound(overlay, bound, leaf)
                yield use.node.span, print_expression(overlay)
            elif label := self._label_read(use):
                _require_readable(label, leaf, self.hiding)
                yield use.node.span, label

    def _argument_read(self, use: NameUse) -> tuple[t.Expression, Node] | None:
        """Return the expression that reads a given argument, and the argument."""
        if use.name == ARGS and use.fields and use.fields[0].name in self.given:
            return _first_field(use), self.given[use.fields[0].name]
        if use.name in self.given and use.name not in NAMESPACES:
            return use.node, self.given[use.name]
        return None

    def _label_read(self, use: NameUse) -> str | None:
        read = self.labels.get(use.name) if use.name not in NAMESPACES else None
        label = read.named(use.fields[0].name if use.fields else None) if read else None
        return label if label != use.name else None

    def _overlay(self) -> t.Expression:
        for node in self.given.values():
            self.budget.take_text(node)
        pairs = {name: as_expression(node) for name, node in self.given.items()}
        args = t.Name(_NOWHERE, ARGS, _NOWHERE)
        function = t.Name(_NOWHERE, "dict", _NOWHERE)
        if all(name.isidentifier() for name in pairs):
            named = tuple(t.Keyword(_NOWHERE, name, _NOWHERE, value) for name, value in pairs.items())
            return t.Call(_NOWHERE, function, (args,), named)
        return t.Call(_NOWHERE, function, (args,), (), None, _mapping(pairs))


class ArgumentInliner(Rewriter):
    """Inlines arguments into a task or block of the workbook, and renames what its rules jump to."""

    def __init__(self, arguments: Arguments, label: Callable[[str], str]) -> None:
        self._arguments = arguments
        self._label = label

    def scalar(self, name: str, leaf: Scalar) -> Scalar:
        if name == "to" and self._label(leaf.text) != leaf.text:
            return scalar(leaf.span, self._label(leaf.text))
        return leaf if name in _NOT_EVALUATED else self._arguments.in_scalar(leaf)

    def data(self, node: Node) -> Node:
        return self._arguments.in_node(node)


def as_expression(node: Node) -> t.Expression:
    """Return the expression whose value is the node's (S8)."""
    if isinstance(node, nodes.Sequence):
        return t.List(_NOWHERE, tuple(as_expression(item) for item in node.items))
    if isinstance(node, nodes.Mapping):
        return _mapping({item.key.text: as_expression(item.value) for item in node.entries})
    if not node.is_template:
        if isinstance(node.value, float) and isnan(node.value):
            raise ExpansionError(
                "P117", node.span, "no expression is `.nan`, so it cannot be an argument", "pass a number or a text"
            )
        return t.Const(_NOWHERE, node.value)
    template = parse_template(node.text)
    first = template.parts[0] if template.is_single else None
    return first.expression if isinstance(first, t.Output) else _text_of(template, node)


def reads(node: Node) -> Iterator[NameUse]:
    for leaf in scalars(node):
        if leaf.is_template:
            yield from names_in(parse_template(leaf.text)).uses


def _text_of(template: t.Template, leaf: Scalar) -> t.Expression:
    pieces: list[t.Expression] = []
    for part in template.parts:
        if isinstance(part, t.Data):
            pieces.append(t.Const(_NOWHERE, part.text))
        elif isinstance(part, t.Output):
            pieces.append(part.expression)
        else:
            help = "write it as one `{{ … }}`, such as `{{ a if b else c }}`, or put it into the workbook's task"
            raise ExpansionError(
                "P117", leaf.span, "an argument of a workbook call cannot hold statements (`{% … %}`)", help
            )
    if not pieces:
        return t.Const(_NOWHERE, "")
    if len(pieces) == 1 and isinstance(pieces[0], t.Const) and isinstance(pieces[0].value, str):
        return pieces[0]
    text: t.Expression = t.Concat(_NOWHERE, tuple(pieces) if len(pieces) > 1 else (t.Const(_NOWHERE, ""), *pieces))
    for piece in reversed(pieces):
        if isinstance(piece, _MAY_BE_UNDEFINED) and not _is_namespace(piece):
            text = t.Cond(_NOWHERE, _is_defined(piece), text, piece)
    return text


def _is_defined(expression: t.Expression) -> t.Expression:
    return t.Test(_NOWHERE, expression, "defined", _NOWHERE)


def _is_namespace(expression: t.Expression) -> bool:
    return isinstance(expression, t.Name) and expression.name in NAMESPACES


def _require_readable(label: str, leaf: Scalar, hiding: frozenset[str]) -> None:
    if not all(part.isidentifier() for part in label.split(".")):
        help = "write the label with letters, digits and `_`, in the workbook and at its call"
        raise ExpansionError("P117", leaf.span, f"no template can read the label `{label}`", help)
    first = label.partition(".")[0]
    if first in hiding:
        help = f"give the call another label than `{first}`: that is the name of a value too, which is read first"
        raise ExpansionError("P117", leaf.span, f"no template can read the label `{label}`", help)


def _mapping(pairs: Mapping[str, t.Expression]) -> t.Dict:
    return t.Dict(_NOWHERE, tuple(t.Pair(_NOWHERE, t.Const(_NOWHERE, key), value) for key, value in pairs.items()))


def _first_field(use: NameUse) -> t.Expression:
    """Return the part of a path that reads its first field: `args.row` of `args.row.id`."""
    path = use.whole
    while (inner := _read_from(path)) is not use.node:
        path = inner
    return path


def _read_from(path: t.Expression) -> t.Expression:
    """Return the expression that a field is read from; `x.get('key')` reads from `x`."""
    if isinstance(path, t.Call):
        path = path.node
    assert isinstance(path, t.Getattr | t.Getitem)  # a use is a name and fields
    return path.node


def _embedded(expression: t.Expression, *, alone: bool) -> str:
    text = print_expression(expression)
    is_text = isinstance(expression, t.Const) and isinstance(expression.value, str)
    return text if alone or is_text or isinstance(expression, _ATOMS) else f"({text})"


def _bound_names(template: t.Template) -> frozenset[str]:
    """Return the names that a template binds itself, anywhere in it."""
    bound: set[str] = set()
    for node in t.walk(template):
        if isinstance(node, t.For):
            bound.add(FOR_LOOP)
        if isinstance(node, t.For | t.Set | t.SetBlock):
            bound.update(name.name for name in t.walk(node.target) if isinstance(name, t.Name))
    return frozenset(bound)


def _require_unbound(expression: t.Expression, bound: frozenset[str], leaf: Scalar) -> None:
    caught = sorted(name.name for name in t.walk(expression) if isinstance(name, t.Name) and name.name in bound)
    if caught:
        raise ExpansionError(
            "P117",
            leaf.span,
            f"the template binds `{caught[0]}`, which an argument of its call reads as something else",
            f"give the template's own variable another name than `{caught[0]}`",
        )
