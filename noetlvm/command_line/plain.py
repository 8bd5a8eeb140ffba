"""Reads options that are written plainly: each word a flag, a flag's value, or an argument, and no doubt which.

Anything else (`--db=x`, `-qo x`, a value that begins with a dash or is none of those there are, help, too much or too
little) is left to typer. Importing that takes longer than most commands do.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Any

from noetlvm.command_line.declared import REQUIRED, Command, Option, Parameter, Program, parameters
from noetlvm.command_line.exit_codes import CANNOT_RUN

_DIGITS_MAX = 18


class _NotPlainError(Exception):
    """The words are typer's to read."""


def answer(program: Program, words: Sequence[str]) -> int:
    """Carry out a command line and return the exit code."""
    if words and words[0] in program.commands:
        command = program.find(words[0])
        given = plainly_read(command, words[1:])
        if given is not None:
            return command(**given)
    elif words and words[0].isalpha():
        return _no_such_command(program, words[0])
    from noetlvm.command_line.typer_app import answer_with_typer

    return answer_with_typer(program, words)


def _no_such_command(program: Program, word: str) -> int:
    from difflib import get_close_matches

    near = get_close_matches(word, program.commands, 1)
    meant = f"did you mean `{near[0]}`? " if near else ""
    print(
        f"{program.name}: there is no command `{word}`; {meant}`{program.name} --help` lists those there are",
        file=sys.stderr,
    )
    return CANNOT_RUN


def plainly_read(command: Command, words: Sequence[str]) -> dict[str, Any] | None:
    """Return what the words set a command's parameters to, defaults included; None: they are not plain."""
    declared = parameters(command)
    options = {flag: parameter for parameter in declared for flag in parameter.flags}
    given: dict[str, Any] = {}
    standing: list[str] = []
    rest = iter(words)
    try:
        for word in rest:
            if word in options:
                _take(options[word], rest, given)
            elif word.startswith("-") and word != "-":
                return None
            else:
                standing.append(word)
        _place([parameter for parameter in declared if not parameter.flags], standing, given)
        return {parameter.name: _filled(parameter, given) for parameter in declared}
    except _NotPlainError:
        return None


def _take(parameter: Parameter, rest: Iterator[str], given: dict[str, Any]) -> None:
    """Take an option's value from the words after it."""
    value = True if parameter.type is bool else _value(parameter, next(rest, "-"))
    if parameter.is_list:
        given.setdefault(parameter.name, []).append(value)
    elif parameter.name in given:
        raise _NotPlainError
    else:
        given[parameter.name] = value


def _value(parameter: Parameter, word: str) -> Any:
    kind, declared = parameter.type, parameter.declared
    if word.startswith("-"):
        raise _NotPlainError
    if kind is str:
        return word
    if kind is int and isinstance(declared, Option) and word.isascii() and word.isdigit() and len(word) <= _DIGITS_MAX:
        number = int(word)
        if declared.min is None or number >= declared.min:
            return number
    if isinstance(kind, type) and issubclass(kind, Enum) and word in [member.value for member in kind]:
        return kind(word)
    raise _NotPlainError


def _place(arguments: list[Parameter], standing: list[str], given: dict[str, Any]) -> None:
    """Give the words that stand by themselves to the arguments, in order."""
    words = list(standing)
    for argument in arguments:
        if argument.is_list and words:
            given[argument.name], words = words, []
        elif words:
            given[argument.name] = words.pop(0)
    if words:
        raise _NotPlainError


def _filled(parameter: Parameter, given: dict[str, Any]) -> Any:
    value = given.get(parameter.name, parameter.default)
    if value is REQUIRED:
        raise _NotPlainError
    return value
