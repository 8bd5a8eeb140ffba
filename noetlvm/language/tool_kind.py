"""What a tool kind is, as a playbook's author and the linter see it: inputs, settings, result. Not how it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from noetlvm.record import Record

if TYPE_CHECKING:
    from collections.abc import Mapping
from types import MappingProxyType

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


class ToolKind(Record):
    """One kind of tool."""

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
    helpers: tuple[str, ...] = ()
    """Names under `outcome` that only this kind sets, such as `http`."""
    spellings: Mapping[str, str] = MappingProxyType({})
    """Other accepted names of inputs: to an input, to `auth`, or to a setting as `spec.<name>`.

    The compiler rewrites them to the canonical name; a task that gives both names is an error."""
    instead: Mapping[str, str] = MappingProxyType({})
    """Input names that are common mistakes, and what to write instead."""

    def input(self, name: str) -> Input | None:
        """Return the declared input of that name."""
        return next((item for item in self.inputs if item.name == name), None)

    def setting(self, name: str) -> Setting | None:
        """Return the declared `spec` setting of that name."""
        return next((item for item in self.settings if item.name == name), None)

    def canonical(self, name: str) -> str:
        """Return the name that an input name stands for: itself, an input, `auth`, or `spec.<setting>`."""
        return self.spellings.get(name, name)


def time_limit(seconds: int, doc: str = "Seconds that one attempt may take.") -> Setting:
    """Make the `timeout` setting that most kinds have."""
    return Setting("timeout", ("number",), doc, seconds)
