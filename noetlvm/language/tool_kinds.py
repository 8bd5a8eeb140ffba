"""The registry of tool kinds: built-in ones, each declared in the module of its name in `noetlvm.tools`, and plugins.

A module is loaded by name, on the first use of its kind: a registry of names, so that this package imports no tool.
A plugin is an entry point of the group `noetlvm.tools` whose name is the kind's and whose object is a `ToolKind`.
What runs it is `run` in the module that the entry point names, beside the kind, as in `noetlvm.tools`.
A plugin that cannot be loaded makes its kind unknown, with a reason; it never fails the caller.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import cache, cached_property
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from noetlvm.language.plugins import entry_points_of
from noetlvm.record import Record

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

NO_TIME_KIND = "noop"
"""The kind that answers at once and has no effect."""


Type = Literal["string", "integer", "number", "boolean", "array", "object", "null"]
"""A type of data, by its name in JSON Schema."""

Language = Literal["sql", "shell", "python", "url"]
"""The language in which a tool interprets a text: data spliced into such a text can change its meaning."""

ANY: tuple[Type, ...] = ("string", "integer", "number", "boolean", "array", "object", "null")

SPEC = "spec."
"""Prefix of a spelling's target that is a setting and not an input."""


class Input(Record):
    """A key of the task that the tool reads."""

    name: str
    types: tuple[Type, ...]
    doc: str
    required: bool = False
    default: str | int | float | bool | None = None
    """Value used if the key is absent; None if there is none."""
    choices: tuple[str, ...] = ()
    """All allowed values, if they are few."""
    takes_secret: bool = False
    """A secret may flow here: the value is used to connect, and is neither recorded nor shown."""
    language: Language | None = None
    """The language of a text given here. A list is not interpreted, and so is safe, unless `reads_items`."""
    reads_items: bool = False
    """Each item of a list is read in the language too."""


class Choice(Record):
    """Inputs that replace each other. `auth` may be among the names."""

    names: tuple[str, ...]
    rule: Literal["exactly one", "at least one", "at most one"]


class Setting(Record):
    """A key of the task's `spec` that the tool obeys. Its default is the outermost layer of spec layering (S38)."""

    name: str
    types: tuple[Type, ...]
    doc: str
    default: int | float | bool | Mapping[str, int | float] | None = None
    """None if the tool has no default, such as no time limit."""


class ToolKind(Record, cached=True):
    name: str
    summary: str
    example: str
    """A task of this kind, as YAML."""
    result: str
    """Description of `outcome.result`."""
    result_fields: tuple[str, ...] = ()
    """The fields of `outcome.result`; empty if it can be anything."""
    inputs: tuple[Input, ...] = ()
    choices: tuple[Choice, ...] = ()
    settings: tuple[Setting, ...] = ()
    open: bool = False
    """Accepts inputs that it does not declare."""
    takes_auth: bool = False
    """`auth: <keychain entry>` has a meaning."""
    gives_secret: bool = False
    """Its result is a secret, and it does nothing but read that: after a crash it is run again."""
    can_fail: bool = True
    """Whether its outcome can be an error."""
    runs_on: Literal["worker", "server", "compiler"] = "worker"
    """Which part runs it; the compiler replaces it by other tasks."""
    extra: str | None = None
    """The optional dependencies (`noetlc[extra]`) that running it needs."""
    package: str | None = None
    """The module of that extra: without it, a run is refused before its first step."""
    helpers: tuple[str, ...] = ()
    """Names under `outcome` that only this kind sets, such as `http`."""
    spellings: Mapping[str, str] = MappingProxyType({})
    """Other accepted names of inputs: to an input, to `auth`, or to a setting as `spec.<name>`.

    The compiler rewrites them to the canonical name; a task that gives both names is an error."""
    instead: Mapping[str, str] = MappingProxyType({})
    """Input names that are common mistakes, and what to write instead."""

    def input(self, name: str) -> Input | None:
        return self._inputs_by_name.get(name)

    @cached_property
    def _inputs_by_name(self) -> dict[str, Input]:
        return {item.name: item for item in self.inputs}

    @cached_property
    def required(self) -> tuple[str, ...]:
        """The inputs that a task must give."""
        return tuple(item.name for item in self.inputs if item.required)

    @cached_property
    def defaults(self) -> dict[str, str | int | float | bool]:
        """The values of inputs that a task does not give."""
        return {item.name: item.default for item in self.inputs if item.default is not None}

    def setting(self, name: str) -> Setting | None:
        """Return the declared `spec` setting of that name."""
        return next((item for item in self.settings if item.name == name), None)

    def canonical(self, name: str) -> str:
        """Return the name that an input name stands for: itself, an input, `auth`, or `spec.<setting>`."""
        return self.spellings.get(name, name)


def time_limit(seconds: int, doc: str = "Time limit of one attempt, in seconds.") -> Setting:
    """Make the `timeout` setting that most kinds have."""
    return Setting("timeout", ("number",), doc, seconds)


ENTRY_POINT_GROUP = "noetlvm.tools"

_BUILTIN = {
    name: f"noetlvm.tools.{name}"
    for name in ("noop", "http", "postgres", "duckdb", "nats", "python", "shell", "secrets", "playbook", "workbook")
}
"""The module of each, in the order of the reference page."""

PLUGIN_KINDS = {
    "agent": "agents",
    "artifact": "artifact stores",
    "container": "containers",
    "ducklake": "DuckLake catalogues (or `kind: duckdb` with its extension)",
    "rhai": "Rhai scripts (or `kind: python`)",
    "script": "scripts as jobs (or `script` of `kind: python`, `postgres` or `duckdb`)",
    "snowflake": "Snowflake",
    "subscription": "subscriptions",
    "transfer": "transfers between databases (or `kind: duckdb` with `attach`)",
}
"""Kinds in use that no module here runs, and for what: a plugin of that name can."""


def builtin_kinds() -> dict[str, ToolKind]:
    """Return the kinds that come with the virtual machine, in the order of the reference page."""
    return {name: _builtin(name) for name in _BUILTIN}


def find_kind(name: str) -> ToolKind | None:
    """Return the kind of that name, built-in or from a plugin."""
    if name in _BUILTIN:
        return _builtin(name)
    found = _plugin(name)
    return found if isinstance(found, ToolKind) else None


def gives_secret(name: str) -> bool:
    """Return whether the kind of that name does nothing but read a secret."""
    kind = find_kind(name)
    return kind is not None and kind.gives_secret


def may_give_secret(name: str) -> bool:
    """Return whether a kind may do so, without loading its module: only plugins are not known."""
    return name == "secrets" or name not in _BUILTIN


def module_of(name: str) -> str | None:
    """Return the name of the module that declares a kind and may run it, or None if the kind is unknown."""
    if find_kind(name) is None:
        return None
    return _BUILTIN.get(name) or next(entry.module for entry in _entry_points() if entry.name == name)


def is_builtin(name: str) -> bool:
    return name in _BUILTIN


def why_unusable(name: str) -> str | None:
    """Explain why `find_kind` does not find a kind that a plugin offers; None if no plugin offers it."""
    found = None if name in _BUILTIN else _plugin(name)
    return found if isinstance(found, str) else None


def kind_names() -> list[str]:
    """Return the names of all kinds, plugins' included, without loading any plugin."""
    return [*_BUILTIN, *sorted({entry.name for entry in _entry_points()} - _BUILTIN.keys())]


def plugin_files() -> tuple[str, ...]:
    """Return the files of the plugins that this process has loaded so far."""
    if not entry_points_of.cache_info().currsize:
        return ()
    modules = [sys.modules.get(entry.module) for entry in _entry_points()]
    return tuple(sorted({module.__file__ for module in modules if module and module.__file__}))


@cache
def _builtin(name: str) -> ToolKind:
    kind: ToolKind = import_module(_BUILTIN[name]).KIND
    return kind


@cache
def _plugin(name: str) -> ToolKind | str | None:
    """Return the plugin's kind, or the reason why it cannot be used, or None if there is no such plugin."""
    entries = [entry for entry in _entry_points() if entry.name == name]
    if not entries:
        return None
    if len(entries) > 1:
        return f"several plugins offer it: {', '.join(sorted(entry.value for entry in entries))}"
    return _load(entries[0])


def _load(entry: EntryPoint) -> ToolKind | str:
    try:
        kind = entry.load()
    except (Exception, SystemExit) as error:  # foreign code may fail in any way at all while it is imported
        return f"its plugin `{entry.value}` cannot be loaded: {type(error).__name__}: {error}"
    if not isinstance(kind, ToolKind):
        return f"its plugin `{entry.value}` is not a `ToolKind` but a `{type(kind).__name__}`"
    if kind.name != entry.name:
        return f"its plugin `{entry.value}` calls itself `{kind.name}`"
    return kind


def _entry_points() -> tuple[EntryPoint, ...]:
    return entry_points_of(ENTRY_POINT_GROUP)
