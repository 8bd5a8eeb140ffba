"""Commands and their options, declared in the signatures of the functions that carry the commands out.

`Annotated[str | None, Option("--db", metavar="FILE", help="…")] = None` declares an option. Two readers use the
declaration: `plain` for the usual spellings, `typer_app` for everything else.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from types import NoneType, UnionType
from typing import Any, TypeAlias, get_args, get_origin, get_type_hints

from noetlvm.record import Record

Command: TypeAlias = Callable[..., int]
"""Takes its options by keyword and returns the exit code."""

REQUIRED: Any = ...
"""The default of a required parameter."""


class Option:
    """A word that begins with a dash, with or without a value."""

    __slots__ = ("flags", "help", "metavar", "min")

    def __init__(self, *flags: str, help: str, metavar: str | None = None, min: int | None = None) -> None:
        self.flags = flags
        """Spellings; by default `--` and the parameter's name."""
        self.help = help
        self.metavar = metavar
        self.min = min
        """Smallest allowed integer."""


class Argument(Record):
    """A positional word; the last argument may be a list."""

    help: str
    metavar: str


class Parameter(Record):
    """One parameter of a command."""

    name: str
    declared: Option | Argument
    hint: Any
    """The annotated type."""
    type: Any
    """The type of one value: bool, str, int, an enumeration or a tuple."""
    is_list: bool
    default: Any

    @property
    def flags(self) -> tuple[str, ...]:
        """Spellings of an option; empty for an argument."""
        if isinstance(self.declared, Argument):
            return ()
        return self.declared.flags or (f"--{self.name.replace('_', '-')}",)


class CommandProgram(Record):
    """A program that has commands. Command `x` is the function `x` of the module `x` in the package of commands."""

    name: str
    version: str
    about: str
    """What `--help` begins with."""
    package: str
    commands: tuple[str, ...]
    """In the order in which `--help` lists them."""
    errors: tuple[type[Exception], ...] = ()
    """Exceptions that are reported by their message alone, besides `CommandError`."""

    def find(self, name: str) -> Command:
        """Import the module of a command and return its function."""
        command: Command = getattr(import_module(f"{self.package}.{name}"), name)
        return command


def parameters(command: Command) -> list[Parameter]:
    """Return the parameters of a command in the order of its signature."""
    code = command.__code__
    hints = get_type_hints(command, include_extras=True)
    names = code.co_varnames[: code.co_argcount]
    defaults = command.__defaults__ or ()
    missing = (REQUIRED,) * (len(names) - len(defaults))
    return [_parameter(name, hints[name], default) for name, default in zip(names, missing + defaults, strict=True)]


def _parameter(name: str, annotated: Any, default: Any) -> Parameter:
    hint, declared = get_args(annotated)
    kind = hint
    if isinstance(hint, UnionType):
        (kind,) = (each for each in get_args(hint) if each is not NoneType)
    is_list = get_origin(kind) is list
    return Parameter(name, declared, hint, get_args(kind)[0] if is_list else kind, is_list, default)
