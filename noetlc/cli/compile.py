"""`noetlc compile`: playbooks to a bundle."""

from __future__ import annotations

import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from noetlc.assembly.disassembler import disassemble
from noetlc.bundle.inspection import program_data
from noetlc.cli import ConfigOption
from noetlc.files import STDIO, write_file
from noetlc.session import Session
from noetlc.syntax.playbook_printer import print_playbook
from noetlvm.bytecode.codec.container import bundle_id, strip
from noetlvm.command_line.declared import Argument, Option
from noetlvm.command_line.printed import counted
from noetlvm.command_line.process import FAILURE, SUCCESS, CommandError

if TYPE_CHECKING:
    from noetlc.compile import Compiled


class EmitKind(StrEnum):
    NBC = "nbc"
    ASM = "asm"
    CANON = "canon"
    JSON = "json"


def compile(
    files: Annotated[
        list[str], Argument(metavar="FILES", help="Playbooks: the main one, then its children. `-` is standard input.")
    ],
    output: Annotated[
        str | None,
        Option(
            "--output", "-o", metavar="FILE", help="File to write. [default: the name of the first file, with .nbc]"
        ),
    ] = None,
    strip: Annotated[bool, Option("--strip", help="Leave out the debug map; the id does not change.")] = False,
    werror: Annotated[bool, Option("--werror", help="Treat warnings as errors.")] = False,
    emit: Annotated[EmitKind, Option(help="Form of the output.")] = EmitKind.NBC,
    config: ConfigOption = None,
    quiet: Annotated[bool, Option("--quiet", "-q", help="Print only findings.")] = False,
) -> int:
    """Check playbooks and compile them into one bundle.

    Errors stop the compiler. Configured severities and ignores apply as in lint, except for rules on which the
    compiler depends. Output other than a bundle goes to standard output.

    \b
    Examples:
      noetlc compile etl.yaml                      makes etl.nbc
      noetlc compile etl.yaml load.yaml -o x.nbc   the first is the main one
      noetlc compile etl.yaml --emit asm           the code, for people
      noetlc compile etl.yaml --emit canon         the canonical form, as YAML

    \b
    Exit codes: 0 compiled, 1 the playbooks have errors, 2 could not run.
    """  # noqa: D301 - the help reads \b as: keep the line breaks of this paragraph
    if files == [STDIO] and emit is EmitKind.NBC and output is None:
        raise CommandError("a bundle of standard input needs a file: add `-o FILE`, or `-o -` for standard output")
    session = Session(files, config)
    compiled = session.compile()
    session.report(compiled.files, quiet=quiet)
    if compiled.program is None or (werror and compiled.has_warnings):
        return FAILURE
    if output is None and emit is EmitKind.NBC:
        output = str(Path(files[0]).with_suffix(".nbc"))
    write_file(output, _emitted(compiled, emit, stripped=strip))
    if emit is EmitKind.NBC and output != STDIO and not quiet:
        print(_summary(compiled, output, stripped=strip), file=sys.stderr)
    return SUCCESS


def _emitted(compiled: Compiled, emit: EmitKind, *, stripped: bool) -> bytes:
    assert compiled.program is not None
    if emit is EmitKind.NBC:
        return _bundle(compiled, stripped=stripped)
    if emit is EmitKind.CANON:
        return "---\n".join(print_playbook(form.playbook) for form in compiled.canonical).encode()
    if emit is EmitKind.ASM:
        return disassemble(compiled.program, source_lines=not stripped).encode()
    data = _bundle(compiled, stripped=stripped)
    listing = {"id": bundle_id(data), "bytes": len(data), **program_data(compiled.program)}
    return (json.dumps(listing, indent=2, ensure_ascii=False) + "\n").encode()


def _bundle(compiled: Compiled, *, stripped: bool) -> bytes:
    return strip(compiled.data) if stripped else compiled.data


def _summary(compiled: Compiled, output: str | None, *, stripped: bool) -> str:
    assert compiled.program is not None
    steps = counted(sum(len(playbook.steps) for playbook in compiled.program.playbooks), "step")
    size = len(_bundle(compiled, stripped=stripped))
    return f"noetlc: {output}: {steps}, {size:,} bytes, id {bundle_id(compiled.data)[:16]}"
