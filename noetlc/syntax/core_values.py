"""YAML 1.2 core schema: which plain texts are null, booleans and numbers. `on`, `off`, `yes` and `no` are strings."""

from __future__ import annotations

import re

from noetlc.syntax.nodes import ScalarValue

INTEGER_DIGITS_MAX = 1_000
"""A longer integer is refused: Python spends quadratic time on it and no playbook means it."""

_CONSTANTS: dict[str, ScalarValue] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), float("inf")),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), float("-inf")),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
}
_NUMBER_START = frozenset("+-.0123456789")
_INTEGER = re.compile(r"[-+]?[0-9]+\Z")
_OCTAL = re.compile(r"0o[0-7]+\Z")
_HEXADECIMAL = re.compile(r"0x[0-9a-fA-F]+\Z")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z")

_STRING_TAG = "tag:yaml.org,2002:str"
CORE_TAGS = frozenset(f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool", "null", "map", "seq"))


def plain_value(text: str) -> ScalarValue:
    """Return the value of an untagged plain scalar."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if text[0] not in _NUMBER_START:
        return text
    if _INTEGER.match(text):
        return int(text) if len(text) <= INTEGER_DIGITS_MAX else text
    if _OCTAL.match(text):
        return int(text, 0) if len(text) <= INTEGER_DIGITS_MAX else text
    if _HEXADECIMAL.match(text):
        return int(text, 0) if len(text) <= INTEGER_DIGITS_MAX else text
    return float(text) if _FLOAT.match(text) else text


def tagged_value(tag: str, text: str) -> ScalarValue:
    """Return the value of a scalar with a core tag; raise ValueError where the text is no such value."""
    if tag == _STRING_TAG:
        return text
    value = plain_value(text)
    wanted = tag.rpartition(":")[2]
    if wanted == "float" and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    found = {bool: "bool", int: "int", float: "float", type(None): "null"}.get(type(value), "str")
    if found != wanted:
        raise ValueError(f"`{text}` is not a {wanted}")
    return value
