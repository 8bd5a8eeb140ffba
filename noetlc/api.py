"""The compiler as a Python library: `lint`, `compile` and `analyse`. docs/python-api.md has examples.

A source is a text of YAML, its bytes, or a `pathlib.Path` of a file. Findings have lines and columns. A file is judged
by the nearest configuration above it, as the commands do; `config` names another file, and a text has the defaults.
"""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from noetlc.compile import check_playbook, compile_playbooks
from noetlc.finding import Severity
from noetlc.lint.check import check_bytes
from noetlc.report.located_finding import EditRow, FixRow, LocatedFinding, Range, RelatedRow, resolve_all
from noetlc.settings import Settings, settings_for
from noetlvm.bytecode.codec.container import bundle_id

if TYPE_CHECKING:
    from noetlc.graph.report import GraphReport
    from noetlc.lint.check import CheckedFile

__all__ = [
    "Analysis",
    "CompiledBundle",
    "EditRow",
    "Finding",
    "FixRow",
    "PlaybookError",
    "Range",
    "RelatedRow",
    "Settings",
    "Severity",
    "Source",
    "analyse",
    "compile",
    "lint",
]

Source: TypeAlias = str | bytes | PathLike[str]
"""YAML as text or bytes, or the path of a file."""

Finding: TypeAlias = LocatedFinding
"""One finding: `code`, `severity`, `message`, `help`, `path`, `range`, `related`, `fix` and `label`."""

TEXT_NAME = "playbook.yaml"
"""The path of a source in findings where it is not a file."""


class PlaybookError(Exception):
    """A playbook has errors. The message lists them, one on a line, each with its place."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        self.findings = list(findings)
        """All findings, warnings included."""
        errors = [one for one in findings if one.severity is Severity.ERROR]
        super().__init__("\n".join(map(_line, errors)))


class CompiledBundle(NamedTuple):
    """The bytes of a bundle, which `noetlvm.api.run` and `noetlvm run` accept."""

    id: str
    """Content id: the same bytes have the same id everywhere."""
    data: bytes
    findings: list[Finding]
    """Warnings."""

    def save(self, path: str | PathLike[str]) -> None:
        """Write the bundle to a file."""
        Path(path).write_bytes(self.data)

    def __repr__(self) -> str:
        return f"<bundle {self.id[:16]}, {len(self.data):,} bytes, {len(self.findings)} warnings>"


class Analysis(NamedTuple):
    """What a playbook can do, for all runs at once."""

    findings: list[Finding]
    """As of `lint`."""
    report: GraphReport
    """Reachable steps, dead arcs, traps, unbounded places, races, with a witness for each."""
    graph: Any
    """The net as a `networkx.MultiDiGraph`; docs/graph.md lists its attributes."""

    def __repr__(self) -> str:
        return f"<analysis of {len(self.graph)} steps, {len(self.findings)} findings>"


def lint(source: Source, *, config: str | PathLike[str] | None = None) -> list[Finding]:
    """Return the findings in a playbook, in the order of their places."""
    path, data = _read(source)
    settings = _settings(source, config)
    return settings.apply(check_bytes(path, data, settings).rows())


def compile(source: Source, *others: Source, config: str | PathLike[str] | None = None) -> CompiledBundle:
    """Compile a playbook, and others that it runs as children, into one bundle. Raises PlaybookError."""
    files = [_read(one, number) for number, one in enumerate((source, *others))]
    compiled = compile_playbooks(files, _settings(source, config))
    findings = [row for file in compiled.files for row in _rows(file)]
    if compiled.program is None:
        raise PlaybookError(findings)
    return CompiledBundle(bundle_id(compiled.data), compiled.data, findings)


def analyse(source: Source, *, config: str | PathLike[str] | None = None) -> Analysis:
    """Return what a playbook can do. Raises PlaybookError if its errors leave no net."""
    from noetlc.graph import analyse, networkx_graph, reading

    path, data = _read(source)
    checked = check_playbook(path, data, _settings(source, config))
    net = reading.net_of(checked)
    if net is None:
        raise PlaybookError(_rows(checked))
    silenced = frozenset((finding.code, finding.message) for finding in checked.silenced)
    return Analysis(lint(source, config=config), analyse.analyse(net, path, silenced), networkx_graph.to_networkx(net))


def _read(source: Source, number: int = 0) -> tuple[str, bytes]:
    """Return the name and the content of a source. Raises OSError."""
    name = TEXT_NAME if not number else f"playbook_{number + 1}.yaml"
    if isinstance(source, str):
        return name, source.encode()
    return (name, source) if isinstance(source, bytes) else (fspath(source), Path(source).read_bytes())


def _settings(source: Source, config: str | PathLike[str] | None) -> Settings:
    if config is not None:
        return settings_for((), fspath(config))
    return Settings() if isinstance(source, str | bytes) else settings_for((fspath(source),))


def _rows(file: CheckedFile) -> list[Finding]:
    return list(resolve_all(file.findings, file.source))


def _line(finding: Finding) -> str:
    place = f"{finding.path}:{finding.range.line}:{finding.range.column}"
    help = f"; {finding.help}" if finding.help else ""
    return f"{place}: {finding.code} {finding.message}{help}"
