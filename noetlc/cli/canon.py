"""`noetlc canon`: a playbook's canonical form, as YAML."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from noetlc.canon.canonicalize import canonicalize
from noetlc.cli import ConfigOption
from noetlc.files import write_file
from noetlc.finding import Severity
from noetlc.session import Session
from noetlc.syntax.playbook_printer import print_playbook
from noetlvm.command_line.declared import Argument, Option
from noetlvm.command_line.process import FAILURE, SUCCESS
from noetlvm.record import changed

if TYPE_CHECKING:
    from noetlc.finding import Finding
    from noetlc.lint.check import CheckedFile


def canon(
    path: Annotated[str, Argument(metavar="FILE", help="A playbook; `-` is standard input.")],
    output: Annotated[str | None, Option("--output", "-o", metavar="FILE", help="Write to a file.")] = None,
    config: ConfigOption = None,
) -> int:
    """Print the canonical form of a playbook: with labels and effective specs, without sugar and workbook.

    \b
    Examples:
      noetlc canon etl.yaml                 what the compiler sees
      noetlc canon etl.yaml -o canon.yaml   the same, into a file
      cat etl.yaml | noetlc canon -

    Exit codes: 0 printed, 1 the playbook has errors, which are printed as by lint, 2 could not run.
    """  # noqa: D301 - the help reads \b as: keep the line breaks of this paragraph
    session = Session((path,), config)
    (checked,) = session.check()
    text, errors = canonical_text(checked)
    if text is None:
        session.report([changed(checked, findings=errors)])
        return FAILURE
    write_file(output, text.encode("utf-8", "backslashreplace"))
    return SUCCESS


def canonical_text(checked: CheckedFile) -> tuple[str | None, tuple[Finding, ...]]:
    """Return a checked file's canonical form as YAML; or None and the errors that prevent it."""
    errors = tuple(finding for finding in checked.findings if finding.severity is Severity.ERROR)
    if checked.playbook is None or errors:
        return None, errors
    return print_playbook(canonicalize(checked.playbook, checked.source).playbook), ()
