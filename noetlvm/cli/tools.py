"""`noetlvm tools`: the tool kinds, or the inputs and settings of one."""

from __future__ import annotations

import json
from typing import Annotated

from noetlvm.cli.data_text import Table, print_table
from noetlvm.cli.request import Json
from noetlvm.command_line.declared import Argument
from noetlvm.command_line.process import SUCCESS, CommandError
from noetlvm.language.tool_kinds import (
    ANY,
    Input,
    ToolKind,
    builtin_kinds,
    find_kind,
    kind_names,
    why_unusable,
)
from noetlvm.nearest import did_you_mean
from noetlvm.record import as_data
from noetlvm.tools.runner import missing_packages


def tools(
    kind: Annotated[str | None, Argument(metavar="[KIND]", help="A tool kind, such as http.")] = None,
    as_json: Json = False,
) -> int:
    """List the tool kinds, or show the inputs and settings of one.

    Examples: noetlvm tools, noetlvm tools http, noetlvm tools postgres --json
    """
    if kind is None:
        _print_all(_all_kinds(), as_json=as_json)
        return SUCCESS
    found = find_kind(kind)
    if found is None:
        raise CommandError(_unknown(kind))
    _print_one(found, as_json=as_json)
    return SUCCESS


def _print_all(kinds: list[ToolKind], *, as_json: bool) -> None:
    if as_json:
        print(json.dumps([as_data(kind) for kind in kinds], indent=2))
        return
    print_table(Table("Tool kinds", ("kind", "summary"), [(kind.name, kind.summary) for kind in kinds]))
    for sentence in missing_packages(kind.name for kind in kinds):
        print(sentence)


def _print_one(kind: ToolKind, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(as_data(kind), indent=2))
        return
    print(f"{kind.name}: {kind.summary}\nResult: {kind.result}.\n")
    for table in _tables(kind):
        print_table(table)
    for choice in kind.choices:
        print(f"Give {choice.rule} of {', '.join(choice.names)}.\n")
    print(f"Example:\n{kind.example}", end="")


def _all_kinds() -> list[ToolKind]:
    plugins = (find_kind(name) for name in kind_names() if name not in builtin_kinds())
    return [*builtin_kinds().values(), *(kind for kind in plugins if kind)]


def _unknown(name: str) -> str:
    reason = why_unusable(name)
    if reason:
        return f"tool kind `{name}` cannot be used: {reason}"
    hint = did_you_mean(name, kind_names()) or f"known kinds: {', '.join(kind_names())}"
    return f"there is no tool kind `{name}`; {hint}"


def _tables(kind: ToolKind) -> list[Table]:
    inputs = Table("Inputs", ("input", "type", "default", "meaning"), [_input_row(item) for item in kind.inputs])
    rows: list[tuple[str, ...]] = [
        (item.name, _types(item.types), _value(item.default), item.doc) for item in kind.settings
    ]
    settings = Table("Settings", ("spec", "type", "default", "meaning"), rows)
    if kind.takes_auth:
        inputs.rows.append(("auth", "string", "", "Name of a keychain entry to connect with."))
    return [table for table in (inputs, settings) if table.rows]


def _input_row(item: Input) -> tuple[str, ...]:
    doc = f"{item.doc} One of {', '.join(item.choices)}." if item.choices else item.doc
    return item.name, _types(item.types), "required" if item.required else _value(item.default), doc


def _types(types: tuple[str, ...]) -> str:
    return "any" if types == ANY else " or ".join(types)


def _value(value: object) -> str:
    return "" if value is None else json.dumps(value)
