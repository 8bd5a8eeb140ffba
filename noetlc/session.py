"""The front door of every command that reads playbooks: settings, sources, checking, compiling and the report.

`lint`, `compile`, `canon`, `graph` and `noetlvm run` judge findings alike because they all go through `Session`.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from noetlc import __version__
from noetlc.compile import check_playbook, compile_playbooks
from noetlc.files import STDIN_NAME, STDIO, read_file
from noetlc.lint.run import may_color
from noetlc.report.report import Report
from noetlc.report.text import render
from noetlc.script_text import read_script
from noetlc.settings import settings_for
from noetlvm.command_line.printed import terminal_width
from noetlvm.command_line.process import CommandError

if TYPE_CHECKING:
    from noetlc.compile import Compiled
    from noetlc.lint.check import CheckedFile


class Session:
    """One command over some playbooks; `-` is standard input."""

    def __init__(self, paths: Sequence[str], config: str | None = None) -> None:
        if STDIO in paths and len(paths) > 1:
            raise CommandError("`-` (standard input) cannot be combined with other files")
        self.paths = tuple(paths)
        self.settings = settings_for(self.paths, config)

    def compile(self) -> Compiled:
        """Compile the playbooks into one bundle; the first is the main one."""
        with _without_garbage_collection():
            return compile_playbooks(self._read(), self.settings, read_script)

    def check(self) -> list[CheckedFile]:
        """Check the playbooks. What the compiler cannot work with stays an error whatever is configured."""
        return [check_playbook(path, data, self.settings) for path, data in self._read()]

    def report(self, files: Sequence[CheckedFile], *, quiet: bool = False) -> None:
        """Print findings to standard error as lint does, file by file."""
        rows = tuple(row for file in files for row in file.rows())
        if not rows:
            return
        sources = {file.source.path: file.source for file in files}
        fail_on, color = self.settings.fail_on.severity, may_color(sys.stderr.isatty())
        width = terminal_width(sys.stderr)
        report = Report(rows, tuple(sources), __version__, fail_on, color, quiet, width, sources.get)
        print(render(report), end="", file=sys.stderr)

    def _read(self) -> list[tuple[str, bytes]]:
        limit = self.settings.limits.document_bytes_max
        return [(STDIN_NAME if path == STDIO else path, read_file(path, limit)) for path in self.paths]


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Pause the garbage collector: no tree is freed before the end, and searching them took a third of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
