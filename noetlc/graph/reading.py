"""Reads what `noetlc graph` draws: bundles without the compiler, sources without code where they have errors."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from noetlc.bundle.files import STANDARD, open_bundle, read_file
from noetlc.lint.cannot_run import CannotRun
from noetlc.net.net import Net
from noetlvm.bytecode.codec.container import MAGIC
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
    errors: tuple[CheckedFile, ...] = ()
    """Sources with lint errors."""


def read_nets(file: str, with_pipelines: bool = False) -> Drawable:
    """Read a playbook or a bundle; with pipelines, steps of a playbook carry their code."""
    if not _is_bundle(file):
        return _read_source(file, with_pipelines)
    from noetlc.net.program import nets_of

    program, _ = open_bundle(file)
    return Drawable(file, nets_of(program), {})


def _is_bundle(file: str) -> bool:
    if file == STANDARD:
        return False
    try:
        with Path(file).open("rb") as opened:
            return opened.read(len(MAGIC)) == MAGIC
    except OSError as error:
        raise CannotRun(f"cannot read {file}: {error.strerror}") from None


def _read_source(file: str, with_pipelines: bool) -> Drawable:
    from noetlc.compile import PlaybookFile, check_playbook, compile_playbooks, has_errors
    from noetlc.lint.options import Options
    from noetlc.lint.settings import find_settings
    from noetlc.lint.terms import terms_for

    terms = terms_for(Options(paths=(file,)), find_settings((file,)))
    read = PlaybookFile("<stdin>" if file == STANDARD else file, read_file(file, terms.limits.document_bytes_max))
    checked = check_playbook(read, terms)
    net = _net(checked)
    if net is not None and with_pipelines and not has_errors([checked]):
        program = compile_playbooks([read], terms).program
        if program is not None:
            steps = zip(net.steps, program.playbooks[0].steps, strict=True)
            net = changed(net, steps=tuple(changed(step, pipeline=code.pipeline) for step, code in steps))
    errors = (checked,) if has_errors([checked]) else ()
    return Drawable(file, (net,) if net else (), {Path(read.path).name: checked.source.text}, errors)


def _net(checked: CheckedFile) -> Net | None:
    from noetlc.analysis.model import Model
    from noetlc.net.source import source_net
    from noetlc.syntax.playbook_parser import parse_playbook

    root = checked.document.root
    parsed = parse_playbook(root) if root is not None and not checked.document.is_damaged else None
    if parsed is None or parsed.playbook is None:
        return None
    problems = checked.document.problems + parsed.problems
    found = source_net(Model(checked.source, checked.document, parsed.playbook, problems))
    return found.net if found else None
