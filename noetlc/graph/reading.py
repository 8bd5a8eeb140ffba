"""Reads what `noetlc graph` draws: bundles without the compiler, sources without code where they have errors."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from noetlc.bundle.files import open_bundle
from noetlc.files import STDIO
from noetlc.finding import Severity
from noetlc.net.net import Net
from noetlc.net.program import nets_of
from noetlvm.bytecode.codec.container import MAGIC
from noetlvm.command_line.process import CommandError
from noetlvm.record import changed

if TYPE_CHECKING:
    from noetlc.lint.check import CheckedFile


class Drawable(NamedTuple):
    """The nets of one file; the first is the main playbook's."""

    name: str
    nets: tuple[Net, ...]
    """Empty if errors leave no net."""
    sources: dict[str, str]
    """The text of each source, by its name in positions."""
    has_errors: bool = False
    """The playbook has lint errors. They have been printed."""
    silenced: frozenset[tuple[str, str]] = frozenset()
    """Code and message of the findings that a comment or the configuration silences."""


def read_nets(file: str, with_pipelines: bool = False, config: str | None = None) -> Drawable:
    """Read a playbook or a bundle; with pipelines, steps of a playbook carry their code."""
    if not _is_bundle(file):
        return _read_source(file, with_pipelines, config)
    program, _ = open_bundle(file)
    return Drawable(file, nets_of(program), {})


def _is_bundle(file: str) -> bool:
    if file == STDIO:
        return False
    try:
        with Path(file).open("rb") as opened:
            return opened.read(len(MAGIC)) == MAGIC
    except OSError as error:
        raise CommandError(f"cannot read {file}: {error.strerror}") from None


def _read_source(file: str, with_pipelines: bool, config: str | None) -> Drawable:
    """Read a playbook, and print its errors; warnings are left to `lint`."""
    from noetlc.session import Session

    session = Session((file,), config)
    (checked,) = session.check()
    silenced = frozenset((finding.code, finding.message) for finding in checked.silenced)
    errors = [finding for finding in checked.findings if finding.severity is Severity.ERROR]
    session.report([changed(checked, findings=tuple(errors))])
    net = net_of(checked)
    if net is not None and with_pipelines and not errors:
        program = session.compile().program
        if program is not None:
            steps = zip(net.steps, program.playbooks[0].steps, strict=True)
            net = changed(net, steps=tuple(changed(step, pipeline=code.pipeline) for step, code in steps))
    sources = {Path(checked.source.path).name: checked.source.text}
    return Drawable(file, (net,) if net else (), sources, bool(errors), silenced)


def net_of(checked: CheckedFile) -> Net | None:
    """Return the net of a playbook; None if its errors leave none."""
    from noetlc.analysis.model import Model
    from noetlc.net.source import source_net
    from noetlc.syntax.playbook_parser import parse_playbook

    root = checked.document.root
    if root is None or checked.playbook is None or checked.document.is_damaged:
        return None
    problems = checked.document.problems + parse_playbook(root).problems
    found = source_net(Model(checked.source, checked.document, checked.playbook, problems))
    return found.net if found else None
