"""No secret is left behind by a run: not in the database, the results, the bundle, or what is printed (S45)."""

from __future__ import annotations

import asyncio
from contextlib import closing
from pathlib import Path

import pytest

from noetlvm.bridge import compile_playbooks
from noetlvm.engine.engine import Engine, EngineOptions
from noetlvm.machine.loaded import Bundle
from noetlvm.results.interface import MemoryResults
from noetlvm.rounds.credentials import Credentials
from noetlvm.store.sqlite import SqliteStore
from noetlvm.tools.runner import ToolRunner
from tests.canary import find_canaries
from tests.commands import Command

CANARY = 'c4n4ry/Zx9+Qw7 "Lm3"=Tp5'

PLAYBOOK = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {{ name: keyed, path: keyed }}
keychain:
  - {{ name: token, kind: bearer_token }}
workflow:
  - step: start
    tool:
      - leak:
          kind: shell
          command: [sh, -c, 'cat "$0"; base64 "$0"; rev "$0"; od -An -tx1 "$0"; exit {exit_code}', "{file}"]
"""


@pytest.mark.parametrize("exit_code", [0, 3])
def test_a_run_leaves_no_secret_behind(
    exit_code: int, noetlvm: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known, work = tmp_path / "known.txt", tmp_path / "work"
    known.write_text(CANARY)
    work.mkdir()
    monkeypatch.setenv("NOETLVM_DB", str(work / "executions.db"))
    monkeypatch.setenv("TOKEN", CANARY)
    (work / "keyed.yaml").write_text(PLAYBOOK.format(exit_code=exit_code, file=known))
    answers = [
        noetlvm("run", "work/keyed.yaml"),
        noetlvm("run", "work/keyed.yaml", "--json"),
        noetlvm("show"),
        noetlvm("events", "--json"),
    ]
    assert answers[0].code == (1 if exit_code else 0)
    assert "***" in answers[3].out
    printed = "".join(answer.out + answer.err for answer in answers).encode()
    assert find_canaries(printed, CANARY) == []
    assert find_canaries(work, CANARY) == []


def test_a_missing_entry_is_refused_and_says_where_it_was_looked_for(
    noetlvm: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TOKEN", raising=False)
    (tmp_path / "keyed.yaml").write_text(PLAYBOOK.format(exit_code=0, file="nothing"))
    answer = noetlvm("run", "keyed.yaml")
    assert answer.code == 2
    assert "the keychain entry `token` is missing: looked in the environment (`TOKEN`)" in answer.out


def test_an_execution_whose_secrets_are_gone_is_not_resumed_but_stays_resumable(
    noetlvm: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", CANARY)
    (tmp_path / "keyed.yaml").write_text(PLAYBOOK.format(exit_code=0, file=tmp_path / "keyed.yaml"))
    id = _left_unfinished(tmp_path)
    monkeypatch.delenv("TOKEN")
    answer = noetlvm("resume", id)
    assert (answer.code, "the keychain entry `token` is missing" in answer.err) == (2, True)
    monkeypatch.setenv("OTHER", CANARY)
    assert noetlvm("resume", id, "--keychain", "token=env:OTHER", "--json").data["status"] == "success"


def _left_unfinished(folder: Path) -> str:
    """Start an execution and leave before anything has run."""

    async def leave() -> str:
        engine = Engine(store, MemoryResults(), ToolRunner(), EngineOptions(resolve=lambda _declared: Credentials()))
        id = engine.start(Bundle.of(compile_playbooks([str(folder / "keyed.yaml")])), {})
        await engine.control_idle(id, "resume")
        return id

    with closing(SqliteStore(folder / "executions.db")) as store:
        return asyncio.run(leave())


FAMILY = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {{ name: parent, path: parent }}
{parent}
workflow:
  - step: start
    tool:
      - child: {{ kind: playbook, path: child }}
      - own: {{ kind: shell, command: [cat, "{file}"] }}
---
apiVersion: noetl.io/v2
kind: Playbook
metadata: {{ name: child, path: child }}
{child}
workflow:
  - step: start
    tool:
      - other: {{ kind: shell, command: [cat, "{file}"] }}
"""
KEYCHAIN = "keychain: [{ name: token, kind: bearer_token }]"


@pytest.mark.parametrize(("parent", "child"), [(KEYCHAIN, ""), ("", KEYCHAIN)], ids=["parent's", "child's"])
def test_a_secret_of_a_parent_or_child_is_redacted_in_both(
    noetlvm: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parent: str, child: str
) -> None:
    known, work = tmp_path / "known.txt", tmp_path / "work"
    known.write_text(CANARY)
    work.mkdir()
    monkeypatch.setenv("NOETLVM_DB", str(work / "executions.db"))
    monkeypatch.setenv("TOKEN", CANARY)
    texts = FAMILY.format(parent=parent, child=child, file=known).split("---\n")
    for name, text in zip(("parent", "child"), texts, strict=True):
        (work / f"{name}.yaml").write_text(text)
    answer = noetlvm("run", "work/parent.yaml", "work/child.yaml", "--json")
    assert answer.code == 0, answer.err
    assert find_canaries((answer.out + answer.err).encode(), CANARY) == []
    assert find_canaries(work, CANARY) == []
