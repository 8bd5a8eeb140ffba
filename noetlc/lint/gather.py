"""Gets the rows of every file of a run: from the cache where a file has not changed, else by checking it now."""

from __future__ import annotations

from collections.abc import Sequence

from noetlc.lint.discover import Found, Target, discover
from noetlc.lint.linted import Linted, Run
from noetlc.report.row import Row


def gather(run: Run) -> Linted:
    """Find the files of the run and lint them."""
    if run.stdin is not None:
        return _lint_stdin(run, run.stdin)
    paths = run.options.paths or (".",)
    return _lint_files(discover(paths, run.settings.exclude, run.settings.folder), run)


def _lint_stdin(run: Run, data: bytes) -> Linted:
    from noetlc.lint.examine import examine_bytes

    result = examine_bytes(Target(run.stdin_name, named=True), data, run.terms)
    return Linted({run.stdin_name: result.rows or ()})


def _lint_files(found: Found, run: Run) -> Linted:
    limit = run.terms.limits.document_bytes_max
    rows: dict[Target, tuple[Row, ...] | None] = {}
    unknown = []
    for target in found.targets:
        result = run.cache.recall(target.path, named=target.named, limit=limit)
        rows[target] = result.rows if result is not None else None
        if result is None:
            unknown.append(target)
    fresh, problems = _check(unknown, run)
    run.cache.save()
    playbooks = {target.path: found_rows for target, found_rows in (rows | fresh).items() if found_rows is not None}
    return Linted(playbooks, (*found.problems, *problems))


def _check(targets: Sequence[Target], run: Run) -> tuple[dict[Target, tuple[Row, ...] | None], list[str]]:
    if not targets:
        return {}, []
    from noetlc.lint.pool import examine_all  # and with it the rules: not needed when nothing has changed
    from noetlc.lint.progress import Progress

    progress = Progress(len(targets), quiet=run.options.quiet)
    try:
        examined = examine_all(targets, run.terms, run.options.jobs, progress)
    finally:
        progress.close()
    rows = {}
    for one in examined:
        if one.result is not None:
            rows[one.target] = one.result.rows
            run.cache.remember(one.target.path, one.stamp, one.result)
    return rows, [one.problem for one in examined if one.problem]
