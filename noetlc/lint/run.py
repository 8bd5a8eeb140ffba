"""One run of `noetlc lint`, from options to exit code.

The order of things: configuration, results of all files, selection and baseline, fixes, report. Each is decided in a
module of its own; this one only has them follow each other.
"""

from __future__ import annotations

import sys
from pathlib import Path

from noetlc.lint.cache import no_cache, open_cache
from noetlc.lint.cannot_run import CannotRun
from noetlc.lint.discover import STDIN
from noetlc.lint.gather import gather
from noetlc.lint.linted import Linted, Reported, Run
from noetlc.lint.options import Options
from noetlc.lint.output import print_report, report_of, say, statistics
from noetlc.lint.selection import require_known, select_for
from noetlc.lint.settings import find_settings, load_settings
from noetlc.lint.terms import terms_for
from noetlc.report.report import counted

CLEAN, FINDINGS, COULD_NOT_RUN = 0, 1, 2
"""Exit codes: nothing at or above the failing severity; something; not everything could be checked."""


def lint(options: Options) -> int:
    """Lint, print, and return the exit code."""
    _require_consistent(options)
    run = _prepare(options)
    reported = _reported(run)
    linted = gather(run)
    say(*linted.problems)
    if not linted.rows and not linted.problems and not options.quiet:
        say(f"no playbooks in {', '.join(options.paths or ('.',))}")
    linted = linted.reported(reported)
    if options.write_baseline:
        return _record(linted, run)
    if options.diff:
        return _show_difference(linted, run, reported)
    if options.fix:
        linted, run = _fix(linted, run, reported)
    return _report(linted, run)


def _require_consistent(options: Options) -> None:
    if options.unsafe_fixes and not (options.fix or options.diff):
        raise CannotRun("--unsafe-fixes says which fixes to take: add --diff to see them or --fix to apply them")
    if options.write_baseline and (options.fix or options.diff):
        raise CannotRun("--write-baseline records findings as they are: run it without --fix and --diff")
    if STDIN in options.paths and len(options.paths) > 1:
        raise CannotRun("`-` (standard input) cannot be combined with other paths")


def _prepare(options: Options) -> Run:
    from_stdin = STDIN in options.paths
    places = options.paths if not from_stdin else (options.stdin_filename,) if options.stdin_filename else ()
    settings = load_settings(Path(options.config)) if options.config else find_settings(places)
    terms = terms_for(options, settings)
    selection = select_for(options, settings)
    cache = open_cache(terms) if options.cache else no_cache()
    require_known(selection, cache.rule_names)
    stdin = sys.stdin.buffer.read(terms.limits.document_bytes_max + 1) if from_stdin else None
    return Run(options, settings, terms, selection, cache, stdin)


def _reported(run: Run) -> Reported:
    file = run.baseline_file
    if file is None or run.options.write_baseline:
        return run.selection.apply
    from noetlc.lint.baseline import read_baseline

    baseline = read_baseline(file)
    return lambda rows: baseline.new(run.selection.apply(rows))


def _record(linted: Linted, run: Run) -> int:
    from noetlc.lint.baseline import write_baseline

    if run.baseline_file is None:
        raise CannotRun("--write-baseline needs a file: add --baseline FILE, or `baseline` to the configuration")
    count = write_baseline(run.baseline_file, linted.all_rows(), linted.rows)
    say(f"recorded {counted(count, 'finding')} in {run.baseline_file}")
    return COULD_NOT_RUN if linted.problems else CLEAN


def _show_difference(linted: Linted, run: Run, reported: Reported) -> int:
    from noetlc.lint.repair import difference, repairs

    changes = count = 0
    problems = list(linted.problems)
    for repair in repairs(linted, run, reported):
        if repair.problem:
            problems.append(repair.problem)
            say(repair.problem)
        if repair.after != repair.before:
            print(difference(repair), end="")
            changes, count = changes + 1, count + repair.count
    if not run.options.quiet:
        say(f"would fix {counted(count, 'finding')} in {counted(changes, 'file')}")
    if problems:
        return COULD_NOT_RUN
    return FINDINGS if changes else CLEAN


def _fix(linted: Linted, run: Run, reported: Reported) -> tuple[Linted, Run]:
    from noetlc.lint.repair import repairs, write

    changes = count = 0
    before = linted
    for repair in repairs(before, run, reported):
        linted = write(repair, linted, run, reported)
        if repair.after != repair.before:
            changes, count = changes + 1, count + repair.count
        if run.stdin is not None:
            run = run._replace(stdin=repair.after.encode("utf-8"))
    say(*linted.problems[len(before.problems) :])
    if not run.options.quiet:
        say(f"fixed {counted(count, 'finding')} in {counted(changes, 'file')}")
    if run.stdin is not None:
        sys.stdout.buffer.write(run.stdin)
    return linted, run


def _report(linted: Linted, run: Run) -> int:
    report = report_of(linted, run)
    print_report(report, run, to_stderr=run.options.fix and run.stdin is not None)
    if run.options.statistics:
        sys.stderr.write(statistics(report, run.cache.rule_names()))
    if linted.problems:
        return COULD_NOT_RUN
    return FINDINGS if any(report.fails(row) for row in report.rows) else CLEAN
