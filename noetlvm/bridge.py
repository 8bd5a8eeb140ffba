"""The only module of the virtual machine that imports the compiler: compiles playbooks, draws nets, reads YAML.

Running a bundle needs no compiler, so the import is lazy.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from io import BytesIO, StringIO, TextIOWrapper
from typing import TYPE_CHECKING, Any

from noetlvm.command_line.declared import run_words
from noetlvm.command_line.process import CANNOT_RUN, CommandError

if TYPE_CHECKING:
    from noetlc.compile import Compiled
    from noetlvm.bytecode.program import Program


class CompilationError(Exception):
    """There is no bundle. The message gives the reason; it is empty if findings were printed."""

    def __init__(self, message: str, findings: Sequence[dict[str, Any]] = ()) -> None:
        super().__init__(message)
        self.findings = list(findings)
        """As `noetlc lint --format json` prints them."""


def compile_playbooks(paths: Sequence[str], *, quiet: bool = False) -> bytes:
    """Return the bundle of playbook files, the main one first. Findings go to standard error; if quiet, errors only."""
    try:
        from noetlc.session import Session
    except ImportError as error:
        message = f"running YAML needs the compiler, which is not installed ({error}); run a .nbc"
        raise CompilationError(message) from None
    session = Session(paths)
    compiled = session.compile()
    if compiled.program is None:
        session.report(compiled.files)
        raise CompilationError("", _findings(compiled))
    if not quiet:
        with suppress(OSError):  # a run does not end because its warnings cannot be written
            session.report(compiled.files)
            sys.stderr.flush()
    return compiled.data


def compile_texts(texts: Sequence[str]) -> bytes:
    """Return the bundle of playbooks given as text, the main one first; their errors are the message."""
    from noetlc.compile import compile_playbooks
    from noetlc.finding import Severity

    compiled = compile_playbooks(_files(texts))
    errors = [one.message for file in compiled.files for one in file.findings if one.severity is Severity.ERROR]
    if compiled.program is None:
        raise CompilationError("; ".join(errors), _findings(compiled))
    return compiled.data


def compile_valid(texts: Sequence[str]) -> bytes:
    """Return the same bundle of playbooks that have no errors by construction, in half the time: nothing is checked."""
    from noetlc.compile import compile_valid

    return compile_valid(_files(texts))


def _files(texts: Sequence[str]) -> list[tuple[str, bytes]]:
    return [(f"playbook_{at}", text.encode()) for at, text in enumerate(texts, 1)]


def compile_source(path: str, data: bytes) -> tuple[bytes, list[dict[str, Any]]]:
    """Return the bundle of one playbook, and its findings as `noetlc lint --format json` prints them."""
    from noetlc.compile import compile_playbooks

    compiled = compile_playbooks([(path, data)])
    findings = _findings(compiled)
    if compiled.program is None:
        errors = [one for one in findings if one["severity"] == "error"]
        lines = [f"{one['path']}:{one['line']}:{one['column']}: {one['code']} {one['message']}" for one in errors]
        raise CompilationError("\n".join(("the playbook has errors", *lines)), findings)
    return compiled.data, findings


def _findings(compiled: Compiled) -> list[dict[str, Any]]:
    from noetlc.report.located_finding import resolve_all

    return [row.to_json() for file in compiled.files for row in resolve_all(file.findings, file.source)]


def yaml_files(folder: str) -> list[str]:
    """Return the YAML files below a folder that `noetlc lint` looks at there."""
    from noetlc.lint.discover import discover
    from noetlc.settings import settings_for

    settings = settings_for((folder,), None)
    return [target.path for target in discover([folder], settings.exclude, settings.folder).targets]


def looks_like_playbook(data: bytes) -> bool:
    """Return whether a YAML file found in a folder is meant as a playbook."""
    from noetlc.syntax.input import looks_like_playbook

    return looks_like_playbook(data)


def run_compiler(words: Sequence[str]) -> tuple[int, str]:
    """Run a command of `noetlc` in this process; return its exit code and what it prints on standard output."""
    from noetlc.cli.app import PROGRAM

    printed = BytesIO()
    out = TextIOWrapper(printed, encoding="utf-8", newline="")
    with redirect_stdout(out), redirect_stderr(StringIO()):
        try:
            code = run_words(PROGRAM, words)
        except (CommandError, *PROGRAM.errors):  # type: ignore[misc]
            code = CANNOT_RUN
        out.flush()
    return code, printed.getvalue().decode()


def net_picture(program: Program, path: str, steps_max: int) -> str | None:
    """Return the net of a playbook as an `svg` element without a style; None if it has more steps than that."""
    from noetlc.graph.analyse import analyse
    from noetlc.graph.formats.svg import svg
    from noetlc.graph.picture import draw, picture_of
    from noetlc.net.program import nets_of

    net = next(net for net in nets_of(program) if net.path == path)
    if len(net.steps) > steps_max:
        return None
    return svg(draw(picture_of(analyse(net, path))), title=net.name)


def picture_style() -> str:
    """Return the style of such pictures, with its colours as variables."""
    from noetlc.graph.formats.palette import asset, variables

    return variables() + asset("picture.css")


def read_yaml(path: str, data: bytes) -> Any:
    """Return the data of a YAML file, None if it is empty. Raises CompilationError at the first problem."""
    from noetlc.syntax import nodes, span, yaml_reader

    text, problem = yaml_reader.decode(data)
    document = yaml_reader.read_document(text)
    for found in (problem, *document.problems):
        if found is not None and found.kind is not span.ProblemKind.EMPTY:
            line, column = span.Source(path, text).position(found.span.start)
            raise CompilationError(f"{path}:{line}:{column}: {found.message}; {found.help}")
    return None if document.root is None else nodes.plain(document.root)
