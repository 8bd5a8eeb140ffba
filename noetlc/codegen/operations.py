"""Expressions to stack code: a table from node types to methods. `statements.py` lowers statements."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from noetlc.analysis.folding import Folding
from noetlc.codegen.stack_code import JumpLabel, LoweringError, Slot, StackCode, TemplateScope
from noetlc.syntax import template_ast as t
from noetlvm.bytecode.isa import NAMES, OpcodeName
from noetlvm.language.filters import FILTERS, FUNCTIONS, TESTS
from noetlvm.language.methods import METHODS

UNDEFINED_TEXT_MAX = 80
"""Characters of source text in the description of an undefined value."""

_BINARY: dict[str, OpcodeName] = {
    "+": "ADD",
    "-": "SUB",
    "*": "MUL",
    "/": "DIV",
    "//": "FLOORDIV",
    "%": "MOD",
    "**": "POW",
}


class Operations:
    """Lowers the expressions of one template onto `code`."""

    def __init__(self, code: StackCode, text: str, visible: frozenset[str]) -> None:
        self.code = code
        self.folding = Folding()
        self.scope = TemplateScope(None)
        self.iterators = 0
        """Number of `for` iterators on the stack."""
        self._text = text
        self._visible = visible

    def lower(self, node: t.Expression) -> None:
        """Emit code that pushes the expression's value."""
        constant = self.folding.constant(node)
        if constant is not None:
            self._emit("CONST", constant.value, node=node)
            return
        lower = _LOWER.get(type(node))
        if lower is None:
            raise LoweringError(
                node.span, "this could not be read as an expression", "run `noetlc lint` on the playbook"
            )
        lower(self, node)

    def read(self, name: str, at: int) -> None:
        """Emit code that pushes the value of a name."""
        bound = self.scope.find(name)
        if isinstance(bound, Slot):
            self.code.emit("LOCAL", bound.number, at=at)
        elif bound is not None:
            self.code.emit("LOOP", self.iterators - 1 - bound.height, at=at)
        elif name in self._visible and name in NAMES:
            self.code.emit("NAME", name, at=at)
        else:
            self.code.emit("BARE", name, at=at)

    def apply_filter(self, node: t.Filter) -> None:
        self._apply("FILTER", node.name, FILTERS, node)

    def _emit(self, name: OpcodeName, *operands: object, node: t.Node) -> None:
        self.code.emit(name, *operands, at=node.span.start)

    # ---- names and data

    def _name(self, node: t.Name) -> None:
        self.read(node.name, node.name_span.start)

    def _getattr(self, node: t.Getattr) -> None:
        label = self._dotted_label(node)
        if label is not None:
            self._emit("BARE", label, node=node)
            return
        self.lower(node.node)
        self.code.emit("ATTR", node.name, at=node.name_span.start)

    def _dotted_label(self, node: t.Getattr) -> str | None:
        """Return the label of a workbook task that a path names, such as `save.insert` (S48)."""
        first, fields = node.node, [node.name]
        while isinstance(first, t.Getattr):
            fields.insert(0, first.name)
            first = first.node
        if not isinstance(first, t.Name) or first.name in NAMES or self.scope.find(first.name) is not None:
            return None
        label = ".".join((first.name, *fields))
        return label if label in self._visible else None

    def _getitem(self, node: t.Getitem) -> None:
        self.lower(node.node)
        index = node.index
        if isinstance(index, t.Slice):
            self._slice(index)
        elif isinstance(index, t.Const) and isinstance(index.value, str):
            self._emit("ATTR", index.value, node=index)
        elif isinstance(index, t.Tuple) and any(isinstance(item, t.Slice) for item in index.items):
            self._emit("POP", node=index)  # data has no two-dimensional slices
            self._undefined(node)
        else:
            self.lower(index)
            self._emit("ITEM", node=index)

    def _slice(self, node: t.Slice) -> None:
        for bound in (node.start, node.stop, node.step):
            if bound is None:
                self._emit("CONST", None, node=node)
            else:
                self.lower(bound)
        self._emit("SLICE", node=node)

    def _undefined(self, node: t.Expression) -> None:
        text = self._text[node.span.start : node.span.end]
        self._emit("UNDEFINED", text[:UNDEFINED_TEXT_MAX], node=node)

    def _items(self, node: t.List | t.Tuple) -> None:
        for item in node.items:
            self.lower(item)
        self._emit("LIST" if isinstance(node, t.List) else "TUPLE", len(node.items), node=node)

    def _dict(self, node: t.Dict) -> None:
        for pair in node.pairs:
            self.lower(pair.key)
            self.lower(pair.value)
        self._emit("MAP", len(node.pairs), node=node)

    # ---- calls

    def _call(self, node: t.Call) -> None:
        callee = node.node
        if isinstance(callee, t.Getattr):
            self.lower(callee.node)
            self._apply("METHOD", callee.name, METHODS, node)
        elif isinstance(callee, t.Name) and self.scope.find(callee.name) is None:
            self._apply("CALL", callee.name, FUNCTIONS, node)
        else:
            raise LoweringError(callee.span, "only functions and methods can be called", "remove the parentheses")

    def _filter(self, node: t.Filter) -> None:
        if node.node is not None:
            self.lower(node.node)
        self.apply_filter(node)

    def _test(self, node: t.Test) -> None:
        self.lower(node.node)
        self._apply("TEST", node.name, TESTS, node)

    def _apply(
        self, opcode: OpcodeName, name: str, known: Mapping[str, object], node: t.Call | t.Filter | t.Test
    ) -> None:
        """Emit the arguments and the call. The name is checked again: the verifier refuses unknown ones."""
        if name not in known:
            raise LoweringError(
                node.span, f"there is no `{name}` in templates", "`noetlc lint` shows what to use instead"
            )
        for argument in node.args:
            self.lower(argument)
        for keyword in node.kwargs:
            self.lower(keyword.value)
        spread = 0
        for bit, further in ((1, node.dyn_args), (2, node.dyn_kwargs)):
            if further is not None:
                self.lower(further)
                spread |= bit
        words = [keyword.name for keyword in node.kwargs]
        name_span = node.node.span if isinstance(node, t.Call) else node.name_span
        self.code.emit(opcode, name, len(node.args), words, spread, at=name_span.start)

    # ---- operators

    def _sign(self, node: t.Neg | t.Pos) -> None:
        self.lower(node.node)
        self._emit("NEG" if isinstance(node, t.Neg) else "POS", node=node)

    def _not(self, node: t.Not) -> None:
        self.lower(node.node)
        self._emit("NOT", node=node)

    def _binary(self, node: t.Binary) -> None:
        self.lower(node.left)
        self.lower(node.right)
        self._emit(_BINARY[node.op], node=node)

    def _concat(self, node: t.Concat) -> None:
        for operand in node.operands:
            self.lower(operand)
        self._emit("CONCAT", len(node.operands), node=node)

    def _compare(self, node: t.Compare) -> None:
        """A chain duplicates each middle operand for the next comparison and stops at the first that fails.

        Each exit has its own label, nested in the one before, so that the code is a nest of blocks.
        """
        *chained, last = node.ops
        self.lower(node.left)
        exits: list[JumpLabel] = []
        for operand in chained:
            self.lower(operand.expression)
            self._emit("DUP", node=operand)
            self._emit("ROT3", node=operand)
            self.code.emit("COMPARE", operand.op, at=operand.op_span.start)
            exits.append(self.code.label())
            self._emit("KEEP_UNLESS", exits[-1], node=operand)
        self._last_comparison(last)
        for stopped in reversed(exits):
            end = self.code.label()
            self._emit("JUMP", end, node=node)
            self.code.place(stopped)
            self._emit("SWAP", node=node)
            self._emit("POP", node=node)
            self.code.place(end)

    def _last_comparison(self, operand: t.Comparand) -> None:
        members = self.folding.members(operand.expression) if operand.op in ("in", "not in") else None
        if members is not None:
            self._emit("CONST", members.value, node=operand.expression)
        else:
            self.lower(operand.expression)
        self.code.emit("COMPARE", operand.op, at=operand.op_span.start)

    def _junction(self, node: t.And | t.Or) -> None:
        is_or = isinstance(node, t.Or)
        keep: OpcodeName = "KEEP_IF" if is_or else "KEEP_UNLESS"
        operands = self._undecided(node.operands, not is_or)
        end = self.code.label()
        for operand in operands[:-1]:
            self.lower(operand)
            self._emit(keep, end, node=operand)
        self.lower(operands[-1])
        self.code.place(end)

    def _undecided(self, operands: tuple[t.Expression, ...], passed: bool) -> list[t.Expression]:
        """Return the operands without those that never decide and those that are never evaluated."""
        undecided: list[t.Expression] = []
        for operand in operands[:-1]:
            truth = self.folding.truth(operand)
            if truth is passed:
                continue
            undecided.append(operand)
            if truth is not None:
                return undecided
        return [*undecided, operands[-1]]

    def _cond(self, node: t.Cond) -> None:
        truth = self.folding.truth(node.test)
        if truth is not None:
            self._chosen(node, node.then if truth else node.otherwise)
            return
        otherwise, end = self.code.label(), self.code.label()
        self.branch(node.test, otherwise)
        self.lower(node.then)
        self._emit("JUMP", end, node=node.then)
        self.code.place(otherwise)
        self._chosen(node, node.otherwise)
        self.code.place(end)

    def _chosen(self, node: t.Cond, chosen: t.Expression | None) -> None:
        if chosen is None:
            self._undefined(node)
        else:
            self.lower(chosen)

    def branch(self, test: t.Expression, otherwise: JumpLabel) -> None:
        """Emit a jump to `otherwise` for when the test does not hold."""
        if isinstance(test, t.Not):
            self.lower(test.node)
            self._emit("JUMP_IF", otherwise, node=test)
        else:
            self.lower(test)
            self._emit("JUMP_UNLESS", otherwise, node=test)


_LOWER: dict[type[t.Expression], Callable[..., None]] = {
    t.Name: Operations._name,
    t.Getattr: Operations._getattr,
    t.Getitem: Operations._getitem,
    t.List: Operations._items,
    t.Tuple: Operations._items,
    t.Dict: Operations._dict,
    t.Call: Operations._call,
    t.Filter: Operations._filter,
    t.Test: Operations._test,
    t.Neg: Operations._sign,
    t.Pos: Operations._sign,
    t.Not: Operations._not,
    t.Binary: Operations._binary,
    t.Concat: Operations._concat,
    t.Compare: Operations._compare,
    t.And: Operations._junction,
    t.Or: Operations._junction,
    t.Cond: Operations._cond,
}
