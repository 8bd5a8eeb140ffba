"""Lints many files: in this process if there are few, in several if there are many. Results keep the files' order."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from noetlc.files import read_bounded
from noetlc.lint.cache import Result, Stamp, content_digest, stamp_of
from noetlc.lint.check import check_bytes
from noetlc.lint.discover import Target
from noetlc.rules.catalogue import all_rules
from noetlc.rules.p024_document_kind import is_other_document
from noetlc.settings import Settings
from noetlc.syntax.input import looks_like_playbook
from noetlvm.language.tool_kinds import plugin_files

PARALLEL_FROM = 20
"""Fewer files than this are done before a second process has started."""
_CHUNK_MAX = 16
_ROUNDS = 4
"""Least number of chunks for each process, so that one slow file does not leave the others idle."""
_PROGRESS_AFTER_SECONDS = 1.0


class LintedFile(NamedTuple):
    """The result for one target; or, with a problem, why there is none."""

    target: Target
    stamp: Stamp | None = None
    result: Result | None = None
    problem: str | None = None


def lint_files(
    targets: Sequence[Target], settings: Settings, jobs: int | None, on_progress: Callable[[int], None]
) -> list[LintedFile]:
    """Lint every target; `on_progress` is called with the number of finished files."""
    all_rules()  # a rule that cannot be imported stops the command once, instead of failing every file
    processes = min(jobs or available_cores(), len(targets))
    if processes < 2 or (jobs is None and len(targets) < PARALLEL_FROM):
        return _sequential(targets, settings, on_progress)
    first = _sequential(targets[:1], settings, on_progress)  # loads grammars and tables once, before the fork
    return first + _parallel(targets[1:], settings, processes, on_progress)


def lint_file(target: Target, settings: Settings) -> LintedFile:
    """Lint one file. A failure is reported for this file only."""
    try:
        stamp = stamp_of(target.path)
        data = read_bounded(target.path, settings.limits.document_bytes_max)
        return LintedFile(target, stamp, lint_bytes(target, data, settings))
    except OSError as error:
        return LintedFile(target, problem=f"{target.path}: cannot be read: {error.strerror or error}")
    except Exception as error:  # a bug in a rule must not cost the other files their findings
        if os.environ.get("NOETLC_DEBUG"):
            raise
        return LintedFile(target, problem=f"{target.path}: internal error: {_describe(error)}")


def lint_bytes(target: Target, data: bytes, settings: Settings) -> Result:
    """Check a file's content, unless it was found by searching a folder and is not a playbook."""
    digest = content_digest(data)
    is_playbook = looks_like_playbook(data)
    if not is_playbook and not target.named:
        return Result(digest, is_playbook, None)
    checked = check_bytes(target.path, data, settings)
    if not target.named and checked.playbook and is_other_document(checked.playbook):
        return Result(digest, is_playbook=False, rows=None)
    return Result(digest, is_playbook, checked.rows(), plugin_files())


def available_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _describe(error: Exception) -> str:
    """Name the exception and the line that raised it: enough for a report, without a traceback."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = f" ({trace.tb_frame.f_globals.get('__name__')}:{trace.tb_lineno})" if trace else ""
    return f"{type(error).__name__}: {error}{where}; please report this with the file"


def _sequential(targets: Sequence[Target], settings: Settings, on_progress: Callable[[int], None]) -> list[LintedFile]:
    linted = []
    for target in targets:
        linted.append(lint_file(target, settings))
        on_progress(len(linted))
    return linted


def _parallel(
    targets: Sequence[Target], settings: Settings, processes: int, on_progress: Callable[[int], None]
) -> list[LintedFile]:
    from concurrent.futures import BrokenExecutor, ProcessPoolExecutor, as_completed

    size = max(1, min(_CHUNK_MAX, len(targets) // (processes * _ROUNDS)))
    chunks = [targets[start : start + size] for start in range(0, len(targets), size)]
    pool = ProcessPoolExecutor(processes, initializer=_end_on_interrupt)
    try:
        futures = {pool.submit(_lint_chunk, chunk, settings): index for index, chunk in enumerate(chunks)}
        results: list[list[LintedFile]] = [[] for _ in chunks]
        done = 0
        for future in as_completed(futures):
            index = futures[future]
            died = isinstance(future.exception(), BrokenExecutor)
            results[index] = _lost(chunks[index]) if died else future.result()
            done += len(chunks[index])
            on_progress(done)
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown()  # a pool that still ends while the interpreter does prints a traceback
    return [linted for chunk in results for linted in chunk]


def _lint_chunk(chunk: Sequence[Target], settings: Settings) -> list[LintedFile]:
    return [lint_file(target, settings) for target in chunk]


def _lost(chunk: Sequence[Target]) -> list[LintedFile]:
    """Report the files of a process that was killed, perhaps from lack of memory."""
    why = "not checked: the process that worked on it, or on a file beside it, died. Try again with `--jobs 1`"
    return [LintedFile(target, problem=f"{target.path}: {why}") for target in chunk]


def _end_on_interrupt() -> None:
    """Let Ctrl-C, which reaches every process, end this one silently; the parent reports it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class ProgressBar:
    """Counts finished files on a terminal, once the command has taken a noticeable time. `close` removes the bar."""

    def __init__(self, total: int, *, quiet: bool) -> None:
        self._total = total
        self._enabled = not quiet and sys.stderr.isatty()
        self._started = time.monotonic()
        self._bar: Any = None
        self._task: Any = None

    def __call__(self, done: int) -> None:
        """Show that `done` files are finished."""
        if not self._enabled:
            return
        if self._bar is None:
            if time.monotonic() - self._started < _PROGRESS_AFTER_SECONDS:
                return
            self._open()
        self._bar.update(self._task, completed=done)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.stop()

    def _open(self) -> None:
        from rich.console import Console
        from rich.progress import Progress

        self._bar = Progress(console=Console(stderr=True), transient=True)
        self._task = self._bar.add_task("Linting", total=self._total)
        self._bar.start()
