"""Whole templates for tests: printed, so that the text reads back as the same tree, and compared by their trees."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from noetlc.syntax import template_ast as ast
from noetlc.syntax.template_printer import Level, print_at, print_before_word, print_expression
from noetlvm.record import fields_of

_MARKS = ("{{", "{%", "{#")


def print_template(template: ast.Template) -> str:
    """Return text whose tree is this template's."""
    text = _print_parts(template.parts)
    return text + "\n" if text.endswith("\n") else text  # reading drops one line break at the end


def same_tree(left: ast.Node, right: ast.Node) -> bool:
    """Return whether two trees are equal but for their spans (and, for templates, text and problems)."""
    waiting: list[tuple[object, object]] = [(left, right)]
    while waiting:
        a, b = waiting.pop()
        if type(a) is not type(b):
            return False
        if isinstance(a, ast.Node):
            waiting.extend((getattr(a, name), getattr(b, name)) for name in _content(a))
        elif isinstance(a, tuple) and isinstance(b, tuple):
            if len(a) != len(b):
                return False
            waiting.extend(zip(a, b, strict=True))
        elif a != b:
            return False
    return True


def _content(node: ast.Node) -> tuple[str, ...]:
    if isinstance(node, ast.Template):
        return ("parts",)
    return tuple(name for name in fields_of(type(node)) if not name.endswith("span"))


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
        f"{{% {word} {print_at(branch.test, Level.OR)} %}}{_print_parts(branch.body)}"
        for word, branch in zip(words, part.branches, strict=True)
    )
    return f"{branches}{_else(part.otherwise)}{{% endif %}}"


def _for(part: ast.For) -> str:
    return f"{{% for{_for_head(part)} %}}{_print_parts(part.body)}{_else(part.otherwise)}{{% endfor %}}"


def _for_head(part: ast.For) -> str:
    if isinstance(part.target, ast.Error):
        return ""
    words = ["", _target(part.target), "in", print_before_word(part.iterable)]
    if part.test is not None:
        words += ["if", print_before_word(part.test, Level.CONDITIONAL)]
    if part.recursive:
        words.append("recursive")
    return " ".join(words)


def _set(part: ast.Set) -> str:
    if isinstance(part.target, ast.Error):
        return "{% set %}"
    return f"{{% set {_target(part.target)} = {print_expression(part.value)} %}}"


def _set_block(part: ast.SetBlock) -> str:
    chain = f" {print_expression(part.filter)}" if part.filter else ""
    return f"{{% set {_target(part.target)}{chain} %}}{_print_parts(part.body)}{{% endset %}}"


def _unsupported(part: ast.Unsupported) -> str:
    return "{% raw - %}" if part.keyword == "raw" else f"{{% {part.keyword} %}}"


def _else(parts: tuple[ast.Part, ...]) -> str:
    return f"{{% else %}}{_print_parts(parts)}" if parts else ""


def _target(target: ast.Expression) -> str:
    if isinstance(target, ast.Tuple) and len(target.items) > 1:
        return ", ".join(
            print_at(item, Level.ATOM) if isinstance(item, ast.Tuple) else _target(item) for item in target.items
        )
    return print_expression(target)


_PARTS: dict[type[ast.Node], Callable[[Any], str]] = {
    ast.Data: _data,
    ast.Output: _output,
    ast.If: _if,
    ast.For: _for,
    ast.Set: _set,
    ast.SetBlock: _set_block,
    ast.Unsupported: _unsupported,
}
