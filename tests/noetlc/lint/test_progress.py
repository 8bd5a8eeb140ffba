from __future__ import annotations

import io

import pytest

from noetlc.lint.pool import ProgressBar


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("noetlc.lint.pool._PROGRESS_AFTER_SECONDS", 0.0)


def shown(stream: io.StringIO, monkeypatch: pytest.MonkeyPatch, *, quiet: bool = False) -> str:
    monkeypatch.setattr("sys.stderr", stream)
    progress = ProgressBar(2, quiet=quiet)
    progress(1)
    progress(2)
    progress.close()
    return stream.getvalue()


@pytest.mark.usefixtures("impatient")
def test_a_long_wait_on_a_terminal_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "Linting" in shown(Terminal(), monkeypatch)


def test_a_short_wait_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("noetlc.lint.pool._PROGRESS_AFTER_SECONDS", 1e9)
    assert shown(Terminal(), monkeypatch) == ""


@pytest.mark.usefixtures("impatient")
def test_nothing_is_shown_to_a_file_or_to_those_who_want_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(io.StringIO(), monkeypatch) == ""
    assert shown(Terminal(), monkeypatch, quiet=True) == ""
