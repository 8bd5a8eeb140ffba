"""What used to pass in silence is said: empty SQL, undefined loop sources, spent retries, unknown keys, packages."""

from __future__ import annotations

import asyncio
import importlib.util
from pathlib import Path
from typing import Any

import pytest

from noetlvm import api
from noetlvm.bridge import compile_texts
from noetlvm.engine.engine import Engine
from noetlvm.machine.loaded import Bundle
from noetlvm.results.interface import MemoryResults
from noetlvm.store.sqlite import SqliteStore
from noetlvm.testing import run_playbook
from noetlvm.tools.runner import MissingPackageError, ToolRunner
from tests.commands import Command

HEAD = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: { name: one, path: t/one }\nworkload: { n: 1, q: ' -- ' }\n"


def playbook(task: str) -> str:
    return f"{HEAD}workflow:\n  - step: start\n    tool:\n      - work: {task}\n"


def message(task: str, answer: Any = "ok") -> str:
    ran = run_playbook(playbook(task), {"work": answer})
    return str(ran.failures[0]["error"]["message"]) if ran.failures else ""


def test_a_command_without_a_statement_is_an_error(noetlvm: Command, tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text(playbook('{ kind: duckdb, command: "{{ workload.q }}" }'))
    answer = noetlvm("run", "one.yaml", "--quiet")
    assert answer.code == 1
    assert "has no statement" in answer.err


def test_a_for_over_what_is_undefined_is_an_error_and_default_allows_it() -> None:
    loop = "{% for x in SOURCE %}{{ x }}{% endfor %}"
    task = '{ kind: python, args: { t: "' + loop + '" }, code: result = t }'
    assert "`none` is undefined" in message(task.replace("SOURCE", "ctx.none"))
    assert message(task.replace("SOURCE", "ctx.none | default([])")) == ""
    assert message(task.replace("SOURCE", "[]")) == ""


RETRY = (
    "{ kind: http, url: https://example.org, spec: { policy: { rules: "
    '[{ when: "{{ GUARD }}", then: { do: retry, attempts: 3, delay: 1 } }, { else: { then: { do: continue } } }] } } }'
)


def test_spent_retries_are_said_with_the_last_outcome() -> None:
    failing = RETRY.replace("GUARD", "outcome.status == 'error'")
    said = message(failing, ["http 503", "http 502", "http 500"])
    assert said == "gave up after 3 attempts: the server answered 500"
    waiting = RETRY.replace("GUARD", "outcome.status == 'ok'")
    assert message(waiting).startswith("gave up after 3 attempts: the last outcome is `ok`")
    assert message(failing.replace("attempts: 3", "attempts: 1"), "http 503") == "the server answered 503"


def test_an_unknown_key_of_the_workload_is_noted(noetlvm: Command, tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text(playbook("{ kind: noop }"))
    assert "note: the workload has no `zzz`; it declares n, q" in noetlvm("run", "one.yaml", "--set", "zzz=3").err
    assert "note:" not in noetlvm("run", "one.yaml", "--set", "n=3").err


NEEDS_HTTPTOOLS = "`http` needs the package `httptools`, which is not installed; run: pip install 'noetlc[http]'"


def without_httptools(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda name, *more: None if name == "httptools" else find(name, *more)
    )


def test_a_missing_package_is_found_before_the_first_step(
    noetlvm: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = playbook("{ kind: python, code: result = 1 }") + "      - last: { kind: http, url: https://example.org }\n"
    (tmp_path / "one.yaml").write_text(text)
    without_httptools(monkeypatch)
    answer = noetlvm("run", "one.yaml", "--quiet")
    assert answer.code == 2
    assert NEEDS_HTTPTOOLS in answer.err
    assert noetlvm("list", "--json").code != 0 or not noetlvm("list", "--json").out
    with pytest.raises(MissingPackageError, match="noetlc\\[http\\]"):
        api.run(tmp_path / "one.yaml")


def test_a_missing_package_is_found_before_a_retry_and_before_a_resumed_step(
    noetlvm: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = "{ kind: python, code: 'raise ValueError(1)' }"
    (tmp_path / "one.yaml").write_text(playbook(task) + "      - last: { kind: http, url: https://example.org }\n")
    assert noetlvm("run", "one.yaml", "--quiet").code == 1
    failed = noetlvm("list", "--json").data["execution_id"]
    database = SqliteStore(tmp_path / "executions.db")
    engine = Engine(database, MemoryResults(), ToolRunner())
    left = engine.start(Bundle.of(compile_texts([(tmp_path / "one.yaml").read_text()])), {})
    asyncio.run(engine.loop.turn())
    database.close()
    without_httptools(monkeypatch)
    for command in (("retry", failed), ("resume", left)):
        answer = noetlvm(*command, "--quiet")
        assert answer.code == 2
        assert NEEDS_HTTPTOOLS in answer.err
    assert len(noetlvm("list", "--json").out.splitlines()) == 2


def test_a_denied_connection_says_what_is_allowed(noetlvm: Command, tmp_path: Path) -> None:
    code = "import socket\\nsocket.create_connection(('127.0.0.1', 1))"
    (tmp_path / "one.yaml").write_text(playbook(f'{{ kind: python, code: "{code}" }}'))
    err = noetlvm("run", "one.yaml", "--quiet").err
    assert "has no network: use `kind: http` for requests" in err
