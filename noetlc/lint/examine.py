"""Checks one file: reads it, has the rules look at it, applies its ignore comments, resolves places.

What comes out depends on the file and on `Terms` only, so it can be done in any process and kept in the cache.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from noetlc.lint.cache import Result, Stamp, content_digest, read_bounded, stamp_of
from noetlc.lint.check import CheckedFile, KindPolicy, check_bytes
from noetlc.lint.discover import Target
from noetlc.lint.ignores import find_ignores, silence
from noetlc.lint.terms import Terms
from noetlc.report.row import Row, resolve
from noetlc.syntax.input import looks_like_playbook
from noetlvm.record import changed


class Examined(NamedTuple):
    """The result for one target; or, with a problem, why there is none."""

    target: Target
    stamp: Stamp | None = None
    result: Result | None = None
    problem: str | None = None


def examine_file(target: Target, terms: Terms) -> Examined:
    """Check one file. What goes wrong with one file does not take the others along."""
    try:
        stamp = stamp_of(target.path)
        data = read_bounded(target.path, terms.limits.document_bytes_max)
        return Examined(target, stamp, examine_bytes(target, data, terms))
    except OSError as error:
        return Examined(target, problem=f"{target.path}: cannot be read: {error.strerror or error}")
    except Exception as error:  # a defect of a rule: the other files still deserve their findings
        if os.environ.get("NOETLC_DEBUG"):
            raise
        return Examined(target, problem=f"{target.path}: internal error: {_described(error)}")


def examine_bytes(target: Target, data: bytes, terms: Terms) -> Result:
    """Check a file's content, unless it was merely found and is no playbook."""
    digest = content_digest(data)
    is_playbook = looks_like_playbook(data)
    if not is_playbook and not target.named:
        return Result(digest, is_playbook, None)
    return Result(digest, is_playbook, rows_of(check(target.path, data, terms)))


def check(path: str, data: bytes, terms: Terms) -> CheckedFile:
    """Have the rules look at a file, and apply its ignore comments."""
    kinds = KindPolicy(terms.tool_kinds, terms.allow_unknown_kinds)
    checked = check_bytes(path, data, terms.limits, kinds)
    ignores = find_ignores(checked.source.text, checked.document.scalar_spans)
    kept = silence(checked.findings, ignores, checked.source, all_rules_ran=not checked.document.is_damaged)
    return changed(checked, findings=tuple(kept))


def rows_of(checked: CheckedFile) -> tuple[Row, ...]:
    """Resolve the findings of a checked file."""
    return tuple(resolve(f, checked.source, checked.label_path(f.span.start)) for f in checked.findings)


def _described(error: Exception) -> str:
    """Name the exception and the line that raised it: enough for a report, and no traceback for the user."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = f" ({trace.tb_frame.f_globals.get('__name__')}:{trace.tb_lineno})" if trace else ""
    return f"{type(error).__name__}: {error}{where}; please report this with the file"
