"""One run of `noetlc lint`: check the files, apply settings and baseline, fix, report."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from noetlc import __version__
from noetlc.files import STDIN_NAME, STDIO, read_bounded, write_file
from noetlc.finding import Finding
from noetlc.lint.baseline import read_baseline, write_baseline
from noetlc.lint.cache import Cache, no_cache, open_cache
from noetlc.lint.discover import Target, discover
from noetlc.lint.fixing import fix_text
from noetlc.report.located_finding import LocatedFinding
from noetlc.report.report import OutputFormat, Report, render, statistics, summary
from noetlc.settings import Settings
from noetlc.syntax.span import Source
from noetlvm.atomic_file import write_atomically
from noetlvm.command_line.printed import counted, terminal_width
from noetlvm.command_line.process import CANNOT_RUN, FAILURE, SUCCESS, CommandError
from noetlvm.record import Record

if TYPE_CHECKING:
    from noetlc.lint.check import CheckedFile


class Color(StrEnum):
    """When to colour text."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


class LintOptions(NamedTuple):
    """The options of `noetlc lint` that are not settings."""

    paths: tuple[str, ...] = ()
    format: OutputFormat = OutputFormat.TEXT
    output: str | None = None
    fix: bool = False
    unsafe_fixes: bool = False
    diff: bool = False
    baseline: str | None = None
    write_baseline: bool = False
    cache: bool = True
    jobs: int | None = None
    statistics: bool = False
    quiet: bool = False
    color: Color = Color.AUTO
    stdin_name: str = STDIN_NAME

    @property
    def reads_stdin(self) -> bool:
        return STDIO in self.paths

    def require_consistent(self) -> None:
        """Stop the command if two options contradict each other."""
        if self.unsafe_fixes and not (self.fix or self.diff):
            raise CommandError("--unsafe-fixes selects the fixes: add --diff to see them or --fix to apply them")
        if self.write_baseline and (self.fix or self.diff):
            raise CommandError("--write-baseline records findings as they are: run it without --fix and --diff")
        if self.reads_stdin and len(self.paths) > 1:
            raise CommandError("`-` (standard input) cannot be combined with other paths")


class _Repair(Record):
    """What fixing makes of one file."""

    path: str
    before: str
    after: str
    count: int
    problem: str | None = None


class LintRun:
    """The state of one run: the findings of each file, in order, and why other files have none."""

    def __init__(self, options: LintOptions, settings: Settings) -> None:
        options.require_consistent()
        self.options = options
        self.settings = settings
        self.cache: Cache = open_cache(settings) if options.cache else no_cache()
        settings.require_known_codes(self.cache.rule_names)
        limit = settings.limits.document_bytes_max
        self.stdin: bytes | None = read_bounded(STDIO, limit) if options.reads_stdin else None
        self.baseline_file = _baseline_file(options, settings)
        self._select = self._selector()
        self.rows: dict[str, tuple[LocatedFinding, ...]] = {}
        """The reported findings of each checked file."""
        self.problems: list[str] = []

    def run(self) -> int:
        """Lint, print, and return the exit code."""
        self._check()
        if not self.rows and not self.problems and not self.options.quiet:
            _say(f"no playbooks in {', '.join(self.options.paths or ('.',))}")
        if self.options.write_baseline:
            return self._write_baseline()
        if self.options.diff:
            return self._show_differences()
        if self.options.fix:
            self._fix()
        return self._report()

    def read(self, path: str) -> bytes:
        return read_bounded(path, self.settings.limits.document_bytes_max) if self.stdin is None else self.stdin

    def _problem(self, text: str) -> None:
        self.problems.append(text)
        _say(text)

    def _selector(self) -> Callable[[Iterable[LocatedFinding]], list[LocatedFinding]]:
        if self.baseline_file is None or self.options.write_baseline:
            return self.settings.apply
        baseline = read_baseline(self.baseline_file)
        return lambda rows: baseline.new(self.settings.apply(rows))

    # ---- checking

    def _check(self) -> None:
        found = self._check_stdin(self.stdin) if self.stdin is not None else self._check_files()
        self.rows = {path: tuple(self._select(rows)) for path, rows in found.items()}

    def _check_stdin(self, data: bytes) -> dict[str, tuple[LocatedFinding, ...]]:
        from noetlc.lint.pool import lint_bytes

        name = self.options.stdin_name
        return {name: lint_bytes(Target(name, named=True), data, self.settings).rows or ()}

    def _check_files(self) -> dict[str, tuple[LocatedFinding, ...]]:
        found = discover(self.options.paths or (".",), self.settings.exclude, self.settings.folder)
        for problem in found.problems:
            self._problem(problem)
        limit = self.settings.limits.document_bytes_max
        rows: dict[Target, tuple[LocatedFinding, ...] | None] = {}
        unknown = []
        for target in found.targets:
            result = self.cache.recall(target.path, named=target.named, limit=limit)
            rows[target] = result.rows if result is not None else None
            if result is None:
                unknown.append(target)
        if unknown:
            rows |= self._check_now(unknown)
        self.cache.save()
        return {target.path: each for target, each in rows.items() if each is not None}

    def _check_now(self, targets: list[Target]) -> dict[Target, tuple[LocatedFinding, ...] | None]:
        from noetlc.lint.pool import ProgressBar, lint_files  # and with it the rules: not needed if nothing changed

        progress = ProgressBar(len(targets), quiet=self.options.quiet)
        try:
            linted = lint_files(targets, self.settings, self.options.jobs, progress)
        finally:
            progress.close()
        rows = {}
        for file in linted:
            if file.result is not None:
                rows[file.target] = file.result.rows
                self.cache.store(file.target.path, file.stamp, file.result)
            if file.problem:
                self._problem(file.problem)
        return rows

    # ---- baseline and fixes

    def _write_baseline(self) -> int:
        if self.baseline_file is None:
            raise CommandError("--write-baseline needs a file: add --baseline FILE, or `baseline` to the configuration")
        count = write_baseline(self.baseline_file, self._all_rows(), self.rows)
        _say(f"recorded {counted(count, 'finding')} in {self.baseline_file}")
        return CANNOT_RUN if self.problems else SUCCESS

    def _show_differences(self) -> int:
        changes = count = 0
        for repair in self._repairs():
            if repair.problem:
                self._problem(repair.problem)
            if repair.after != repair.before:
                print(_difference(repair), end="")
                changes, count = changes + 1, count + repair.count
        if not self.options.quiet:
            _say(f"would fix {counted(count, 'finding')} in {counted(changes, 'file')}")
        if self.problems:
            return CANNOT_RUN
        return FAILURE if changes else SUCCESS

    def _fix(self) -> None:
        changes = count = 0
        for repair in list(self._repairs()):
            if repair.problem:
                self._problem(repair.problem)
            if repair.after != repair.before and self._write(repair):
                changes, count = changes + 1, count + repair.count
        if not self.options.quiet:
            _say(f"fixed {counted(count, 'finding')} in {counted(changes, 'file')}")
        if self.stdin is not None:
            sys.stdout.buffer.write(self.stdin)

    def _repairs(self) -> Iterator[_Repair]:
        """Compute the fixes of each file that has any."""
        for path, rows in self.rows.items():
            if any(row.fix is not None and (row.fix.safe or self.options.unsafe_fixes) for row in rows):
                yield self._repair(path)

    def _repair(self, path: str) -> _Repair:
        try:
            text = self.read(path).decode("utf-8")
        except (OSError, UnicodeDecodeError) as error:  # it changed since it was checked
            return _Repair(path, "", "", 0, f"{path}: not fixed: {error}")

        def findings(text: str) -> list[Finding]:
            checked = self._checked(path, text.encode("utf-8"))
            rows = checked.rows()
            wanted = {_identity(row) for row in self._select(rows)}
            return [finding for finding, row in zip(checked.findings, rows, strict=True) if _identity(row) in wanted]

        fixed = fix_text(text, findings, unsafe=self.options.unsafe_fixes)
        problem = f"{path}: {fixed.problem}" if fixed.problem else None
        return _Repair(path, text, fixed.text, fixed.count, problem)

    def _checked(self, path: str, data: bytes) -> CheckedFile:
        from noetlc.lint.check import check_bytes

        return check_bytes(path, data, self.settings)

    def _write(self, repair: _Repair) -> bool:
        """Save a fixed file, and replace its findings by those that are left."""
        data = repair.after.encode("utf-8")
        if self.stdin is not None:
            self.stdin = data
        else:
            try:
                write_atomically(repair.path, data)
            except OSError as error:
                self._problem(f"{repair.path}: cannot be written: {error.strerror}")
                return False
        self.rows[repair.path] = tuple(self._select(self._checked(repair.path, data).rows()))
        return True

    # ---- report

    def _all_rows(self) -> tuple[LocatedFinding, ...]:
        return tuple(row for rows in self.rows.values() for row in rows)

    def _report(self) -> int:
        @cache
        def source(path: str) -> Source | None:
            try:
                return Source(path, self.read(path).decode("utf-8", "replace"))
            except OSError:  # deleted since; its findings are still reported
                return None

        options = self.options
        stream = sys.stderr if options.fix and self.stdin is not None else sys.stdout
        report = Report(
            self._all_rows(),
            tuple(self.rows),
            __version__,
            self.settings.fail_on.severity,
            self._colored(),
            options.quiet,
            terminal_width(stream) if options.output is None else None,
            source,
        )
        text = render(options.format, report)
        if options.output is not None:
            write_file(options.output, text.encode("utf-8", "backslashreplace"))
            if report.paths and not options.quiet and options.output != STDIO:
                _say(f"{summary(report)}; report in {options.output}")
        else:
            print(text, end="", file=stream)
        if options.statistics:
            sys.stderr.write(statistics(report, self.cache.rule_names()))
        if self.problems:
            return CANNOT_RUN
        return FAILURE if any(report.fails(row) for row in report.rows) else SUCCESS

    def _colored(self) -> bool:
        if self.options.color is not Color.AUTO:
            return self.options.color is Color.ALWAYS
        return self.options.output is None and may_color(sys.stdout.isatty())


def _baseline_file(options: LintOptions, settings: Settings) -> Path | None:
    if options.baseline is not None:
        return Path(options.baseline)
    return Path(settings.folder, settings.baseline) if settings.baseline is not None else None


def may_color(is_terminal: bool) -> bool:
    return is_terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _say(remark: str) -> None:
    """Print a remark that is not part of the report."""
    print(f"noetlc: {remark}", file=sys.stderr)


def _identity(row: LocatedFinding) -> tuple[object, ...]:
    return row.code, row.range, row.message


def _difference(repair: _Repair) -> str:
    import difflib

    lines_of = re.compile(r"[^\n]*\n|[^\n]+").findall
    lines = difflib.unified_diff(lines_of(repair.before), lines_of(repair.after), repair.path, f"{repair.path} (fixed)")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
