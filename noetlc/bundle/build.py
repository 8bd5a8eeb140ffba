"""One run of `noetlc compile`, from files to an exit code: reads, compiles, tells what was found, writes."""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from noetlc import __version__
from noetlc.bundle.files import STANDARD, read_file, write_file
from noetlc.compile import COMPILER_CODES, Compiled, PlaybookFile, compile_playbooks
from noetlc.finding import Severity
from noetlc.lint.cannot_run import CannotRun
from noetlc.lint.examine import rows_of
from noetlc.lint.options import Options
from noetlc.lint.selection import select_for
from noetlc.lint.settings import Settings, find_settings, load_settings
from noetlc.lint.terms import terms_for
from noetlc.report.formats import Format, render
from noetlc.report.report import Report, counted
from noetlc.report.row import Row
from noetlvm.bytecode.codec.container import bundle_id, strip

COMPILED, FINDINGS = 0, 1
STDIN_NAME = "<stdin>"


class Emit(StrEnum):
    """What to make of the playbooks."""

    NBC = "nbc"
    ASM = "asm"
    CANON = "canon"
    JSON = "json"


class Order(NamedTuple):
    """One command line."""

    paths: tuple[str, ...]
    output: str | None = None
    strip: bool = False
    werror: bool = False
    emit: Emit = Emit.NBC
    config: str | None = None
    quiet: bool = False


def compile_files(order: Order) -> int:
    """Compile, tell, write, and return the exit code."""
    compiled = compile_and_tell(order)
    if compiled is None:
        return FINDINGS
    target = _target(order)
    write_file(target, _emitted(compiled, order))
    if order.emit is Emit.NBC and target != STANDARD and not order.quiet:
        print(_summary(compiled, order, target), file=sys.stderr)
    return COMPILED


def compile_and_tell(order: Order) -> Compiled | None:
    """Compile, and tell what was found; None if that leaves no bundle."""
    _require_consistent(order)
    settings = load_settings(Path(order.config)) if order.config else find_settings(order.paths)
    options = Options(paths=order.paths)
    terms = terms_for(options, settings)
    files = [
        PlaybookFile(STDIN_NAME if path == STANDARD else path, read_file(path, terms.limits.document_bytes_max))
        for path in order.paths
    ]
    with _without_garbage_collection():
        compiled = compile_playbooks(files, terms)
    rows = _reported(compiled, options, settings)
    _tell(rows, compiled, order.quiet)
    return None if compiled.program is None or _fails(rows, order.werror) else compiled


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """A compiler's trees live to its end: looking for garbage among them took a third of the time and found none."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _require_consistent(order: Order) -> None:
    if STANDARD in order.paths and len(order.paths) > 1:
        raise CannotRun("`-` (standard input) cannot be combined with other files")
    if order.paths == (STANDARD,) and order.emit is Emit.NBC and order.output is None:
        raise CannotRun("a bundle of standard input needs a place: add `-o FILE`, or `-o -` for standard output")


def _target(order: Order) -> str | None:
    if order.output is not None or order.emit is not Emit.NBC:
        return order.output
    return str(Path(order.paths[0]).with_suffix(".nbc"))


def _reported(compiled: Compiled, options: Options, settings: Settings) -> list[Row]:
    """Return errors, the compiler's own findings, and such warnings as lint would report; its notes are for lint."""
    rows = [row for file in compiled.files for row in rows_of(file)]
    always = [row for row in rows if row.severity is Severity.ERROR or row.code in COMPILER_CODES]
    others = select_for(options, settings).apply(row for row in rows if row not in always)
    return [*always, *(row for row in others if row.severity is not Severity.NOTE)]


def _fails(rows: list[Row], werror: bool) -> bool:
    failing = Severity.WARNING if werror else Severity.ERROR
    return any(row.severity.rank >= failing.rank for row in rows)


def _tell(rows: list[Row], compiled: Compiled, quiet: bool) -> None:
    if not rows:
        return
    sources = {file.source.path: file.source for file in compiled.files}
    ordered = sorted(rows, key=lambda row: (list(sources).index(row.path), row.place))
    color = sys.stderr.isatty()
    report = Report(tuple(ordered), tuple(sources), __version__, Severity.ERROR, color, quiet, sources.get)
    print(render(Format.TEXT, report), end="", file=sys.stderr)


def _emitted(compiled: Compiled, order: Order) -> bytes:
    assert compiled.program is not None
    data = strip(compiled.data) if order.strip else compiled.data
    if order.emit is Emit.NBC:
        return data
    if order.emit is Emit.CANON:
        from noetlc.syntax.playbook_printer import print_playbook

        return "---\n".join(print_playbook(form.playbook) for form in compiled.canonical).encode()
    if order.emit is Emit.ASM:
        from noetlc.assembly.disassembler import disassemble

        return disassemble(compiled.program, source_lines=not order.strip).encode()
    from noetlc.bundle.program_data import program_data

    listing = {"id": bundle_id(data), "bytes": len(data), **program_data(compiled.program)}
    return (json.dumps(listing, indent=2, ensure_ascii=False) + "\n").encode()


def _summary(compiled: Compiled, order: Order, target: str | None) -> str:
    assert compiled.program is not None
    steps = sum(len(playbook.steps) for playbook in compiled.program.playbooks)
    size = len(strip(compiled.data) if order.strip else compiled.data)
    return f"noetlc: {target}: {counted(steps, 'step')}, {size:,} bytes, id {bundle_id(compiled.data)[:16]}"
