"""A checker that finds three words, so that these tests are about running lint and not about rules."""

from __future__ import annotations

import io
import json
import re
import sys
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import pytest

from noetlc.__main__ import main
from noetlc.finding import Edit, Finding, Fix, Severity
from noetlc.syntax.span import Span
from noetlvm.__main__ import main as run_vm

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from noetlc.analysis.model import Model

_WORDS = {
    "bad": ("P007", Severity.ERROR, Fix("Write `good`", (), safe=True), "good"),
    "ugly": ("P011", Severity.NOTE, Fix("Write `pretty`", (), safe=False), "pretty"),
    "odd": ("P012", Severity.WARNING, None, ""),
}


class Answer(NamedTuple):
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> dict[str, Any]:
        """The one JSON object that it printed."""
        found = json.loads(self.out)
        assert isinstance(found, dict)
        return found


Command: TypeAlias = "Callable[..., Answer]"


def find_words(model: Model, **_: object) -> list[Finding]:
    found = []
    for match in re.finditer(r"\b(bad|ugly|odd|crash)\b", model.source.text):
        if match[0] == "crash":
            raise ZeroDivisionError("a rule with a defect")
        code, severity, fix, better = _WORDS[match[0]]
        span = Span(*match.span())
        corrected = fix and Fix(fix.description, (Edit(span, better),), fix.safe)
        found.append(Finding(code, severity, span, f"`{match[0]}` is no word", f"Say {better}.", (), corrected))
    return found


@pytest.fixture
def words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("noetlc.lint.check.run_rules", find_words)


@pytest.fixture
def noetlc(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> Callable[..., Answer]:
    """Run the command line in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")

    def run(*arguments: str, stdin: bytes = b"") -> Answer:
        monkeypatch.setattr(sys, "argv", ["noetlc", *arguments])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        try:
            code = main()
        except SystemExit as end:
            code = int(end.code or 0)
        out, err = capsysbinary.readouterr()
        return Answer(code, out.decode(), err.decode())

    return run


@pytest.fixture
def noetlvm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Answer]:
    """Run the virtual machine's command line in an empty folder, with a database of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NOETLVM_DB", str(tmp_path / "executions.db"))
    monkeypatch.setenv("NOETLVM_DEBUG", "1")

    def run(*arguments: str) -> Answer:
        monkeypatch.setattr(sys, "argv", ["noetlvm", *arguments])
        code = run_vm()
        out, err = capsys.readouterr()
        return Answer(code, out, err)

    return run


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str], Path]:
    """Write a playbook."""

    def write(name: str, text: str) -> Path:
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(f"kind: Playbook\n{text}".encode())
        return file

    return write
