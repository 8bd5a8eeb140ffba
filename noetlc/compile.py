"""From playbook files to a bundle: lint, canonical form, code, bytes, and the verifier over the result. Pure.

Lint comes first, and an error stops the compiler whether or not a comment silences it: code generation relies on what
lint has made sure of. The verifier always runs on what was made, so a defect of the compiler never leaves it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from noetlc.canon.canonicalize import CanonicalPlaybook, canonicalize
from noetlc.codegen.program import LoweredPlaybook, Unit, link, lower_playbook
from noetlc.finding import Finding, Severity
from noetlc.lint.check import CheckedFile, KindPolicy, check_bytes
from noetlc.lint.ignores import find_ignores, silence
from noetlc.lint.terms import Terms
from noetlc.syntax import ast
from noetlc.syntax.nearest import did_you_mean
from noetlc.syntax.nodes import Scalar
from noetlc.syntax.span import Span
from noetlvm.bytecode.codec.encoder import encode
from noetlvm.bytecode.codec.writer import EncodingError
from noetlvm.bytecode.errors import BundleError
from noetlvm.bytecode.load import load
from noetlvm.bytecode.program import Program
from noetlvm.record import Record, changed

SAME_PATH = "C002"
OTHER_PLAYBOOK = "C003"
TOO_LARGE = "C004"
COMPILER_CODES = {
    SAME_PATH: "two playbooks of one bundle have the same path",
    OTHER_PLAYBOOK: "a child that is not among the files, and so is left to the catalogue",
    TOO_LARGE: "more than a bundle can hold",
}
"""What only the compiler finds."""

_LIMITS = frozenset({"M005", "M015", "V008", "V009", "V023", "V024", "V087"})
"""What is refused on account of size alone: the playbook's doing. Anything else would be the compiler's."""

_WHOLE_FILE = Span(0, 0)


class PlaybookFile(Record):
    """A file as it was read."""

    path: str
    data: bytes


class Compiled(Record):
    """What the compiler made of its files, and everything it found on the way."""

    files: tuple[CheckedFile, ...]
    canonical: tuple[CanonicalPlaybook, ...] = ()
    program: Program | None = None
    """None where an error stopped it; then there are no bytes either."""
    data: bytes = b""


def compile_playbooks(files: Sequence[PlaybookFile], terms: Terms | None = None) -> Compiled:
    """Compile playbooks into one bundle; the first is the main one."""
    checked = tuple(check_playbook(file, terms or Terms()) for file in files)
    if has_errors(checked):
        return Compiled(checked)
    playbooks = [_parsed(file) for file in checked]
    checked = tuple(
        _with(file, *_about_paths(playbook, playbooks[:number], playbooks))
        for number, (file, playbook) in enumerate(zip(checked, playbooks, strict=True))
    )
    if has_errors(checked):
        return Compiled(checked)
    return _generate(checked, playbooks)


def _generate(checked: tuple[CheckedFile, ...], playbooks: Sequence[ast.Playbook]) -> Compiled:
    canonical: list[CanonicalPlaybook] = []
    lowered: list[LoweredPlaybook] = []
    names = file_names([file.source.path for file in checked])
    for file, playbook, name in zip(checked, playbooks, names, strict=True):
        canonical.append(canonicalize(playbook, file.source))
        lowered.append(lower_playbook(_unit(canonical[-1], name)))
    return _bundled(checked, tuple(canonical), link(lowered))


def _unit(form: CanonicalPlaybook, file: str) -> Unit:
    return Unit(form.playbook, form.source, file, {key: origin.construct for key, origin in form.origins.items()})


def _bundled(checked: tuple[CheckedFile, ...], canonical: tuple[CanonicalPlaybook, ...], program: Program) -> Compiled:
    try:
        data = encode(program)
        load(data)
    except EncodingError as error:
        return Compiled((_with(checked[0], _too_large(str(error))), *checked[1:]))
    except BundleError as error:
        if error.code not in _LIMITS:
            raise
        return Compiled((_with(checked[0], _too_large(error.reason)), *checked[1:]))
    return Compiled(checked, canonical, program, data)


def _too_large(reason: str) -> Finding:
    help = "split the playbook: move steps into a playbook of their own and call it with `kind: playbook`"
    return Finding(TOO_LARGE, Severity.ERROR, _WHOLE_FILE, f"this cannot be put into a bundle: {reason}", help)


# ---- files


def file_names(paths: Sequence[str]) -> list[str]:
    """Return what the debug map calls files: their paths below the folder that holds them all.

    So neither the working folder nor how the user wrote a path makes a difference to the bytes.
    """
    files = [Path(path).resolve() for path in paths]
    folder = Path(os.path.commonpath([file.parent for file in files]))
    return [file.relative_to(folder).as_posix() for file in files]


def check_playbook(file: PlaybookFile, terms: Terms) -> CheckedFile:
    """Lint a file; comments silence what they name, but for errors."""
    checked = check_bytes(file.path, file.data, terms.limits, KindPolicy(terms.tool_kinds, terms.allow_unknown_kinds))
    ignores = find_ignores(checked.source.text, checked.document.scalar_spans)
    kept = silence(checked.findings, ignores, checked.source, all_rules_ran=not checked.document.is_damaged)
    shown = set(kept)
    silenced = [finding for finding in checked.findings if finding.severity is Severity.ERROR and finding not in shown]
    return _with(changed(checked, findings=tuple(kept)), *silenced)


def _with(file: CheckedFile, *findings: Finding) -> CheckedFile:
    if not findings:
        return file
    ordered = sorted((*file.findings, *findings), key=lambda finding: (finding.span, finding.code))
    return changed(file, findings=tuple(ordered))


def has_errors(checked: Sequence[CheckedFile]) -> bool:
    """True if an error stops the compiler."""
    return any(finding.severity is Severity.ERROR for file in checked for finding in file.findings)


def _parsed(file: CheckedFile) -> ast.Playbook:
    assert file.playbook is not None  # it has no errors
    return file.playbook


# ---- playbooks that run each other


def _about_paths(
    playbook: ast.Playbook, earlier: Sequence[ast.Playbook], every: Sequence[ast.Playbook]
) -> Iterator[Finding]:
    own = _path(playbook)
    if own is not None and own.text in (path.text for other in earlier if (path := _path(other))):
        yield Finding(
            SAME_PATH,
            Severity.ERROR,
            own.span,
            f"another file of this bundle has the path `{own.text}` too",
            "give each playbook a `metadata.path` of its own",
        )
    known = [path.text for other in every if (path := _path(other))]
    others = [path for path in known if own is None or path != own.text]
    for child in _children(playbook):
        if child.text not in known:
            yield Finding(
                OTHER_PLAYBOOK,
                Severity.NOTE,
                child.span,
                f"the playbook `{child.text}` is not among the files: the catalogue must have it when this runs",
                did_you_mean(child.text, others) or "name its file too, to put both into one bundle",
            )


def _path(playbook: ast.Playbook) -> Scalar | None:
    return playbook.metadata.path if playbook.metadata else None


def _children(playbook: ast.Playbook) -> Iterator[Scalar]:
    """Yield the paths of the playbooks that this one runs, as far as they are written out."""
    pipelines = [step.tool or () for step in playbook.workflow or ()]
    if playbook.workbook:
        pipelines += [task.entries for task in playbook.workbook.tasks or ()]
    for task in (task for entries in pipelines for task in ast.nested_tasks(entries)):
        path = task.get_extra("path")
        if task.kind and task.kind.text == "playbook" and isinstance(path, Scalar) and not path.is_template:
            yield path
