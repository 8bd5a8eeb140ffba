"""`noetlc disasm`: a bundle as text."""

from __future__ import annotations

from typing import Annotated

from noetlc.assembly.disassembler import disassemble
from noetlc.bundle.files import open_bundle
from noetlc.files import write_file
from noetlvm.command_line.declared import Argument, Option
from noetlvm.command_line.process import SUCCESS


def disasm(
    bundle: Annotated[str, Argument(metavar="BUNDLE", help="A bundle; `-` is standard input.")],
    output: Annotated[str | None, Option("--output", "-o", metavar="FILE", help="Write to a file.")] = None,
    no_source: Annotated[bool, Option("--no-source", help="Print the code without source lines.")] = False,
) -> int:
    """Print a bundle as assembly, with labels and source lines. `noetlc asm` assembles it again.

    \b
    Examples:
      noetlc disasm etl.nbc
      noetlc disasm etl.nbc -o etl.nasm && noetlc asm etl.nasm -o same.nbc
      diff <(noetlc disasm --no-source a.nbc) <(noetlc disasm --no-source b.nbc)

    \b
    Exit codes: 0 printed, 2 the file cannot be read or is not a valid bundle.
    """  # noqa: D301 - the help reads \b as: keep the line breaks of this paragraph
    program, _ = open_bundle(bundle)
    write_file(output, disassemble(program, source_lines=not no_source).encode())
    return SUCCESS
