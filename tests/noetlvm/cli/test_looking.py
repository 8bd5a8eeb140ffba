"""Looking at executions: short lists, what tasks were given and printed, filtered events, removal, and hints."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from noetlvm.cli.list import short_ids
from noetlvm.cli.view import Quiet
from noetlvm.store.interface import StoreError
from noetlvm.store.sqlite import SqliteReader, SqliteStore
from tests.commands import Command
from tests.waiting import wait_until

HEAD = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {{ name: {name}, path: t/{name} }}\n"
LOOP = (
    HEAD.format(name="a_rather_long_name_of_a_playbook")
    + """
keychain: [{ name: token, kind: environment }]
workflow:
  - step: start
    spec: { policy: { failure: { mode: best_effort } } }
    loop: { in: [1, 2, 0, 4], iterator: n }
    tool:
      - divide:
          kind: python
          args: { n: "{{ iter.n }}", key: "{{ keychain.token }}" }
          code: |
            print("dividing by", n)
            result = 8 / n
  - step: end
    tool: { kind: noop }
"""
).replace("  - step: end", "    next: { arcs: [{ step: end }] }\n  - step: end")


@pytest.fixture
def looped(noetlvm: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """A run of four iterations, of which one failed."""
    monkeypatch.setenv("TOKEN", "sesame-open-sesame")
    (tmp_path / "loop.yaml").write_text(LOOP)
    assert noetlvm("run", "loop.yaml", "--quiet", "--keychain", "env").code in (0, 1)
    return noetlvm


def test_a_list_fits_80_columns_and_its_identifiers_work(looped: Command) -> None:
    looped("run", "loop.yaml", "--quiet", "--keychain", "env")
    lines = looped("list").out.splitlines()
    assert len(lines) >= 3
    assert max(map(len, lines)) <= 80
    for line in lines[1:3]:
        id = line.split()[0]
        assert len(id) < 36
        assert id in looped("show", id).out


def test_short_identifiers_are_unique_beginnings() -> None:
    ids = ["01a1e717-cba1-7271", "01a1e717-cba1-7279", "01a1e717-cba2-0000", "zz"]
    short = short_ids(ids)
    assert short["01a1e717-cba2-0000"] == "01a1e717-cba2"
    for id in ids:
        assert [other for other in ids if other.startswith(short[id])] == [id]


def test_show_lists_failed_iterations_and_how_to_look_at_them(looped: Command) -> None:
    out = looped("show").out
    assert "start[2] failed: ZeroDivisionError: division by zero" in out
    hint = next(line for line in out.splitlines() if "what it was given" in line)
    words = hint.split("noetlvm ")[1].split()
    assert "--step start --iteration 2" in " ".join(words)
    found = looped(*words).out
    assert "divide: error" in found
    assert '"n": 0' in found


def test_show_of_a_step_has_inputs_results_and_output_without_secrets(looped: Command) -> None:
    out = looped("show", "--step", "start").out
    assert '"n": 4' in out
    assert "result: 2.0" in out
    assert "output: dividing by 4" in out
    assert "sesame" not in out
    assert '"key": "***"' in out
    found = looped("show", "--step", "start", "--iteration", "0", "--json")
    assert found.data["inputs"]["args"] == {"n": 1, "key": "***"}
    assert (found.data["status"], found.data["result"], found.data["printed"]) == ("ok", 8.0, "dividing by 1\n")


def test_a_step_that_did_not_run_is_refused_with_those_that_did(looped: Command) -> None:
    answer = looped("show", "--step", "strat")
    assert answer.code == 2
    assert "steps that ran: start, end" in answer.err
    assert "--iteration needs --step" in looped("show", "--iteration", "1").err


def test_inputs_are_not_recorded_where_the_setting_is_off(
    noetlvm: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOETLVM_INPUTS", "off")
    text = HEAD.format(name="plain") + "workflow:\n  - step: start\n    tool: { kind: python, code: result = 1 }\n"
    (tmp_path / "plain.yaml").write_text(text)
    assert noetlvm("run", "plain.yaml", "--quiet").code == 0
    assert noetlvm("show", "--step", "start", "--json").data["inputs"] is None


def test_events_are_chosen_by_step_and_name(looped: Command) -> None:
    out = looped("events", "--step", "start", "--name", "task.done").out.splitlines()
    assert len(out) == 4
    assert all(" task.done " in line for line in out)
    names = {line.split()[2] for line in looped("events", "--step", "end", "--name", "task.").out.splitlines()}
    assert names == {"task.started", "task.done"}
    assert "did you mean `task.done`?" in looped("events", "--name", "task.dne").err
    assert looped("events", "--name", "workflow.started", "--follow").out.count("\n") == 1


def test_an_execution_is_removed_with_its_results(looped: Command, tmp_path: Path) -> None:
    id = looped("list", "--json").data["execution_id"]
    assert looped("rm", id[:13]).code == 0
    assert looped("list", "--json").out == ""
    assert "there is no execution" in looped("rm", id).err


def test_only_old_executions_are_cleaned(looped: Command) -> None:
    assert looped("clean", "--older-than", "1d", "--json").data["executions"] == 0
    assert looped("clean", "--older-than", "0m", "--json").data["executions"] == 1
    assert "such as 30d, not `soon`" in looped("clean", "--older-than", "soon").err


SLEEP = HEAD.format(name="sleep") + (
    "workflow:\n"
    "  - step: start\n"
    "    tool:\n"
    "      - first: { kind: noop }\n"
    "      - nap: { kind: shell, command: [sleep, '600'] }\n"
)


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """A database whose process was killed while a task ran."""
    (tmp_path / "sleep.yaml").write_text(SLEEP)
    database = tmp_path / "killed.db"
    command = [sys.executable, "-m", "noetlvm", "run", "sleep.yaml", "--db", str(database), "--quiet"]
    process = subprocess.Popen(command, cwd=tmp_path)
    try:
        wait_until(lambda: _has_started(database) or process.poll() is not None)
        assert process.poll() is None
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait(60)
    return database


def _has_started(database: Path) -> bool:
    if not database.is_file() or not database.stat().st_size:
        return False
    try:
        reader = SqliteReader(database)
    except StoreError:  # not a database yet
        return False
    try:
        return any(
            one.event.name == "task.started" and one.event.label == "nap"
            for row in reader.executions()
            for one in reader.events(row.execution_id)
        )
    finally:
        reader.close()


def test_a_run_whose_process_is_gone_is_stopped_and_the_hint_repeats_the_database(
    noetlvm: Command, killed: Path
) -> None:
    assert noetlvm("list", "--db", str(killed), "--json").data["status"] == "stopped"
    out = noetlvm("show", "--db", str(killed)).out
    id = noetlvm("list", "--db", str(killed), "--json").data["execution_id"]
    assert out.startswith("sleep: stopped")
    assert f"to continue: noetlvm resume {id} --db {killed}" in out
    store = SqliteStore(killed)
    try:
        assert noetlvm("list", "--db", str(killed), "--json").data["status"] == "running"
    finally:
        store.close()
    assert f"`noetlvm list --db {killed}` lists" in noetlvm("show", "nothing", "--db", str(killed)).err
    assert f"noetlvm cancel {id} --db {killed}" in noetlvm("rm", id, "--db", str(killed)).err


def test_progress_counts_what_happened_before_a_resume(killed: Path) -> None:
    reader = SqliteReader(killed)
    view = Quiet()
    (row,) = reader.executions()
    view.recall(reader, [row.execution_id])
    reader.close()
    (run,) = view.executions[row.execution_id].runs.values()
    assert (run.step, run.tasks, run.at, run.status) == ("start", 1, "nap", "running")


def test_a_run_that_failed_before_a_retry_is_marked(noetlvm: Command, tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    text = f"""\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {{ name: flagged, path: tests/flagged }}
workflow:
  - step: start
    tool: [{{ look: {{ kind: shell, command: [test, -e, "{flag}"] }} }}]
"""
    (tmp_path / "flagged.yaml").write_text(text, encoding="utf-8")
    assert noetlvm("run", "flagged.yaml", "--quiet").code == 1
    flag.touch()
    assert noetlvm("retry", noetlvm("list", "--json").data["execution_id"], "--quiet").code == 0
    rows = [line.split() for line in noetlvm("show").out.splitlines() if line[:1].isdigit()]
    assert [(row[0], row[2]) for row in rows] == [("1", "retried"), ("2", "done")]
