"""The commands of `noetlvm`. A new command is a function of this package, both of one name, and a line here."""

from __future__ import annotations

from noetlvm import __version__
from noetlvm.command_line.declared import CommandProgram
from noetlvm.store.interface import StoreError

PROGRAM = CommandProgram(
    name="noetlvm",
    version=__version__,
    about="The virtual machine for NoETL playbooks.\n\nExample: noetlvm run playbook.yaml",
    package="noetlvm.cli",
    commands=(
        *(
            "run",
            "resume",
            "retry",
            "list",
            "show",
            "events",
            "ctx",
            "result",
            "replay",
            "rm",
            "clean",
            "fsck",
            "cancel",
            "pause",
            "tools",
        ),
        *("server", "worker", "submit", "wait", "token", "dev", "conformance", "sim"),
    ),
    errors=(StoreError,),
)
