"""`noetlc asm`: text to a bundle."""

from __future__ import annotations

import sys
from typing import Annotated

from noetlc.bundle.files import assemble_file
from noetlc.files import write_file
from noetlvm.command_line.declared import Argument, Option
from noetlvm.command_line.process import FAILURE, SUCCESS


def asm(
    text: Annotated[str, Argument(metavar="TEXT", help="Assembly; `-` is standard input.")],
    output: Annotated[str, Option("--output", "-o", metavar="FILE", help="File to write; `-` is standard output.")],
    unverified: Annotated[
        bool, Option("--unverified", help="Do not verify the program (for tests of the verifier).")
    ] = False,
) -> int:
    """Assemble the output of `noetlc disasm` into a bundle with the same bytes.

    \b
    Examples:
      noetlc asm etl.nasm -o etl.nbc
      noetlc disasm etl.nbc | noetlc asm - -o same.nbc

    \b
    Exit codes: 0 written, 1 the text is not a valid program, 2 could not run.
    """  # noqa: D301 - the help reads \b as: keep the line breaks of this paragraph
    data, problem = assemble_file(text, verified=not unverified)
    if problem is not None:
        print(problem, file=sys.stderr)
        return FAILURE
    write_file(output, data)
    return SUCCESS
