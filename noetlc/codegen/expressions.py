"""Templates and values to expressions: the entry points of expression code.

A text that is exactly one `{{ … }}` gives that expression's value, any other template gives text (S8). A YAML value
gives code that builds it, or one constant if it contains no template.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from noetlc.codegen.operations import Operations
from noetlc.codegen.stack_code import CodeBlock, LoweringError, StackCode, expression_of
from noetlc.codegen.statements import Statements
from noetlc.syntax import nodes
from noetlc.syntax import template_ast as t
from noetlc.syntax.document_cache import per_document
from noetlc.syntax.scalar_offsets import scalar_offsets
from noetlc.syntax.span import Span
from noetlc.syntax.template_parser import parse_template
from noetlvm.bytecode.isa import NAMES
from noetlvm.bytecode.program import ExpressionCode
from noetlvm.record import Record

ANY_NAME = frozenset(NAMES)
"""Every namespace is visible."""


class Lowered(Record):
    """An expression and, for each of its instructions, the offset at which its source begins."""

    expression: ExpressionCode
    offsets: tuple[int, ...]


def lower_template(
    template: t.Template, *, visible: frozenset[str] = ANY_NAME, guard: bool = False, require: str | None = None
) -> Lowered:
    """Return the code of one template; its offsets are those of the template's own text.

    `visible` are the namespaces of the template's position (S11); every other name is a bare one. A guard
    ends in the truth of its value (S9). With `require`, an undefined value is an error that names this field (S10).
    Raises LoweringError for what has no code.
    """
    code = StackCode()
    _template(code, template, visible, require)
    if guard:
        code.emit("TRUTH", at=0)
    return _finished(code, 0)


def lower_guard(scalar: nodes.Scalar, text: str, visible: frozenset[str]) -> Lowered:
    """Return the code of a `when`: a boolean or a template. Offsets, here and below, are those of the file's `text`."""
    start = scalar.span.start
    if not scalar.is_template:
        code = StackCode()
        code.emit("CONST", scalar.value, at=start)
        code.emit("TRUTH", at=start)
        return _finished(code, start)
    offsets = scalar_offsets(text, scalar)
    try:
        guard = _guard(scalar.text, visible)
    except LoweringError as error:
        raise error.moved_to(_moved(error.span, offsets)) from None
    return Lowered(guard.expression, tuple([offsets[at] for at in guard.offsets]))


@per_document
def _guard(text: str, visible: frozenset[str]) -> Lowered:
    """Return the code of a template as a guard. Cached: playbooks repeat the same few guards."""
    return lower_template(parse_template(text), visible=visible, guard=True)


def lower_verdict(
    choices: Sequence[tuple[nodes.Scalar | None, bool]], span: Span, text: str, visible: frozenset[str]
) -> Lowered:
    """Return one guard for rules: the verdict of the first whose `when` holds or is absent, else false."""
    code = StackCode()
    end = code.label()
    for when, verdict in choices:
        if when is None:
            code.emit("CONST", verdict, at=span.start)
            break
        no_match = code.label()
        _Values(code, text, visible, required=False).lower(when, "")
        code.emit("TRUTH", at=when.span.start)
        code.emit("JUMP_UNLESS", no_match, at=when.span.start)
        code.emit("CONST", verdict, at=when.span.start)
        code.emit("JUMP", end, at=when.span.start)
        code.place(no_match)
    else:
        code.emit("CONST", False, at=span.start)
    code.place(end)
    code.emit("TRUTH", at=span.start)
    return _finished(code, span.start)


def lower_value(node: nodes.Node, text: str, visible: frozenset[str], field: str = "") -> Lowered:
    """Return the code that builds a YAML value; every template in it must be defined (S10).

    `field` names the value in errors; nested values are `field.key` and `field[0]`.
    """
    code = StackCode()
    _Values(code, text, visible, required=True).lower(node, field)
    return _finished(code, node.span.start)


def expression_reads(expression: ExpressionCode, name: str) -> bool:
    return any(i.opcode.name == "NAME" and i.operands[0] == name for i in expression.code)


def bare_names(expression: ExpressionCode) -> Iterator[str]:
    for instruction in expression.code:
        if instruction.opcode.name == "BARE":
            yield str(instruction.operands[0])


class _Values:
    """Lowers YAML values onto `code`."""

    def __init__(self, code: StackCode, text: str, visible: frozenset[str], required: bool) -> None:
        self._code = code
        self._text = text
        self._visible = visible
        self._required = required
        self._with_templates: set[int] = set()

    def lower(self, node: nodes.Node, field: str) -> None:
        _find_templates(node, self._with_templates)
        self._value(node, field)

    def _value(self, node: nodes.Node, field: str) -> None:
        if id(node) not in self._with_templates:
            self._code.emit("CONST", nodes.plain(node), at=node.span.start)
        elif isinstance(node, nodes.Scalar):
            self._leaf(node, field)
        elif isinstance(node, nodes.Sequence):
            for index, item in enumerate(node.items):
                self._value(item, f"{field}[{index}]")
            self._code.emit("LIST", len(node.items), at=node.span.start)
        else:
            for entry in node.entries:
                self._value(entry.value, f"{field}.{entry.key.text}" if field else entry.key.text)
            self._code.emit("RECORD", [entry.key.text for entry in node.entries], at=node.span.start)

    def _leaf(self, scalar: nodes.Scalar, field: str) -> None:
        offsets = scalar_offsets(self._text, scalar)
        try:
            piece = _piece(scalar.text, self._visible, field if self._required else None)
        except LoweringError as error:
            raise error.moved_to(_moved(error.span, offsets)) from None
        self._code.splice(piece, offsets)


@per_document
def _piece(text: str, visible: frozenset[str], require: str | None) -> CodeBlock:
    """Return code that pushes a template's value. Cached: playbooks repeat their templates."""
    code = StackCode()
    _template(code, parse_template(text), visible, require)
    return code.finish()


def _template(code: StackCode, template: t.Template, visible: frozenset[str], require: str | None) -> None:
    for problem in template.problems:
        raise LoweringError(problem.span, problem.message, problem.help)
    operations = Operations(code, template.text, visible)
    if template.is_single:
        output = template.parts[0]
        assert isinstance(output, t.Output)
        operations.lower(output.expression)
        if require is not None and operations.folding.constant(output.expression) is None:
            code.emit("REQUIRE", require, at=output.expression.span.start)
    elif all(isinstance(part, t.Data) for part in template.parts):
        code.emit("CONST", "".join(part.text for part in template.parts if isinstance(part, t.Data)), at=0)
    else:
        Statements(operations, require).text(template.parts, 0)


def _finished(code: StackCode, at: int) -> Lowered:
    code.emit("RETURN", at=at)
    piece = code.finish()
    return Lowered(expression_of(piece), piece.offsets)


def _find_templates(node: nodes.Node, found: set[int]) -> bool:
    """Collect the nodes that are or contain templates; return whether `node` is one of them."""
    if isinstance(node, nodes.Scalar):
        has_template = node.is_template
    else:
        below = node.items if isinstance(node, nodes.Sequence) else [entry.value for entry in node.entries]
        has_template = (
            sum(_find_templates(item, found) for item in below) > 0
        )  # no short circuit: every item is visited
    if has_template:
        found.add(id(node))
    return has_template


def _moved(span: Span, offsets: Sequence[int]) -> Span:
    return Span(offsets[span.start], offsets[min(span.end, len(offsets) - 1)])
