"""What a tool kind is, as a playbook's author and the linter see it: inputs, settings, result. Not how it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from noetlvm.record import Record

if TYPE_CHECKING:
    from collections.abc import Mapping
from types import MappingProxyType

Type = Literal["string", "integer", "number", "boolean", "array", "object", "null"]
"""A type of data, by JSON Schema's name for it."""

Language = Literal["sql", "shell", "python", "url"]
"""A language that a text is read as: data spliced into such a text can change what it says."""

ANY: tuple[Type, ...] = ("string", "integer", "number", "boolean", "array", "object", "null")


class Input(Record):
    """A key of the task that the tool reads."""

    name: str
    types: tuple[Type, ...]
    doc: str
    required: bool = False
    default: str | int | float | bool | None = None
    """What the tool assumes if the key is absent; None if it assumes nothing."""
    choices: tuple[str, ...] = ()
    """All the values it may have, if they are few."""
    takes_secret: bool = False
    """A secret may flow here: the value is used to connect, and is neither recorded nor shown."""
    language: Language | None = None
    """What a text given here is read as. A list is not read as anything, and so is safe."""


class Choice(Record):
    """Inputs that stand for each other. `auth` may be among the names."""

    names: tuple[str, ...]
    rule: Literal["exactly one", "at least one", "at most one"]


class Setting(Record):
    """A key of the task's `spec` that the tool obeys. Its default is the outermost layer of spec layering (S38)."""

    name: str
    types: tuple[Type, ...]
    doc: str
    default: int | float | bool | Mapping[str, int | float] | None = None
    """None if the tool knows no value of its own, such as no time limit."""


class ToolKind(Record):
    """One kind of tool."""

    name: str
    summary: str
    example: str
    """A task of this kind, as YAML."""
    result: str
    """What `outcome.result` is."""
    result_fields: tuple[str, ...] = ()
    """The fields of `outcome.result`; empty if it can be anything."""
    inputs: tuple[Input, ...] = ()
    choices: tuple[Choice, ...] = ()
    settings: tuple[Setting, ...] = ()
    open: bool = False
    """Takes inputs besides those it declares."""
    takes_auth: bool = False
    """`auth: <keychain entry>` means something to it."""
    gives_secret: bool = False
    """Its result is a secret, and it does nothing but read that: after a crash it is run again."""
    can_fail: bool = True
    """Whether its outcome can ever be an error."""
    runs_on: Literal["worker", "server", "compiler"] = "worker"
    """Who carries it out; the compiler does so by putting other tasks in its place."""
    extra: str | None = None
    """The optional dependencies (`noetlc[extra]`) that running it needs."""
    helpers: tuple[str, ...] = ()
    """Names under `outcome` that only this kind fills, such as `http`."""
    instead: Mapping[str, str] = MappingProxyType({})
    """Input names that people try, and what to write instead."""

    def input(self, name: str) -> Input | None:
        """Return the declared input of that name."""
        return next((item for item in self.inputs if item.name == name), None)

    def setting(self, name: str) -> Setting | None:
        """Return the declared `spec` setting of that name."""
        return next((item for item in self.settings if item.name == name), None)


def time_limit(seconds: int, doc: str = "Seconds that one attempt may take.") -> Setting:
    """Make the `timeout` setting that most kinds have."""
    return Setting("timeout", ("number",), doc, seconds)
