"""Checks rendered inputs and settings against what a kind declares. The linter sees templates, not their values."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping
from math import inf
from sys import float_info
from typing import Any

from noetlvm.expr.numbers import number_of
from noetlvm.expr.values import Undefined
from noetlvm.keychain.auth import used_entry
from noetlvm.language.keychain import ShapeError
from noetlvm.language.tool_kinds import SPEC, Choice, Input, Setting, ToolKind, Type
from noetlvm.tools.call import ToolCall

AUTH = "auth"


class InputError(Exception):
    """An input or a setting is not valid for the kind. The message names it, and what to give instead."""


def prepared(kind: ToolKind, call: ToolCall, inputs: dict[str, Any] | None = None) -> ToolCall:
    """Return the call, or the call with these inputs, with canonical names, defaults and without nulls.

    Raises InputError.
    Inputs that the kind does not read are left out: lint has warned of them, and the task does the same without them.
    """
    given, spec = _canonical(kind, call.inputs if inputs is None else inputs, call.spec)
    auth = given.pop(AUTH, None) if kind.takes_auth else None
    for name in kind.required:
        if name not in given:
            raise InputError(f"`{name}` is missing or null")
    checked: dict[str, Any] = dict(kind.defaults)
    for name, value in given.items():
        item = kind.input(name)
        if item is not None:
            checked[name] = _checked_input(item, value)
        elif kind.open:
            checked[name] = value
    for choice in kind.choices:
        _check_choice(choice, given, auth is not None)
    _set_settings(kind, spec)
    entry = call.auth if auth is None else _entry(auth, call.keychain)
    return ToolCall(call.kind, checked, spec, call.key, entry, call.label, call.attempt, call.keychain, call.context)


def _canonical(
    kind: ToolKind, inputs: dict[str, Any], settings: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return inputs and settings under their canonical names. The compiler does the same to what it sees."""
    given: dict[str, Any] = {}
    spec, spellings = dict(settings), kind.spellings
    for name, value in inputs.items():
        if value is None:
            continue
        meant = spellings.get(name, name)
        if meant is name and name not in given:
            given[name] = value
        elif meant.startswith(SPEC):
            spec[meant.removeprefix(SPEC)] = value
        elif meant in given or inputs.get(meant) is not None:
            raise InputError(f"`{name}` is another name of `{meant}`, which is given too; write one of them")
        else:
            given[meant] = value
    return given, spec


def _entry(auth: Any, keychain: Mapping[str, Any]) -> Any:
    try:
        return used_entry(auth, keychain)
    except ShapeError as problem:
        raise InputError(f"`auth`: {problem}") from None


def _checked_input(item: Input, value: Any) -> Any:
    """Return the value of an input; `get` is as good as `GET`. Raises InputError."""
    _check_type(item, value)
    if not item.choices or value in item.choices:
        return value
    if isinstance(value, str) and value.upper() in item.choices:
        return value.upper()
    raise InputError(f"`{item.name}` is {value!r}; give one of {', '.join(item.choices)}")


def _check_choice(choice: Choice, given: Mapping[str, Any], has_auth: bool) -> None:
    count = 0
    for name in choice.names:
        if name in given or (has_auth and name == AUTH):
            count += 1
    if not _HOLDS[choice.rule](count):
        raise InputError(f"give {choice.rule} of {', '.join(f'`{name}`' for name in choice.names)}, not {count}")


_HOLDS: dict[str, Callable[[int], bool]] = {
    "exactly one": lambda count: count == 1,
    "at least one": lambda count: count >= 1,
    "at most one": lambda count: count <= 1,
}
"""By the rule of a choice: whether this many of its inputs may be given."""


def _set_settings(kind: ToolKind, spec: dict[str, Any]) -> None:
    for setting in kind.settings:
        name, default = setting.name, setting.default
        value = spec.get(name)
        if value is None:
            spec[name] = default
        # Most have the default's value, as the compiler writes defaults out; these need no check.
        elif type(value) is not type(default) or value != default:
            spec[name] = _checked(setting, value)


def _checked(setting: Setting, value: Any) -> Any:
    if isinstance(value, str) and "number" in setting.types and "string" not in setting.types:
        given, value = value, number_of(value)
        if isinstance(value, str):
            raise InputError(f"`spec.{setting.name}` must be {' or '.join(setting.types)}, but it is {given!r:.80}")
    _check_type(setting, value, SPEC)
    numbers = [*value.values()] if isinstance(value, dict) else [value]
    if setting.name == "timeout" and not all(map(_is_duration, numbers)):
        raise InputError(f"`spec.{setting.name}` is {value!r:.80}; give seconds, more than 0")
    return value


def _check_type(declared: Input | Setting, value: Any, prefix: str = "") -> None:
    for type_ in declared.types:
        if _IS[type_](value):
            return
    name = f"`{prefix}{declared.name}`"
    raise InputError(f"{name} must be {' or '.join(declared.types)}, but it is {type_name(value)}")


def as_text(name: str, value: Any) -> str:
    """Return a single value as text, booleans as YAML writes them. Raises InputError for anything else."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value)
    raise InputError(f"`{name}` must be text, a number or a boolean, not {type_name(value)}")


def type_name(value: Any) -> str:
    """Return the name of a value's type in JSON Schema, or in Python if it has none there."""
    order: tuple[Type, ...] = ("null", "boolean", "integer", "number", "string", "array", "object")
    return next((name for name in order if _IS[name](value)), type(value).__name__)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_duration(value: Any) -> bool:
    return _is_number(value) and (0 < value <= float_info.max or value == inf)


_IS: dict[Type, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": _is_number,
    "boolean": lambda value: isinstance(value, bool),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
    "null": lambda value: value is None,
}


_AS_IT_IS = frozenset({str, int, float, bool, type(None)})


def plain(value: Any) -> Any:
    """Return the value as plain data; stored results in it are read (S46). Raises TypeError."""
    if type(value) in _AS_IT_IS:
        return value
    if isinstance(value, dict):
        return {
            key if type(key) is str else _key(key): item if type(item) in _AS_IT_IS else plain(item)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    convert = next((_CONVERSIONS[base.__name__] for base in type(value).__mro__ if base.__name__ in _CONVERSIONS), None)
    if convert is None:
        name = value.name if isinstance(value, Undefined) else ""
        raise TypeError(f"`{name}` is undefined" if name else f"a `{type(value).__name__}` is not plain data")
    return convert(value)


def size_of(value: Any) -> int:
    """Return about how many bytes plain data takes."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        return sum(len(key) + size_of(item) for key, item in value.items())
    if isinstance(value, list):
        return sum(map(size_of, value))
    return 8


def _key(key: Any) -> str:
    return key if isinstance(key, str) else str(plain(key))


def _number(value: Any) -> int | float | str:
    """Return a decimal number as a number if that preserves every digit, else as text."""
    if value.is_finite() and value == value.to_integral_value() and value.as_tuple().exponent >= 0:
        return int(value)
    near = float(value)
    return near if not value.is_finite() or type(value)(repr(near)) == value else str(value)


def _base64(value: Any) -> str:
    return b64encode(value).decode()


_CONVERSIONS: dict[str, Callable[[Any], Any]] = {
    "str": str.__str__,
    "int": int.__int__,
    "float": float.__float__,
    "Decimal": _number,
    "date": lambda value: str(value.isoformat()),
    "time": lambda value: str(value.isoformat()),
    "timedelta": lambda value: float(value.total_seconds()),
    "UUID": str,
    "bytes": _base64,
    "bytearray": _base64,
    "memoryview": _base64,
    "Range": str,
    "Multirange": str,
    "IPv4Address": str,
    "IPv6Address": str,
    "IPv4Network": str,
    "IPv6Network": str,
    "IPv4Interface": str,
    "IPv6Interface": str,
}
"""By the name of a class or of a base class, so that none of their modules has to be imported here."""
