"""Commands and their options, declared in the signatures of the functions that carry the commands out.

`Annotated[str | None, Option("--db", metavar="FILE", help="…")] = None` is all there is to say of an option. Two
readers work from it: `plain` reads what is written plainly, and `typer_app` everything else.
"""

from __future__ import annotations

from collections.abc import Callable
from types import NoneType, UnionType
from typing import Any, TypeAlias, get_args, get_origin, get_type_hints

from noetlvm.record import Record

Command: TypeAlias = Callable[..., int]
"""Takes its options by name, and returns the exit code."""

REQUIRED: Any = ...
"""The default of what has to be given."""


class Option:
    """A word that begins with a dash, with or without a value."""

    __slots__ = ("flags", "help", "metavar", "min")

    def __init__(self, *flags: str, help: str, metavar: str | None = None, min: int | None = None) -> None:
        self.flags = flags
        """How it may be written; by default `--` and the parameter's name."""
        self.help = help
        self.metavar = metavar
        self.min = min
        """The least that an integer may be."""


class Argument(Record):
    """A word that stands by itself; the last argument may be a list."""

    help: str
    metavar: str


class Parameter(Record):
    """One parameter of a command."""

    name: str
    declared: Option | Argument
    hint: Any
    """The type as it was written."""
    type: Any
    """The type of one value: bool, str, int, an enumeration or a tuple."""
    is_list: bool
    default: Any

    @property
    def flags(self) -> tuple[str, ...]:
        """How an option is written; nothing for an argument."""
        if isinstance(self.declared, Argument):
            return ()
        return self.declared.flags or (f"--{self.name.replace('_', '-')}",)


class Program(Record):
    """A program that has commands."""

    name: str
    version: str
    about: str
    """What `--help` begins with."""
    commands: tuple[str, ...]
    """In the order in which `--help` lists them."""
    find: Callable[[str], Command]
    """Returns the function of a command; only now is its file imported."""


def parameters(command: Command) -> list[Parameter]:
    """Return what a command takes, in the order of its signature."""
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
