"""Commands and their options, declared in the signatures of the functions that carry the commands out.

`Annotated[str | None, Option("--db", metavar="FILE", help="…")] = None` declares an option. Two readers use the
declaration: `run_words` for the usual spellings, `typer_app` for everything else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from importlib import import_module
from types import NoneType, UnionType
from typing import Any, TypeAlias, get_args, get_origin, get_type_hints

from noetlvm.command_line.process import CommandError
from noetlvm.nearest import did_you_mean
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


_DIGITS_MAX = 18


class _UnusualError(Exception):
    """The words are left to typer."""


def run_words(program: CommandProgram, words: Sequence[str]) -> int:
    """Run the command that a command line names and return the exit code."""
    if words and words[0] in program.commands:
        command = program.find(words[0])
        given = read_words(command, words[1:])
        if given is not None:
            return command(**given)
    elif words and words[0].isalpha():
        raise CommandError(_unknown_command(program, words[0]))
    from noetlvm.command_line.typer_app import run_with_typer

    return run_with_typer(program, words)


def _unknown_command(program: CommandProgram, word: str) -> str:
    hint = " ".join(filter(None, (did_you_mean(word, program.commands), f"`{program.name} --help` lists the commands")))
    return f"there is no command `{word}`; {hint}"


def read_words(command: Command, words: Sequence[str]) -> dict[str, Any] | None:
    """Return a command's parameters as the words set them, defaults included; None if a spelling is unusual."""
    declared = parameters(command)
    options = {flag: parameter for parameter in declared for flag in parameter.flags}
    given: dict[str, Any] = {}
    positional: list[str] = []
    rest = iter(words)
    try:
        for word in rest:
            if word in options:
                _set(options[word], None, rest, given)
            elif word.startswith("--"):
                flag, equals, value = word.partition("=")
                if not equals or flag not in options:
                    return None
                _set(options[flag], value, rest, given)
            elif word.startswith("-") and word != "-":
                return None
            else:
                positional.append(word)
        _assign([parameter for parameter in declared if not parameter.flags], positional, given)
        return {parameter.name: _value_or_default(parameter, given) for parameter in declared}
    except _UnusualError:
        return None


def _set(parameter: Parameter, attached: str | None, rest: Iterator[str], given: dict[str, Any]) -> None:
    """Set an option to the value attached with `=`, else to the next word."""
    if parameter.type is bool:
        if attached is not None:
            raise _UnusualError
        value: Any = True
    elif attached is not None:
        value = _convert(parameter, attached)
    else:
        word = next(rest, "-")
        if word.startswith("-"):
            raise _UnusualError
        value = _convert(parameter, word)
    if parameter.is_list:
        given.setdefault(parameter.name, []).append(value)
    elif parameter.name in given:
        raise _UnusualError
    else:
        given[parameter.name] = value


def _convert(parameter: Parameter, word: str) -> Any:
    kind, declared = parameter.type, parameter.declared
    if kind is str:
        return word
    if kind is int and isinstance(declared, Option) and word.isascii() and word.isdigit() and len(word) <= _DIGITS_MAX:
        number = int(word)
        if declared.min is None or number >= declared.min:
            return number
    if isinstance(kind, type) and issubclass(kind, Enum) and word in [member.value for member in kind]:
        return kind(word)
    raise _UnusualError


def _assign(arguments: list[Parameter], positional: list[str], given: dict[str, Any]) -> None:
    words = list(positional)
    for argument in arguments:
        if argument.is_list and words:
            given[argument.name], words = words, []
        elif words:
            given[argument.name] = words.pop(0)
    if words:
        raise _UnusualError


def _value_or_default(parameter: Parameter, given: dict[str, Any]) -> Any:
    value = given.get(parameter.name, parameter.default)
    if value is REQUIRED:
        raise _UnusualError
    return value
