"""The commands of `noetlc`. A new command is a function of this package, both of one name, and a line here."""

from __future__ import annotations

from noetlc import __version__
from noetlvm.command_line.declared import CommandProgram

PROGRAM = CommandProgram(
    name="noetlc",
    version=__version__,
    about="The compiler toolchain for NoETL playbooks.",
    package="noetlc.cli",
    commands=(
        "lint",
        "migrate",
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
)
