"""Prints an expression's tree as text that reads back as the same tree, with no more parentheses than needed.

An `Error` is printed as text that is an error again, so broken expressions survive a round trip too.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from math import isinf
from typing import Any

from noetlc.syntax import template_ast as ast

_UNREADABLE = r"'\x'"
_HEX_FROM_BITS = 1024
"""Integers longer than this are printed in hexadecimal: Python refuses to write very long decimal ones."""

_ESCAPES = {"\\": r"\\", "'": r"\'", "\n": r"\n", "\r": r"\r", "\t": r"\t"}


class Level(IntEnum):
    """How tightly a construct binds, from the grammar."""

    CONDITIONAL = 0
    OR = 1
    AND = 2
    NOT = 3
    COMPARISON = 4
    SUM = 5
    CONCATENATION = 6
    PRODUCT = 7
    POWER = 8
    FILTER = 9
    SIGN = 10
    POSTFIX = 11
    ATOM = 12


_BINARY = {
    "+": (Level.SUM, Level.CONCATENATION),
    "-": (Level.SUM, Level.CONCATENATION),
    "*": (Level.PRODUCT, Level.POWER),
    "/": (Level.PRODUCT, Level.POWER),
    "//": (Level.PRODUCT, Level.POWER),
    "%": (Level.PRODUCT, Level.POWER),
    "**": (Level.POWER, Level.FILTER),
}
"""Each operator's level, which is also its left operand's, and the level of its right operand."""


def print_expression(expression: ast.Expression) -> str:
    """Return an expression as it stands between marks."""
    return print_at(expression, Level.CONDITIONAL)


def print_at(expression: ast.Expression, level: Level) -> str:
    """Return an expression where nothing looser than `level` may stand."""
    text = _EXPRESSIONS[type(expression)](expression)
    return f"({text})" if _level(expression) < level else text


def _level(expression: ast.Expression) -> Level:
    if isinstance(expression, ast.Binary):
        return _BINARY[expression.op][0]
    if isinstance(expression, ast.Test) and expression.args:
        return Level.FILTER
    return _LEVELS.get(type(expression), Level.ATOM)


def print_before_word(expression: ast.Expression, level: Level = Level.OR) -> str:
    """Return an expression that `if` or `recursive` may follow: a bare test at its end would swallow the word."""
    text = print_at(expression, level)
    return f"({text})" if _ends_in_bare_test(expression) and not text.endswith(")") else text


def _ends_in_bare_test(expression: ast.Expression | None) -> bool:
    while isinstance(expression, (ast.And, ast.Or, ast.Not, ast.Cond)):
        if isinstance(expression, ast.Cond):
            expression = expression.otherwise or expression.test
        elif isinstance(expression, ast.Not):
            expression = expression.node
        else:
            expression = expression.operands[-1]
    return isinstance(expression, ast.Test)


def _const(expression: ast.Const) -> str:
    value = expression.value
    if isinstance(value, str):
        return _quoted(value)
    if value is None or isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return "1e999" if isinf(value) else repr(value)
    return hex(value) if value.bit_length() > _HEX_FROM_BITS else str(value)


def _quoted(text: str) -> str:
    return "'" + "".join(_ESCAPES.get(char) or _visible(char) for char in text) + "'"


def _visible(char: str) -> str:
    return char if char.isprintable() else char.encode("unicode-escape", "backslashreplace").decode("ascii")


def _tuple(expression: ast.Tuple) -> str:
    items = [print_expression(item) for item in expression.items]
    return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"


def _dict(expression: ast.Dict) -> str:
    text = ", ".join(f"{print_expression(pair.key)}: {print_expression(pair.value)}" for pair in expression.pairs)
    return f"{{ {text}}}" if text.startswith("{") else f"{{{text}}}"  # `{{` would open a mark


def _getitem(expression: ast.Getitem) -> str:
    index = expression.index
    if isinstance(index, ast.Tuple) and any(isinstance(item, ast.Slice) for item in index.items):
        return f"{_base(expression.node)}[{', '.join(map(print_expression, index.items))}]"
    return f"{_base(expression.node)}[{print_expression(index)}]"


def _base(expression: ast.Expression) -> str:
    """Return what `.name`, `[index]` or `(…)` follows; a number gets parentheses, so that its dot stays its own."""
    text = print_at(expression, Level.POSTFIX)
    is_number = isinstance(expression, ast.Const) and isinstance(expression.value, (int, float))
    return f"({text})" if is_number else text


def _slice(expression: ast.Slice) -> str:
    text = ":".join(print_expression(bound) if bound else "" for bound in (expression.start, expression.stop))
    return f"{text}:{print_expression(expression.step)}" if expression.step else text


def _filter(expression: ast.Filter) -> str:
    node = f"{print_at(expression.node, Level.FILTER)} | " if expression.node else "| "
    arguments = _arguments(expression)
    return f"{node}{expression.name}({arguments})" if arguments else f"{node}{expression.name}"


def _test(expression: ast.Test, word: str = "is") -> str:
    arguments = _arguments(expression)
    text = f"{print_at(expression.node, Level.FILTER)} {word} {expression.name}"
    return f"{text}({arguments})" if arguments else text


def _arguments(expression: ast.Call | ast.Filter | ast.Test) -> str:
    texts = [print_expression(argument) for argument in expression.args]
    texts += [f"{keyword.name}={print_expression(keyword.value)}" for keyword in expression.kwargs]
    if expression.dyn_args:
        texts.append(f"*{print_expression(expression.dyn_args)}")
    if expression.dyn_kwargs:
        texts.append(f"**{print_expression(expression.dyn_kwargs)}")
    return ", ".join(texts)


def _compare(expression: ast.Compare) -> str:
    rest = [f" {operand.op} {print_at(operand.expression, Level.SUM)}" for operand in expression.ops]
    return print_at(expression.left, Level.SUM) + "".join(rest)


def _binary(expression: ast.Binary) -> str:
    left, right = _BINARY[expression.op]
    return f"{print_at(expression.left, left)} {expression.op} {print_at(expression.right, right)}"


def _not(expression: ast.Not) -> str:
    if isinstance(expression.node, ast.Test):
        return _test(expression.node, "is not")
    return f"not {print_at(expression.node, Level.NOT)}"


def _cond(expression: ast.Cond) -> str:
    text = f"{print_before_word(expression.then)} if {print_at(expression.test, Level.OR)}"
    return f"{text} else {print_expression(expression.otherwise)}" if expression.otherwise else text


_LEVELS: dict[type[ast.Node], Level] = {
    ast.Cond: Level.CONDITIONAL,
    ast.Or: Level.OR,
    ast.And: Level.AND,
    ast.Not: Level.NOT,
    ast.Test: Level.NOT,  # without arguments: many words may not follow it directly
    ast.Compare: Level.COMPARISON,
    ast.Concat: Level.CONCATENATION,
    ast.Filter: Level.FILTER,
    ast.Neg: Level.SIGN,
    ast.Pos: Level.SIGN,
    ast.Getattr: Level.POSTFIX,
    ast.Getitem: Level.POSTFIX,
    ast.Call: Level.POSTFIX,
}

_EXPRESSIONS: dict[type[ast.Node], Callable[[Any], str]] = {
    ast.Error: lambda _: _UNREADABLE,
    ast.Name: lambda one: one.name,
    ast.Const: _const,
    ast.List: lambda one: f"[{', '.join(map(print_expression, one.items))}]",
    ast.Tuple: _tuple,
    ast.Dict: _dict,
    ast.Getattr: lambda one: f"{_base(one.node)}.{one.name}",
    ast.Getitem: _getitem,
    ast.Slice: _slice,
    ast.Call: lambda one: f"{_base(one.node)}({_arguments(one)})",
    ast.Filter: _filter,
    ast.Test: _test,
    ast.Compare: _compare,
    ast.Binary: _binary,
    ast.Neg: lambda one: f"-{print_at(one.node, Level.SIGN)}",
    ast.Pos: lambda one: f"+{print_at(one.node, Level.SIGN)}",
    ast.Not: _not,
    ast.And: lambda one: " and ".join(print_at(operand, Level.NOT) for operand in one.operands),
    ast.Or: lambda one: " or ".join(print_at(operand, Level.AND) for operand in one.operands),
    ast.Concat: lambda one: " ~ ".join(print_at(operand, Level.PRODUCT) for operand in one.operands),
    ast.Cond: _cond,
}
