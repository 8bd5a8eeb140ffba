"""Prints a template's tree as template text that reads back as the same tree, with no more parentheses than needed.

An `Error` is printed as text that is an error again, so broken templates survive a round trip too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import IntEnum
from math import isinf
from typing import Any

from noetlc.syntax import template_ast as ast

_MARKS = ("{{", "{%", "{#")
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


def print_template(template: ast.Template) -> str:
    """Return text whose tree is this template's."""
    text = _print_parts(template.parts)
    return text + "\n" if text.endswith("\n") else text  # reading drops one line break at the end


def print_expression(expression: ast.Expression) -> str:
    """Return an expression as it stands between marks."""
    return _at(expression, Level.CONDITIONAL)


# ---- parts


def _print_parts(parts: Iterable[ast.Part]) -> str:
    printed: list[str] = []
    previous: ast.Part | None = None
    for part in parts:
        if isinstance(part, ast.Data) and isinstance(previous, ast.Data):
            printed.append("{##}")  # keeps the two apart
        printed.append(_PARTS[type(part)](part))
        previous = part
    return "".join(printed)


def _data(part: ast.Data) -> str:
    if part.text.endswith("{") or any(mark in part.text for mark in _MARKS):
        return f"{{% raw %}}{part.text}{{% endraw %}}"
    return part.text


def _output(part: ast.Output) -> str:
    return f"{{{{ {print_expression(part.expression)} }}}}"


def _if(part: ast.If) -> str:
    words = ["if"] + ["elif"] * (len(part.branches) - 1)
    branches = "".join(
        f"{{% {word} {_at(branch.test, Level.OR)} %}}{_print_parts(branch.body)}"
        for word, branch in zip(words, part.branches, strict=True)
    )
    return f"{branches}{_else(part.otherwise)}{{% endif %}}"


def _for(part: ast.For) -> str:
    return f"{{% for{_for_head(part)} %}}{_print_parts(part.body)}{_else(part.otherwise)}{{% endfor %}}"


def _for_head(part: ast.For) -> str:
    if isinstance(part.target, ast.Error):
        return ""
    words = ["", _target(part.target), "in", _not_ending_in_test(part.iterable)]
    if part.test is not None:
        words += ["if", _not_ending_in_test(part.test, Level.CONDITIONAL)]
    if part.recursive:
        words.append("recursive")
    return " ".join(words)


def _set(part: ast.Set) -> str:
    if isinstance(part.target, ast.Error):
        return "{% set %}"
    return f"{{% set {_target(part.target)} = {print_expression(part.value)} %}}"


def _set_block(part: ast.SetBlock) -> str:
    chain = f" {_filter(part.filter)}" if part.filter else ""
    return f"{{% set {_target(part.target)}{chain} %}}{_print_parts(part.body)}{{% endset %}}"


def _unsupported(part: ast.Unsupported) -> str:
    return "{% raw - %}" if part.keyword == "raw" else f"{{% {part.keyword} %}}"


def _else(parts: tuple[ast.Part, ...]) -> str:
    return f"{{% else %}}{_print_parts(parts)}" if parts else ""


def _target(target: ast.Expression) -> str:
    if isinstance(target, ast.Tuple) and len(target.items) > 1:
        return ", ".join(
            _at(item, Level.ATOM) if isinstance(item, ast.Tuple) else _target(item) for item in target.items
        )
    return print_expression(target)


# ---- expressions


def _at(expression: ast.Expression, level: Level) -> str:
    """Return an expression where nothing looser than `level` may stand."""
    text = _EXPRESSIONS[type(expression)](expression)
    return f"({text})" if _level(expression) < level else text


def _level(expression: ast.Expression) -> Level:
    if isinstance(expression, ast.Binary):
        return _BINARY[expression.op][0]
    if isinstance(expression, ast.Test) and expression.args:
        return Level.FILTER
    return _LEVELS.get(type(expression), Level.ATOM)


def _not_ending_in_test(expression: ast.Expression, level: Level = Level.OR) -> str:
    """Return an expression that `if` or `recursive` may follow: a bare test at its end would swallow the word."""
    text = _at(expression, level)
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


def _error(expression: ast.Error) -> str:
    return _UNREADABLE


def _name(expression: ast.Name) -> str:
    return expression.name


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


def _list(expression: ast.List) -> str:
    return f"[{', '.join(map(print_expression, expression.items))}]"


def _tuple(expression: ast.Tuple) -> str:
    items = [print_expression(item) for item in expression.items]
    return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"


def _dict(expression: ast.Dict) -> str:
    text = ", ".join(f"{print_expression(pair.key)}: {print_expression(pair.value)}" for pair in expression.pairs)
    return f"{{ {text}}}" if text.startswith("{") else f"{{{text}}}"  # `{{` would open a mark


def _getattr(expression: ast.Getattr) -> str:
    return f"{_base(expression.node)}.{expression.name}"


def _getitem(expression: ast.Getitem) -> str:
    index = expression.index
    if isinstance(index, ast.Tuple) and any(isinstance(item, ast.Slice) for item in index.items):
        return f"{_base(expression.node)}[{', '.join(map(print_expression, index.items))}]"
    return f"{_base(expression.node)}[{print_expression(index)}]"


def _base(expression: ast.Expression) -> str:
    """Return what `.name`, `[index]` or `(…)` follows; a number gets parentheses, so that its dot stays its own."""
    text = _at(expression, Level.POSTFIX)
    is_number = isinstance(expression, ast.Const) and isinstance(expression.value, (int, float))
    return f"({text})" if is_number else text


def _slice(expression: ast.Slice) -> str:
    text = ":".join(print_expression(bound) if bound else "" for bound in (expression.start, expression.stop))
    return f"{text}:{print_expression(expression.step)}" if expression.step else text


def _call(expression: ast.Call) -> str:
    return f"{_base(expression.node)}({_arguments(expression)})"


def _filter(expression: ast.Filter) -> str:
    node = f"{_at(expression.node, Level.FILTER)} | " if expression.node else "| "
    arguments = _arguments(expression)
    return f"{node}{expression.name}({arguments})" if arguments else f"{node}{expression.name}"


def _test(expression: ast.Test, word: str = "is") -> str:
    arguments = _arguments(expression)
    text = f"{_at(expression.node, Level.FILTER)} {word} {expression.name}"
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
    rest = [f" {operand.op} {_at(operand.expression, Level.SUM)}" for operand in expression.ops]
    return _at(expression.left, Level.SUM) + "".join(rest)


def _binary(expression: ast.Binary) -> str:
    left, right = _BINARY[expression.op]
    return f"{_at(expression.left, left)} {expression.op} {_at(expression.right, right)}"


def _neg(expression: ast.Neg) -> str:
    return f"-{_at(expression.node, Level.SIGN)}"


def _pos(expression: ast.Pos) -> str:
    return f"+{_at(expression.node, Level.SIGN)}"


def _not(expression: ast.Not) -> str:
    if isinstance(expression.node, ast.Test):
        return _test(expression.node, "is not")
    return f"not {_at(expression.node, Level.NOT)}"


def _and(expression: ast.And) -> str:
    return " and ".join(_at(operand, Level.NOT) for operand in expression.operands)


def _or(expression: ast.Or) -> str:
    return " or ".join(_at(operand, Level.AND) for operand in expression.operands)


def _concat(expression: ast.Concat) -> str:
    return " ~ ".join(_at(operand, Level.PRODUCT) for operand in expression.operands)


def _cond(expression: ast.Cond) -> str:
    text = f"{_not_ending_in_test(expression.then)} if {_at(expression.test, Level.OR)}"
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

_PARTS: dict[type[ast.Node], Callable[[Any], str]] = {
    ast.Data: _data,
    ast.Output: _output,
    ast.If: _if,
    ast.For: _for,
    ast.Set: _set,
    ast.SetBlock: _set_block,
    ast.Unsupported: _unsupported,
}

_EXPRESSIONS: dict[type[ast.Node], Callable[[Any], str]] = {
    ast.Error: _error,
    ast.Name: _name,
    ast.Const: _const,
    ast.List: _list,
    ast.Tuple: _tuple,
    ast.Dict: _dict,
    ast.Getattr: _getattr,
    ast.Getitem: _getitem,
    ast.Slice: _slice,
    ast.Call: _call,
    ast.Filter: _filter,
    ast.Test: _test,
    ast.Compare: _compare,
    ast.Binary: _binary,
    ast.Neg: _neg,
    ast.Pos: _pos,
    ast.Not: _not,
    ast.And: _and,
    ast.Or: _or,
    ast.Concat: _concat,
    ast.Cond: _cond,
}
