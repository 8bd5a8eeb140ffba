"""`kind: secrets`: each provider, and what a missing secret says."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from noetlvm.tools.call import Outcome, ToolCall
from noetlvm.tools.runner import ToolRunner

Run = Callable[..., Outcome]


def test_a_secret_comes_from_the_environment_if_nothing_else_is_said(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENANT_TOKEN", "s3cret")
    assert run("secrets", {"secret": "tenant_token"}) == {"status": "ok", "result": "s3cret"}


def test_a_secret_comes_from_the_file_that_the_run_was_given(tmp_path: Path) -> None:
    file = tmp_path / "secrets.json"
    file.write_text('{"tenants": {"acme": {"token": "s3cret"}}}')
    runner = ToolRunner((f"file:{file}",))
    call = ToolCall("secrets", {"provider": "file", "secret": "tenants/acme/token"}, {}, "key")
    assert asyncio.run(runner.run(call))["result"] == "s3cret"


def test_a_secret_that_is_nowhere_is_an_error_that_says_where_it_was_looked_for(run: Run) -> None:
    error = run("secrets", {"secret": "no_such_secret"})["error"]
    assert (error["kind"], error["retryable"]) == ("secrets", False)
    assert "`NO_SUCH_SECRET`" in error["message"]


def test_a_provider_that_is_unknown_is_an_error(run: Run) -> None:
    assert "`vault`" in run("secrets", {"secret": "x", "provider": "vault"})["error"]["message"]
