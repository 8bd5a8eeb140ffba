"""Whether rendered inputs and settings fit what a kind declares. The linter has seen templates, not their values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from noetlvm.language.tool_kind import Choice, Input, Setting, ToolKind, Type
from noetlvm.tools.call import ToolCall

AUTH = "auth"


class Unfit(Exception):  # noqa: N818 - it says what the inputs are
    """An input or a setting is not what the kind takes. The message says which, and what to give instead."""


def fitted(kind: ToolKind, call: ToolCall) -> ToolCall:
    """Return the call with defaults filled in and without what is null. Raises Unfit."""
    given = {name: value for name, value in call.inputs.items() if value is not None}
    auth = given.pop(AUTH, None) if kind.takes_auth else None
    if auth is not None and call.auth is None:
        raise Unfit(f"`auth`: the keychain has no entry `{auth}`")
    _check_names(kind, given)
    for item in kind.inputs:
        _check_input(item, given)
    for choice in kind.choices:
        _check_choice(choice, given.keys() | ({AUTH} if auth is not None else set()))
    defaults = {item.name: item.default for item in kind.inputs if item.default is not None}
    return call._replace(inputs=defaults | given, spec=dict(call.spec) | _settings(kind, call.spec))


def _check_names(kind: ToolKind, given: Mapping[str, Any]) -> None:
    if kind.open:
        return
    known = [item.name for item in kind.inputs]
    for name in given:
        if name not in known:
            raise Unfit(f"`{name}` is no input of `{kind.name}`; {kind.instead.get(name) or f'it takes {known}'}")


def _check_input(item: Input, given: Mapping[str, Any]) -> None:
    if item.name not in given:
        if item.required:
            raise Unfit(f"`{item.name}` is missing or null")
        return
    value = given[item.name]
    _check_type(f"`{item.name}`", item.types, value)
    if item.choices and value not in item.choices:
        raise Unfit(f"`{item.name}` is {value!r}; give one of {', '.join(item.choices)}")


def _check_choice(choice: Choice, given: set[str]) -> None:
    count = len(given & set(choice.names))
    fits = {"exactly one": count == 1, "at least one": count >= 1, "at most one": count <= 1}[choice.rule]
    if not fits:
        raise Unfit(f"give {choice.rule} of {', '.join(f'`{name}`' for name in choice.names)}, not {count}")


def _settings(kind: ToolKind, spec: Mapping[str, Any]) -> dict[str, Any]:
    found = {}
    for setting in kind.settings:
        value = spec.get(setting.name)
        found[setting.name] = setting.default if value is None else _checked(setting, value)
    return found


def _checked(setting: Setting, value: Any) -> Any:
    _check_type(f"`spec.{setting.name}`", setting.types, value)
    numbers = [*value.values()] if isinstance(value, dict) else [value]
    if setting.name == "timeout" and not all(_is_number(number) and number > 0 for number in numbers):
        raise Unfit(f"`spec.{setting.name}` is {value!r}; give seconds, more than 0")
    return value


def _check_type(name: str, types: tuple[Type, ...], value: Any) -> None:
    if not any(_IS[type_](value) for type_ in types):
        raise Unfit(f"{name} must be {' or '.join(types)}, but it is {_named(value)}")


def as_text(name: str, value: Any) -> str:
    """Return a single value as text, booleans as YAML writes them. Raises Unfit for anything else."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value)
    raise Unfit(f"`{name}` must be text, a number or a boolean, not {_named(value)}")


def _named(value: Any) -> str:
    order: tuple[Type, ...] = ("null", "boolean", "integer", "number", "string", "array", "object")
    return next((name for name in order if _IS[name](value)), type(value).__name__)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_IS: dict[Type, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": _is_number,
    "boolean": lambda value: isinstance(value, bool),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
    "null": lambda value: value is None,
}
