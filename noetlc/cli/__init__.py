"""The `noetlc` command line: one file for each command. Commands parse options and print; the work is elsewhere."""

from typing import Annotated, TypeAlias

from noetlvm.command_line.declared import Option

ConfigOption: TypeAlias = Annotated[
    str | None, Option(metavar="FILE", help="Configuration file. [default: the nearest noetlc.toml or [tool.noetlc]]")
]
