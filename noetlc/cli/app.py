"""The commands of `noetlc`. A new command is a function in a file of its own, both of its name, and a line here."""

from __future__ import annotations

from importlib import import_module

from noetlc import __version__
from noetlvm.command_line.declared import Command, Program


def _find(name: str) -> Command:
    command: Command = getattr(import_module(f"noetlc.cli.{name}"), name)
    return command


PROGRAM = Program(
    name="noetlc",
    version=__version__,
    about="The compiler toolchain for NoETL playbooks.",
    commands=(
        "lint",
        "explain",
        "parse",
        "schema",
        "canon",
        "compile",
        "graph",
        "verify",
        "inspect",
        "where",
        "disasm",
        "asm",
        "strip",
    ),
    find=_find,
)
