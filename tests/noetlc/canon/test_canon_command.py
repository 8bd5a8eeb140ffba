"""`noetlc canon` from the outside: what it prints where, and its exit codes."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from noetlc.__main__ import main
from tests.noetlc.canon.canonical import printed
from tests.noetlc.rules.lint_text import whole_playbook

STEPS = "- step: start\n  tool: {kind: noop}\n"


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["noetlc", "canon", *arguments])
    try:
        return main()
    except SystemExit as end:  # how typer ends a command
        return int(end.code or 0)


def test_it_prints_yaml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(whole_playbook(STEPS), encoding="utf-8")
    assert run(monkeypatch, str(file)) == 0
    assert capfd.readouterr() == (printed(STEPS), "")


def test_it_writes_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(whole_playbook(STEPS), encoding="utf-8")
    assert run(monkeypatch, str(file), "-o", str(tmp_path / "b.yaml")) == 0
    assert capfd.readouterr() == ("", "")
    assert (tmp_path / "b.yaml").read_text(encoding="utf-8") == printed(STEPS)


def test_it_reads_standard_input(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(whole_playbook(STEPS).encode())))
    assert run(monkeypatch, "-") == 0
    assert capfd.readouterr().out == printed(STEPS)


def test_lint_errors_are_shown_and_nothing_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(whole_playbook(STEPS.replace("noop", "nop")) + "# noetlc: ignore-file[P106]\n", encoding="utf-8")
    assert run(monkeypatch, str(file)) == 1
    out, err = capfd.readouterr()
    assert out == ""
    assert "error[P106]" in err
    assert "a.yaml:" in err


def test_what_cannot_be_expanded_is_reported_like_a_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    text = whole_playbook("- step: start\n  tool: [{kind: workbook, task: t, args: '{{ ctx }}'}]\n")
    file = tmp_path / "a.yaml"
    file.write_text(text + "workbook: {tasks: {t: {kind: noop}}}\n", encoding="utf-8")
    assert run(monkeypatch, str(file)) == 1
    assert "error[P117]: the arguments of a workbook call must be written out" in capfd.readouterr().err


def test_a_file_that_is_not_there_cannot_be_run(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "no/such.yaml") == 2
    assert "cannot read no/such.yaml" in capfd.readouterr().err
