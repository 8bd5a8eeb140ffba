"""Commands that look at a server, when there is none or it refuses them."""

from __future__ import annotations

import socket

import pytest

from tests.commands import Command


@pytest.fixture
def nowhere(monkeypatch: pytest.MonkeyPatch) -> str:
    """A URL at which nothing listens, named by the environment."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    monkeypatch.setenv("NOETLVM_SERVER", url)
    monkeypatch.setenv("NOETLVM_TOKEN", "nvt_x_y")
    return url


@pytest.mark.parametrize(
    "words", [["list"], ["show"], ["events"], ["ctx"], ["pause", "x"], ["cancel", "x"], ["wait", "x"]]
)
def test_a_server_that_cannot_be_reached_is_a_plain_error(noetlvm: Command, nowhere: str, words: list[str]) -> None:
    answer = noetlvm(*words)
    assert answer.code == 2
    assert "cannot be reached" in answer.err
    assert "internal error" not in answer.err


def test_a_database_that_is_named_is_used_instead_of_the_server(noetlvm: Command, nowhere: str) -> None:
    assert "there is no database" in noetlvm("list", "--db", "none.db").err


def test_a_command_without_a_token_says_what_to_set(
    noetlvm: Command, nowhere: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NOETLVM_TOKEN")
    assert "NOETLVM_TOKEN" in noetlvm("list").err
