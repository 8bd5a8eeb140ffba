"""The commands of noetlc: options as the user writes them, and what runs them."""

from typing import Annotated, TypeAlias

from noetlvm.command_line.declared import Option

ConfigOption: TypeAlias = Annotated[
    str | None, Option(metavar="FILE", help="Configuration; else the nearest noetlc.toml or [tool.noetlc] is used.")
]
