"""`noetlc strip`: a bundle without its debug map."""

from __future__ import annotations

from typing import Annotated

from noetlc.bundle.files import open_bundle
from noetlc.files import write_file
from noetlvm.bytecode.codec.container import strip as without_debug
from noetlvm.command_line.declared import Argument, Option
from noetlvm.command_line.process import SUCCESS


def strip(
    bundle: Annotated[str, Argument(metavar="BUNDLE", help="A bundle; `-` is standard input.")],
    output: Annotated[
        str | None, Option("--output", "-o", metavar="FILE", help="File to write. [default: the bundle itself]")
    ] = None,
) -> int:
    """Remove the debug map from a bundle. The id does not change; errors no longer name source lines.

    \b
    Examples:
      noetlc strip etl.nbc                 in place
      noetlc strip etl.nbc -o small.nbc

    \b
    Exit codes: 0 written, 2 the file cannot be read or is not a valid bundle.
    """  # noqa: D301 - the help reads \b as: keep the line breaks of this paragraph
    _, data = open_bundle(bundle)
    write_file(output or bundle, without_debug(data))
    return SUCCESS
