"""`noetlc migrate`: playbooks of other dialects as canonical v10."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Annotated

from noetlc.cli import ConfigOption
from noetlc.files import STDIN_NAME, STDIO, read_bounded
from noetlc.finding import Severity
from noetlc.lint.check import check_source
from noetlc.lint.discover import Target, discover
from noetlc.lint.pool import available_cores
from noetlc.migrate import report as reports
from noetlc.migrate.dialect import Dialect, Recognised
from noetlc.migrate.lines import unified_diff
from noetlc.migrate.migration import Migration, migrate_text
from noetlc.migrate.report import WORSE, FileReport, remarks_on
from noetlc.settings import DialectChoice, Settings, settings_for
from noetlc.syntax.input import looks_like_playbook
from noetlc.syntax.span import Source
from noetlc.syntax.yaml_reader import decode
from noetlvm.atomic_file import write_atomically
from noetlvm.command_line.declared import Argument, Option
from noetlvm.command_line.process import CANNOT_RUN, FAILURE, SUCCESS, CommandError
from noetlvm.record import changed

if TYPE_CHECKING:
    from noetlc.finding import Finding
    from noetlc.migrate.report import FileReport
    from noetlc.syntax.span import Source

PARALLEL_FROM = 40
"""With fewer files, starting processes takes longer than it saves."""
_CHUNK = 16


class ReportFormat(StrEnum):
    """How to print the report."""

    JSON = "json"
    MARKDOWN = "markdown"


def migrate(
    paths: Annotated[
        list[str] | None,
        Argument(metavar="PATHS", help="Files, folders or globs; `-` is standard input. Default: this folder."),
    ] = None,
    check: Annotated[bool, Option("--check", help="Write nothing; exit with 1 if a file is not canonical.")] = False,
    diff: Annotated[bool, Option("--diff", help="Show the changes without writing them.")] = False,
    write: Annotated[bool, Option("--write", help="Write the migrated files.")] = False,
    report: Annotated[ReportFormat | None, Option(help="Print a report on every file and construct.")] = None,
    explain: Annotated[
        int | None, Option(min=1, metavar="LINE", help="Explain how this line of a file changes, and why.")
    ] = None,
    jobs: Annotated[int | None, Option(min=1, metavar="N", help="Number of processes. [default: one per core]")] = None,
    config: ConfigOption = None,
) -> int:
    """Rewrite playbooks of other dialects as canonical v10 without changing their meaning.

    Without options, the migrated text of one file is printed. Only the lines that must change are changed.

    \b
    Examples:
      noetlc migrate old.yaml --diff           what would change
      noetlc migrate flows --write             migrate a folder
      noetlc migrate flows --check             for CI: changes nothing
      noetlc migrate flows --report markdown > migration.md
      noetlc migrate old.yaml --explain 42     why line 42 changes

    Exit codes: 0 done, 1 a file needs changes by hand (with --check: or is not canonical), 2 could not run.
    """  # noqa: D301 - the help reads \b as: keep the line breaks of this paragraph
    given = tuple(paths or ())
    if sum((check, diff, write, explain is not None)) > 1:
        raise CommandError("--check, --diff, --write and --explain exclude each other")
    settings = settings_for(given, config)
    found, problems = _migrated(given, settings, jobs)
    for problem in problems:
        print(f"noetlc: {problem}", file=sys.stderr)
    single = len(given) == 1 and len(found) == 1 and not os.path.isdir(given[0])  # noqa: PTH112 - as the user wrote it
    if explain is not None:
        if not single:
            raise CommandError("--explain takes one file")
        lines = found[0].migration.before.count("\n") + 1
        if explain > lines:
            raise CommandError(f"--explain {explain}: {found[0].path} has {lines} lines")
        print(reports.explain(found[0], explain), end="")
        return SUCCESS
    if diff:
        print("".join(unified_diff(each.path, each.migration) for each in found if each.migration.changed), end="")
    problems += _write(found) if write else []
    if report is not None:
        print((reports.as_json if report is ReportFormat.JSON else reports.as_markdown)(found), end="")
    elif single and not (check or diff or write):
        sys.stdout.buffer.write(found[0].migration.after.encode("utf-8"))
    is_text_wanted = report is None and (found or not problems)
    if is_text_wanted:
        print(reports.as_text(found), end="", file=sys.stdout if check or write else sys.stderr)
    return _exit_code(found, bool(problems), check=check)


def _exit_code(found: Sequence[FileReport], failed: bool, *, check: bool) -> int:
    if failed or any(each.migration.problem for each in found):
        return CANNOT_RUN
    unfinished = any(each.remarks or (check and each.migration.changed) for each in found)
    return FAILURE if unfinished else SUCCESS


def _migrated(paths: tuple[str, ...], settings: Settings, jobs: int | None) -> tuple[list[FileReport], list[str]]:
    """Migrate what the paths lead to; return the reports, and why other files have none."""
    if STDIO in paths:
        if len(paths) > 1:
            raise CommandError("`-` (standard input) cannot be combined with other paths")
        data = read_bounded(STDIO, settings.limits.document_bytes_max)
        return [migrate_bytes(STDIN_NAME, data, settings)], []
    found = discover(paths or (".",), settings.exclude, settings.folder)
    results = list(_all_files(found.targets, settings, jobs))
    reports = [result for result in results if result is not None and not isinstance(result, str)]
    return reports, [*found.problems, *(result for result in results if isinstance(result, str))]


def _all_files(targets: Sequence[Target], settings: Settings, jobs: int | None) -> Iterator[FileReport | str | None]:
    processes = min(jobs or available_cores(), len(targets))
    if processes < 2 or (jobs is None and len(targets) < PARALLEL_FROM):
        yield from (_file(target, settings) for target in targets)
        return
    yield _file(targets[0], settings)  # loads grammars and rules once, before the fork
    with ProcessPoolExecutor(processes) as pool:
        yield from pool.map(partial(_file, settings=settings), targets[1:], chunksize=_CHUNK)


def _file(target: Target, settings: Settings) -> FileReport | str | None:
    """Migrate one file; None for one that was found and is not a playbook, a text where it cannot be read."""
    try:
        data = read_bounded(target.path, settings.limits.document_bytes_max)
    except OSError as error:
        return f"{target.path}: cannot be read: {error.strerror or error}"
    if not target.named and not looks_like_playbook(data):
        return None
    report = migrate_bytes(target.path, data, settings)
    return None if report.migration.other_kind and not target.named else report


def migrate_bytes(path: str, data: bytes, settings: Settings) -> FileReport:
    """Migrate the content of a file, and lint the result where it differs.

    A result with more errors than the file had is not used: what an older construct hid is to be corrected first.
    """
    text, problem = decode(data, settings.limits)
    if problem is not None:
        return FileReport(path, Migration(text, text, Recognised(Dialect.V10), problem=problem.message))
    migration = migrate_text(text, settings.limits)
    if not migration.changed:
        return FileReport(path, migration)
    in_v10 = settings._replace(dialect=DialectChoice.V10)
    errors = _errors(Source(path, migration.after), in_v10)
    remarks = tuple(remarks_on(migration, errors, Source(path, migration.after)) if errors else ())
    if errors and len(errors) > len(_errors(Source(path, text), in_v10)):
        return FileReport(path, changed(migration, after=text), (WORSE, *remarks))
    return FileReport(path, migration, remarks)


def _errors(source: Source, settings: Settings) -> list[Finding]:
    """Return the errors of a text, counted as those of v10."""
    findings = check_source(source, settings).findings
    return [each for each in findings if settings.judge(each.code, each.severity, source.path) is Severity.ERROR]


def _write(found: Sequence[FileReport]) -> list[str]:
    problems = []
    for each in found:
        data = each.migration.after.encode("utf-8")
        if each.path == STDIN_NAME:
            sys.stdout.buffer.write(data)
            continue
        if not each.migration.changed:
            continue
        try:
            write_atomically(each.path, data)
        except OSError as error:
            problems.append(f"{each.path}: cannot be written: {error.strerror}")
            print(f"noetlc: {problems[-1]}", file=sys.stderr)
    return problems
