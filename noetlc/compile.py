"""From playbooks to a bundle: lint, canonical form, code, bytes, and the verifier over the result. Pure.

Code generation relies on what some rules ensure, so their errors stop the compiler even if a comment silences them or
the configuration lowers them (`Rule.stops_compiler`). Every other finding counts as configured. The verifier runs on
every bundle, so a bug of the compiler never leaves it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from noetlc.canon.canonicalize import CanonicalPlaybook, canonicalize
from noetlc.canon.errors import ExpansionError
from noetlc.canon.scripts import with_scripts
from noetlc.codegen.program import LoweredPlaybook, Unit, link, lower_playbook
from noetlc.codegen.stack_code import LoweringError
from noetlc.finding import Finding, Severity
from noetlc.lint.check import DEFAULT_SETTINGS, CheckedFile, check_bytes, read_valid
from noetlc.rules.catalogue import rules_by_code
from noetlc.settings import Settings
from noetlc.syntax import ast
from noetlc.syntax.nodes import Scalar
from noetlc.syntax.span import Span
from noetlvm.bytecode.codec.encoder import encode
from noetlvm.bytecode.codec.writer import EncodingError
from noetlvm.bytecode.program import BundleError, Program
from noetlvm.bytecode.verify.verifier import load
from noetlvm.nearest import Suggestions
from noetlvm.record import Record, changed

SAME_PATH = "C002"
OTHER_PLAYBOOK = "C003"
TOO_LARGE = "C004"
OTHER_STEP = "C005"
COMPILER_CODES = {
    SAME_PATH: "two playbooks of one bundle have the same path",
    OTHER_PLAYBOOK: "a child playbook is not among the files; a server looks it up in its catalogue",
    TOO_LARGE: "the playbook is larger than a bundle can hold",
    OTHER_STEP: "`return_step` names a step that the child playbook does not have",
}
"""Findings of the compiler itself."""

_LIMITS = frozenset({"M005", "M015", "V008", "V009", "V023", "V024", "V087"})
"""Verifier codes that a too large playbook can cause. Any other code is a bug of the compiler."""

_WHOLE_FILE = Span(0, 0)


class Compiled(Record):
    """The bundle of some playbooks, and the findings to report."""

    files: tuple[CheckedFile, ...]
    canonical: tuple[CanonicalPlaybook, ...] = ()
    program: Program | None = None
    """None if an error stopped the compiler; then there are no bytes either."""
    data: bytes = b""

    @property
    def has_warnings(self) -> bool:
        return any(finding.severity is not Severity.NOTE for file in self.files for finding in file.findings)


def compile_playbooks(
    files: Sequence[tuple[str, bytes]],
    settings: Settings = DEFAULT_SETTINGS,
    read_script: Callable[[str, str], str | None] | None = None,
) -> Compiled:
    """Compile playbooks, each a path and its content, into one bundle; the first is the main one.

    `read_script` returns the text of a script by the playbook's path and its own address; without it, scripts are left
    to the worker.
    """
    checked = tuple(check_playbook(path, data, settings) for path, data in files)
    if _has_errors(checked):
        return Compiled(checked)
    playbooks = [_parsed(file) for file in checked]
    if read_script is not None:
        playbooks = [
            with_scripts(playbook, partial(read_script, file.source.path))
            for playbook, file in zip(playbooks, checked, strict=True)
        ]
    checked = tuple(
        _with(file, *_path_findings(playbook, playbooks[:number], playbooks))
        for number, (file, playbook) in enumerate(zip(checked, playbooks, strict=True))
    )
    if _has_errors(checked):
        return Compiled(checked)
    try:
        return _generate(checked, playbooks)
    except (ExpansionError, LoweringError, BundleError) as error:
        tolerated = _first_tolerated(files, settings)
        if tolerated is None:
            raise  # without a tolerated error the playbook is valid, and this is a bug of the compiler
        number, finding = tolerated
        help = f"correct it, or remove what lowers its severity; the compiler stopped with: {error}"
        stopped = changed(finding, severity=Severity.ERROR, help=help)
        return Compiled((*checked[:number], _with(checked[number], stopped), *checked[number + 1 :]))


def compile_valid(files: Sequence[tuple[str, bytes]]) -> bytes:
    """Return the bundle of playbooks that have no errors by construction: no rule runs. Loading it verifies it.

    For programs that make thousands of playbooks. What is not valid raises any of the errors of the code generator.
    """
    read = [read_valid(path, data) for path, data in files]
    names = file_names([path for path, _ in files])
    forms = [canonicalize(playbook, source) for source, playbook in read]
    return encode(link([lower_playbook(_unit(form, name)) for form, name in zip(forms, names, strict=True)]))


def _first_tolerated(files: Sequence[tuple[str, bytes]], settings: Settings) -> tuple[int, Finding] | None:
    """Return the first error of a rule that a comment or the configuration lets pass, with the number of its file."""
    for number, (path, data) in enumerate(files):
        checked = check_bytes(path, data, settings)
        for finding in sorted((*checked.findings, *checked.silenced), key=lambda each: each.span):
            if finding.severity is Severity.ERROR:
                return number, finding
    return None


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
    """Return the names of files in the debug map: their paths below their common folder.

    The bytes then depend neither on the working folder nor on how a path was written.
    """
    files = [Path(path).resolve() for path in paths]
    folder = Path(os.path.commonpath([file.parent for file in files]))
    return [file.relative_to(folder).as_posix() for file in files]


def check_playbook(path: str, data: bytes, settings: Settings = DEFAULT_SETTINGS) -> CheckedFile:
    """Check a playbook for the compiler: findings with their configured severities, without notes.

    What a comment or the configuration silences is `silenced`.
    """
    checked = check_bytes(path, data, settings)
    judged = [(finding, _judged(finding, path, settings)) for finding in checked.findings]
    silenced = [finding for finding in checked.silenced if not _stops(finding)]
    silenced += [finding for finding, shown in judged if shown is None]
    findings = [shown for _, shown in judged if shown is not None and shown.severity is not Severity.NOTE]
    findings += [finding for finding in checked.silenced if _stops(finding)]
    return _with(changed(checked, findings=(), silenced=tuple(silenced)), *findings)


def _judged(finding: Finding, path: str, settings: Settings) -> Finding | None:
    if _stops(finding):
        return finding
    severity = settings.judge(finding.code, finding.severity, path)
    return None if severity is None else changed(finding, severity=severity)


def _stops(finding: Finding) -> bool:
    return finding.severity is Severity.ERROR and rules_by_code()[finding.code].stops_compiler


def _with(file: CheckedFile, *findings: Finding) -> CheckedFile:
    if not findings:
        return file
    ordered = sorted((*file.findings, *findings), key=lambda finding: (finding.span, finding.code))
    return changed(file, findings=tuple(ordered))


def _has_errors(checked: Sequence[CheckedFile]) -> bool:
    return any(finding.severity is Severity.ERROR for file in checked for finding in file.findings)


def _parsed(file: CheckedFile) -> ast.Playbook:
    assert file.playbook is not None  # it has no errors
    return file.playbook


# ---- playbooks that run each other


def _path_findings(
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
    steps = {
        path.text: [step.name for step in other.workflow or () if step.step]
        for other in every
        if (path := _path(other))
    }
    suggestions = Suggestions()
    for child, returned in _children(playbook):
        if returned is not None and child.text in known and returned.text not in steps[child.text]:
            yield Finding(
                OTHER_STEP,
                Severity.ERROR,
                returned.span,
                f"the playbook `{child.text}` has no step `{returned.text}`",
                suggestions.did_you_mean(returned.text, steps[child.text]) or "name the step whose result is wanted",
            )
        if child.text not in known:
            yield Finding(
                OTHER_PLAYBOOK,
                Severity.NOTE,
                child.span,
                f"the playbook `{child.text}` is not among the files: the catalogue must have it when this runs",
                suggestions.did_you_mean(child.text, others) or "name its file too, to put both into one bundle",
            )


def _path(playbook: ast.Playbook) -> Scalar | None:
    return playbook.metadata.path if playbook.metadata else None


def _children(playbook: ast.Playbook) -> Iterator[tuple[Scalar, Scalar | None]]:
    """Yield the literal paths of the playbooks that this one runs, each with the step that it returns."""
    for task in playbook.all_tasks:
        path = task.get_extra("path")
        if task.tool_kind == "playbook" and isinstance(path, Scalar) and not path.is_template:
            returned = task.get_extra("return_step")
            yield path, returned if isinstance(returned, Scalar) and not returned.is_template else None
