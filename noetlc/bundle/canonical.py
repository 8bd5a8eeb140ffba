"""One run of `noetlc canon`: read, lint, canonicalize, print. An error stops it, even one that a comment silences."""

from __future__ import annotations

import sys
from pathlib import Path

from noetlc import __version__
from noetlc.canon.canonicalize import canonicalize
from noetlc.finding import Finding, Severity
from noetlc.lint.atomic import write_atomically
from noetlc.lint.cache import read_bounded
from noetlc.lint.cannot_run import CannotRun
from noetlc.lint.check import CheckedFile, KindPolicy, check_bytes
from noetlc.lint.discover import STDIN
from noetlc.lint.options import Options
from noetlc.lint.settings import find_settings, load_settings
from noetlc.lint.terms import Terms, terms_for
from noetlc.report.report import Report
from noetlc.report.row import resolve
from noetlc.syntax.playbook_printer import print_playbook


def canon(path: str, output: str | None = None, config: str | None = None) -> int:
    """Print the canonical form of a file, or what stands in its way; return the exit code."""
    settings = load_settings(Path(config)) if config else find_settings(() if path == STDIN else (path,))
    terms = terms_for(Options(), settings)
    checked = check_bytes(
        "<stdin>" if path == STDIN else path,
        _read(path, terms),
        terms.limits,
        KindPolicy(terms.tool_kinds, terms.allow_unknown_kinds),
    )
    text, findings = canonical_text(checked)
    if text is None:
        print(_told(checked, findings), end="", file=sys.stderr)
        return 1
    _write(text, output)
    return 0


def canonical_text(checked: CheckedFile) -> tuple[str | None, tuple[Finding, ...]]:
    """Return a checked file's canonical form as YAML; or None, and the errors that stand in its way."""
    errors = tuple(finding for finding in checked.findings if finding.severity is Severity.ERROR)
    if checked.playbook is None or errors:
        return None, errors
    return print_playbook(canonicalize(checked.playbook, checked.source).playbook), ()


def _read(path: str, terms: Terms) -> bytes:
    limit = terms.limits.document_bytes_max
    if path == STDIN:
        return sys.stdin.buffer.read(limit + 1)
    try:
        return read_bounded(path, limit)
    except OSError as error:
        raise CannotRun(f"cannot read {path}: {error.strerror}") from error


def _write(text: str, output: str | None) -> None:
    if output is None:
        print(text, end="")
        return
    try:
        write_atomically(output, text.encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise CannotRun(f"cannot write {output}: {error.strerror}") from error


def _told(checked: CheckedFile, findings: tuple[Finding, ...]) -> str:
    from noetlc.report.text import render

    source = checked.source
    rows = tuple(resolve(finding, source, checked.label_path(finding.span.start)) for finding in findings)
    return render(Report(rows, (source.path,), __version__, source=lambda _: source))
