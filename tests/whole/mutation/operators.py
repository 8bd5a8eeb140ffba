"""Small changes to the source of a module, each of which a test should notice.

Only what functions do is changed: not annotations, docstrings, assertions, messages, or the names of keys and events,
which any test notices. A change is a piece of text, so a survivor can be shown as an author sees it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias


class Mutation(NamedTuple):
    """One change."""

    function: str
    lines: tuple[int, int]
    """Of the statement that it is in, first and last."""
    start: int
    """In bytes, as `ast` counts."""
    end: int
    old: str
    new: str

    def apply(self, source: str) -> str:
        data = source.encode()
        return (data[: self.start] + self.new.encode() + data[self.end :]).decode()


_Change: TypeAlias = tuple[ast.AST, str]
"""A node, and the text that replaces it."""


def mutations(source: str) -> list[Mutation]:
    """Return every change of a module, in the order of the text."""
    return sorted(_Module(source).mutations(), key=lambda one: (one.start, one.end, one.new))


class _Module:
    def __init__(self, source: str) -> None:
        self._source = source
        self._data = source.encode()
        self._lines = [0]
        for line in self._data.splitlines(keepends=True):
            self._lines.append(self._lines[-1] + len(line))

    def mutations(self) -> Iterator[Mutation]:
        yield from self._within(ast.parse(self._source).body, "")

    def _within(self, body: list[ast.stmt], around: str) -> Iterator[Mutation]:
        for node in body:
            if isinstance(node, ast.ClassDef):
                yield from self._within(node.body, f"{node.name}.")
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                name = f"{around}{node.name}"
                for default in (*node.args.defaults, *node.args.kw_defaults):
                    if default is not None:  # it acts wherever the function does
                        lines = node.body[0].lineno, node.end_lineno or node.lineno
                        yield from (one._replace(lines=lines) for one in self._of_statement(default, name, node))
                for statement in node.body:
                    yield from self._statement(statement, name)

    def _statement(self, node: ast.stmt, function: str) -> Iterator[Mutation]:
        if _is_left_alone(node):
            return
        for change in self._of_whole(node):
            yield self._mutation(*change, function, node)
        for field in ast.iter_child_nodes(node):
            if isinstance(field, ast.stmt):
                yield from self._statement(field, function)
            elif isinstance(field, (ast.ExceptHandler, ast.match_case)):
                for inner in field.body:
                    yield from self._statement(inner, function)
            elif not _is_annotation(field, node):
                yield from self._of_statement(field, function, node)

    def _of_statement(self, node: ast.AST, function: str, around: ast.stmt) -> Iterator[Mutation]:
        """Yield the changes of an expression."""
        if isinstance(node, ast.JoinedStr):
            return
        for change in self._of_expression(node):
            yield self._mutation(*change, function, around)
        for child in ast.iter_child_nodes(node):
            yield from self._of_statement(child, function, around)

    def _mutation(self, node: ast.AST, new: str, function: str, around: ast.stmt) -> Mutation:
        start, end = self._span(node)
        last = getattr(around, "body", None)
        first_line = around.lineno
        # Of a compound statement, its head.
        last_line = last[0].lineno - 1 if isinstance(last, list) and last else around.end_lineno or first_line
        lines = first_line, max(first_line, last_line)
        return Mutation(function, lines, start, end, self._data[start:end].decode(), new)

    def _span(self, node: ast.AST) -> tuple[int, int]:
        assert isinstance(node, (ast.expr, ast.stmt))
        end_line, end_column = node.end_lineno, node.end_col_offset
        assert end_line is not None  # `ast.parse` sets them
        assert end_column is not None
        return self._lines[node.lineno - 1] + node.col_offset, self._lines[end_line - 1] + end_column

    def _text(self, node: ast.AST) -> str:
        start, end = self._span(node)
        return self._data[start:end].decode()

    def _operand(self, node: ast.AST) -> str:
        """Return the text of an operand, in the parentheses that its span leaves out."""
        is_simple = isinstance(
            node, (ast.Name, ast.Attribute, ast.Constant, ast.Call, ast.Subscript, ast.List, ast.Dict)
        )
        return self._text(node) if is_simple else f"({self._text(node)})"

    # ---- statements

    def _of_whole(self, node: ast.stmt) -> Iterator[_Change]:
        if _may_be_removed(node):
            yield node, "pass"
        if isinstance(node, ast.AugAssign) and type(node.op) in _AUGMENTED:
            yield node, f"{self._text(node.target)} {_AUGMENTED[type(node.op)]}= {self._text(node.value)}"
        elif isinstance(node, ast.Return) and not _is_none(node.value):
            yield node, "return None"
        elif isinstance(node, (ast.Break, ast.Continue)):
            yield node, "continue" if isinstance(node, ast.Break) else "break"
        elif isinstance(node, (ast.If, ast.While)) and not isinstance(node.test, _CHANGED_ANYWAY):
            yield node.test, f"not ({self._text(node.test)})"

    # ---- expressions

    def _of_expression(self, node: ast.AST) -> Iterator[_Change]:
        for kind, changes in _EXPRESSIONS.items():
            if isinstance(node, kind):
                yield from ((node, text) for text in changes(self, node))
        if isinstance(node, ast.comprehension):
            for test in node.ifs:
                yield test, "True"
        elif isinstance(node, ast.IfExp) and not isinstance(node.test, _CHANGED_ANYWAY):
            yield node.test, f"not ({self._text(node.test)})"

    def _compare(self, node: ast.Compare) -> Iterator[str]:
        operands = [node.left, *node.comparators]
        for changed, operator in enumerate(node.ops):
            if type(operator) in _OTHER_COMPARISON:
                text = self._operand(operands[0])
                for number, (each, right) in enumerate(zip(node.ops, operands[1:], strict=True)):
                    word = _OTHER_COMPARISON[type(each)] if number == changed else _COMPARISONS[type(each)]
                    text += f" {word} {self._operand(right)}"
                yield text

    def _bool_op(self, node: ast.BoolOp) -> Iterator[str]:
        word = " or " if isinstance(node.op, ast.And) else " and "
        yield f"({word.join(f'({self._text(value)})' for value in node.values)})"

    def _unary_op(self, node: ast.UnaryOp) -> Iterator[str]:
        if isinstance(node.op, ast.Not):
            yield f"bool({self._text(node.operand)})"

    def _bin_op(self, node: ast.BinOp) -> Iterator[str]:
        left, right = self._operand(node.left), self._operand(node.right)
        if isinstance(node.op, ast.BitOr):
            yield from (left, right)
        elif type(node.op) in _OTHER_ARITHMETIC:
            yield f"({left} {_OTHER_ARITHMETIC[type(node.op)]} {right})"

    def _constant(self, node: ast.Constant) -> Iterator[str]:
        value = node.value
        if isinstance(value, bool):
            yield str(not value)
        elif isinstance(value, (int, float)):
            yield repr(value + 1)
        elif value == "":
            yield '"XX"'

    def _call(self, node: ast.Call) -> Iterator[str]:
        if isinstance(node.func, ast.Name) and node.func.id in _OTHER_FUNCTION and node.args:
            start, _ = self._span(node)
            _, name_end = self._span(node.func)
            rest = self._text(node)[len(self._data[start:name_end].decode()) :]
            if node.func.id != "sorted" or len(node.args) + len(node.keywords) == 1:
                yield f"{_OTHER_FUNCTION[node.func.id]}{rest}"


_EXPRESSIONS: dict[type[ast.AST], Callable[[_Module, ast.AST], Iterator[str]]] = {
    ast.Compare: _Module._compare,  # type: ignore[dict-item]
    ast.BoolOp: _Module._bool_op,  # type: ignore[dict-item]
    ast.UnaryOp: _Module._unary_op,  # type: ignore[dict-item]
    ast.BinOp: _Module._bin_op,  # type: ignore[dict-item]
    ast.Constant: _Module._constant,  # type: ignore[dict-item]
    ast.Call: _Module._call,  # type: ignore[dict-item]
}
_ATOMS = (ast.Name, ast.Attribute, ast.Constant, ast.Call, ast.Subscript, ast.List, ast.Dict)
_CHANGED_ANYWAY = (ast.Compare, ast.BoolOp)
_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
    ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in",
}  # fmt: skip
_OTHER_COMPARISON: dict[type[ast.cmpop], str] = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==",
    ast.Is: "is not", ast.IsNot: "is", ast.In: "not in", ast.NotIn: "in",
}  # fmt: skip
_OTHER_ARITHMETIC: dict[type[ast.operator], str] = {
    ast.Add: "-", ast.Sub: "+", ast.Mult: "+", ast.FloorDiv: "*", ast.Div: "*", ast.Mod: "*", ast.Pow: "*",
}  # fmt: skip
_AUGMENTED: dict[type[ast.operator], str] = {ast.Add: "-", ast.Sub: "+"}
_OTHER_FUNCTION = {"min": "max", "max": "min", "any": "all", "all": "any", "sorted": "list"}


def _may_be_removed(node: ast.stmt) -> bool:
    """Return whether a statement only changes something: without a local variable, the rest would not run at all."""
    if isinstance(node, ast.Assign):
        return not all(isinstance(target, ast.Name) for target in node.targets)
    is_call = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    if is_call and ast.unparse(node).startswith("super().__init__("):  # the message of an exception
        return False
    return is_call or isinstance(node, (ast.AugAssign, ast.Delete))


def _is_annotation(node: ast.AST, of: ast.stmt) -> bool:
    """Return whether a part of a statement is only a type: of a variable, or in the head of a nested function."""
    return node in (getattr(of, "annotation", None), getattr(of, "returns", None)) or isinstance(node, ast.arguments)


def _is_none(node: ast.expr | None) -> bool:
    return node is None or (isinstance(node, ast.Constant) and node.value is None)


def _is_left_alone(node: ast.stmt) -> bool:
    """Return whether a statement is no behaviour, or a nested definition whose body another pass covers."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return True
    if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
        return True
    return isinstance(node, (ast.Assert, ast.Import, ast.ImportFrom, ast.Pass, ast.Raise, ast.ClassDef))
