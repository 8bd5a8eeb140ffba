"""`noetlvm run` and the commands that look at what it left: what they print, and their exit codes."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.commands import Answer, Command

ROOT = Path(__file__).parents[3]

HEADER = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {{ name: {0}, path: {0} }}
"""

COUNTING = (
    HEADER.format("counting")
    + """\
workload: { items: [1, 2, 3], bonus: 0 }
workflow:
  - step: start
    loop:
      in: "{{ workload.items }}"
      iterator: item
      spec: { mode: parallel, policy: { reducers: { total: sum } } }
    tool:
      - add:
          kind: noop
          spec:
            policy:
              rules:
                - else:
                    then: { do: continue, set_ctx: { total: "{{ iter.item + workload.bonus }}" } }
"""
)

FAILING = (
    HEADER.format("failing")
    + """\
workflow:
  - step: start
    tool:
      - give_up:
          kind: noop
          reason: "{{ execution_id | length }}"
          spec:
            policy:
              rules:
                - else:
                    then: { do: fail }
"""
)


@pytest.fixture
def noetlvm(noetlvm: Command, tmp_path: Path) -> Command:
    """Run the command line beside two playbooks."""
    (tmp_path / "counting.yaml").write_text(COUNTING)
    (tmp_path / "failing.yaml").write_text(FAILING)
    return noetlvm


def test_a_playbook_runs_straight_from_yaml(noetlvm: Command) -> None:
    answer = noetlvm("run", "counting.yaml")
    assert answer.code == 0
    assert answer.out.startswith("counting: success in ")
    assert '"total": 6' in answer.out
    assert "start: loop over 3 items" in answer.err


def test_a_bundle_runs_without_its_playbook(noetlvm: Command, tmp_path: Path) -> None:
    compile = [sys.executable, "-m", "noetlc", "compile", str(tmp_path / "counting.yaml"), "-o", "x.nbc"]
    subprocess.run(compile, check=True, cwd=tmp_path, env={"PYTHONPATH": str(ROOT)})
    (tmp_path / "counting.yaml").unlink()
    assert noetlvm("run", "x.nbc", "--json").data["ctx"] == {"total": 6}


def test_json_is_one_object_and_nothing_else(noetlvm: Command) -> None:
    answer = noetlvm("run", "counting.yaml", "--json")
    assert list(answer.data) == ["execution_id", "status", "ctx", "result", "failures", "event_count"]
    assert answer.data["status"] == "success"
    assert answer.err == ""


def test_quiet_says_nothing_of_a_success(noetlvm: Command) -> None:
    assert noetlvm("run", "counting.yaml", "--quiet") == Answer(0, "", "")


def test_ctx_begins_with_what_the_request_brings(noetlvm: Command, tmp_path: Path) -> None:
    (tmp_path / "ctx.yaml").write_text("mood: fine\ntotal: 1\n")
    assert noetlvm("run", "counting.yaml", "--ctx", "ctx.yaml", "--json").data["ctx"] == {"mood": "fine", "total": 7}
    assert noetlvm("ctx", "--at", "4").data == {"mood": "fine", "total": 1}
    assert "decided again: success" in noetlvm("replay").out
    (tmp_path / "list.yaml").write_text("[1]")
    answer = noetlvm("run", "counting.yaml", "--ctx", "list.yaml")
    assert (answer.code, "must contain a mapping" in answer.err) == (2, True)


def test_quiet_prints_errors_and_no_warnings(noetlvm: Command, tmp_path: Path) -> None:
    ignored = COUNTING.replace("workflow:", "workflow:\n  - { step: nobody, tool: { kind: noop } }", 1)
    (tmp_path / "warned.yaml").write_text(
        ignored.replace("metadata:", "executor: { spec: { entry_step: start } }\nmetadata:")
    )
    assert "warning" in noetlvm("run", "warned.yaml").err
    assert noetlvm("run", "warned.yaml", "-q") == Answer(0, "", "")
    (tmp_path / "wrong.yaml").write_text(COUNTING.replace("kind: noop", "kind: noopp"))
    assert "did you mean `noop`?" in noetlvm("run", "wrong.yaml", "-q").err


def damage(database: Path, *statements: str) -> None:
    with closing(sqlite3.connect(database)) as opened:
        for statement in statements:
            opened.execute(statement)
        opened.commit()


def test_a_damaged_log_is_reported_with_the_event(noetlvm: Command, tmp_path: Path) -> None:
    noetlvm("run", "counting.yaml", "-q")
    damage(tmp_path / "executions.db", "UPDATE chunks SET data = CAST(data || x'ff' AS BLOB)")
    for command in ("show", "ctx", "replay", "events"):
        answer = noetlvm(command)
        assert answer.code == 2
        assert "is damaged: its checksum differs; `noetlvm fsck` checks everything" in answer.err


@pytest.mark.parametrize("change", ["counts = '{'", "started = 'soon'", "path = x'00'", "ended = 'late'"])
def test_a_damaged_row_of_an_execution_is_reported_as_damage(noetlvm: Command, tmp_path: Path, change: str) -> None:
    noetlvm("run", "counting.yaml", "-q")
    damage(tmp_path / "executions.db", f"UPDATE executions SET {change}")
    for command in ("list", "show", "ctx", "events", "replay"):
        answer = noetlvm(command)
        assert (answer.code, "is damaged" in answer.err) == (2, True), answer.err


def test_every_query_over_a_log_with_a_gap_names_the_missing_event(noetlvm: Command, tmp_path: Path) -> None:
    noetlvm("run", "counting.yaml", "-q")
    damage(tmp_path / "executions.db", "DELETE FROM chunks WHERE place & 255 = 1")
    for command in ("show", "ctx", "events", "replay"):
        answer = noetlvm(command)
        assert answer.code == 2
        assert "event 1 of" in answer.err
        assert "is missing" in answer.err


def test_an_execution_without_its_bundle_is_refused_to_be_cancelled(noetlvm: Command, tmp_path: Path) -> None:
    id = str(noetlvm("run", "counting.yaml", "--json").data["execution_id"])
    unfinished = "UPDATE executions SET ended = NULL, status = 'running'"
    damage(tmp_path / "executions.db", unfinished, "DELETE FROM bundles")
    answer = noetlvm("cancel", id)
    assert (answer.code, "the store has no bundle" in answer.err) == (2, True)


def test_set_and_payload_are_merged_over_the_workload(noetlvm: Command, tmp_path: Path) -> None:
    (tmp_path / "request.json").write_text('{"items": [10, 20]}')
    (tmp_path / "request.yaml").write_text("items: [10, 20]\n")
    for file in ("request.json", "request.yaml"):
        answer = noetlvm("run", "counting.yaml", "--payload", file, "--set", "bonus=1", "--json")
        assert answer.data["ctx"] == {"total": 32}


def test_a_key_that_is_nearly_one_of_the_workload_is_noted(noetlvm: Command) -> None:
    noted = noetlvm("run", "counting.yaml", "--set", "itms=[7]", "--set", "extra=1")
    assert (noted.code, noted.err.count("note:")) == (0, 2)
    assert "note: the workload has no `itms`; did you mean `items`?" in noted.err
    assert noetlvm("run", "counting.yaml", "--set", "itms=[7]", "-q") == Answer(0, "", "")


def test_a_failure_is_reported_with_task_rule_input_and_line(noetlvm: Command) -> None:
    answer = noetlvm("run", "failing.yaml")
    assert answer.code == 1
    assert "task give_up, step start" in answer.out
    assert "rule:  do: fail, at failing.yaml:14:" in answer.out
    assert "then: { do: fail }" in answer.out
    assert 'input: {"reason": 36}' in answer.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run", "nothing.yaml"), "cannot read nothing.yaml"),
        (("run", "nothing.nbc"), "cannot read nothing.nbc"),
        (("run", "counting.yaml", "--set", "items"), "--set takes key=value"),
        (("run", "counting.yaml", "--set", "a=1", "--set", "a.b=2"), "`a` is not a mapping"),
        (("run", "counting.yaml", "--payload", "nothing.json"), "cannot read nothing.json"),
        (("run", "counting.yaml", "--payload", "counting.yaml.json"), "cannot read"),
        (("run", "counting.yaml", "--durability", "none"), "'none' is not one of 'full', 'relaxed'"),
        (("show",), "there is no database"),
        (("resume",), "there is no database"),
    ],
)
def test_what_cannot_be_done_is_refused_with_a_reason(
    noetlvm: Command, arguments: tuple[str, ...], message: str
) -> None:
    answer = noetlvm(*arguments)
    assert answer.code == 2
    assert message in answer.err


def test_a_playbook_with_errors_is_refused_with_its_findings(noetlvm: Command, tmp_path: Path) -> None:
    (tmp_path / "wrong.yaml").write_text(COUNTING.replace("kind: noop", "kind: noopp"))
    answer = noetlvm("run", "wrong.yaml")
    assert answer.code == 2
    assert "did you mean `noop`?" in answer.err


def test_a_file_that_is_no_bundle_is_refused(noetlvm: Command, tmp_path: Path) -> None:
    (tmp_path / "x.nbc").write_bytes(b"not a bundle")
    answer = noetlvm("run", "x.nbc")
    assert answer.code == 2
    assert "not a bundle that can run" in answer.err


@pytest.mark.parametrize(
    ("database", "message"),
    [
        ("counting.yaml", "counting.yaml: file is not a database; --db names another database"),
        (".", "Is a directory; --db names another database"),
        ("counting.yaml/runs.db", "counting.yaml: File exists; --db names another database"),
    ],
)
def test_what_cannot_be_a_database_is_refused_with_what_to_do(noetlvm: Command, database: str, message: str) -> None:
    answer = noetlvm("run", "counting.yaml", "--db", database)
    assert answer.code == 2
    assert message in answer.err


def test_relaxed_durability_runs_too(noetlvm: Command) -> None:
    assert noetlvm("run", "counting.yaml", "--durability", "relaxed", "-q").code == 0


def test_executions_are_listed_the_latest_first(noetlvm: Command) -> None:
    noetlvm("run", "counting.yaml", "-q")
    noetlvm("run", "failing.yaml", "-q")
    rows = [json.loads(line) for line in noetlvm("list", "--json").out.splitlines()]
    assert [(row["name"], row["status"]) for row in rows] == [("failing", "failed"), ("counting", "success")]
    assert "counting" in noetlvm("list").out


def test_one_execution_is_shown_by_any_clear_part_of_its_identifier(noetlvm: Command) -> None:
    id = str(noetlvm("run", "counting.yaml", "--json").data["execution_id"])
    for part in (id, id[:30], id[-6:]):
        assert noetlvm("show", part, "--json").data["execution_id"] == id
    shown = noetlvm("show").out
    assert "3 ok, 0 failed of 3" in shown
    answer = noetlvm("show", "nobody")
    assert (answer.code, "there is no execution `nobody`" in answer.err) == (2, True)


def test_an_identifier_that_is_not_clear_or_not_there_gets_a_hint(noetlvm: Command) -> None:
    first, second = (str(noetlvm("run", "counting.yaml", "--json").data["execution_id"]) for _ in range(2))
    shared = first[:6]
    assert second.startswith(shared)
    assert noetlvm("show", shared).err.endswith(f"write more of the identifier: {second}, {first}\n")
    mistyped = f"{first[:-1]}{'0' if first[-1] != '0' else '1'}"
    assert f"did you mean `{first}`?" in noetlvm("cancel", mistyped).err
    assert f"the latest of `counting` is {second}" in noetlvm("events", "counting").err


def test_events_are_lines_or_envelopes(noetlvm: Command) -> None:
    count = noetlvm("run", "counting.yaml", "--json").data["event_count"]
    envelopes = [json.loads(line) for line in noetlvm("events", "--json").out.splitlines()]
    assert [envelope["seq"] for envelope in envelopes] == list(range(1, len(envelopes) + 1))
    assert len(envelopes) == count == len(noetlvm("events", "--follow").out.splitlines())
    assert envelopes[-1]["name"] == "playbook.processed"


def test_ctx_can_be_seen_as_it_was(noetlvm: Command) -> None:
    noetlvm("run", "counting.yaml", "-q")
    assert noetlvm("ctx").data == {"total": 6}
    assert noetlvm("ctx", "--at", "3").data == {}
    answer = noetlvm("ctx", "--at", "999")
    assert (answer.code, "--at takes 0 to " in answer.err) == (2, True)


def test_replay_finds_a_log_whole_and_a_bundle_that_is_another(noetlvm: Command, tmp_path: Path) -> None:
    noetlvm("run", "counting.yaml", "-q")
    assert "events fold to what is recorded and are decided again: success" in noetlvm("replay").out
    compile = [sys.executable, "-m", "noetlc", "compile", str(tmp_path / "failing.yaml"), "-o", "other.nbc"]
    subprocess.run(compile, check=True, cwd=tmp_path, env={"PYTHONPATH": str(ROOT)})
    answer = noetlvm("replay", "--bundle", "other.nbc")
    assert answer.code == 1
    assert "it was recorded with the bundle" in answer.err
    assert "the bundle has no playbook `counting`" in answer.err


def test_replay_with_an_edited_playbook_shows_where_it_would_have_gone_another_way(
    noetlvm: Command, tmp_path: Path
) -> None:
    noetlvm("run", "counting.yaml", "-q")
    (tmp_path / "edited.yaml").write_text(COUNTING.replace("total: sum", "total: max"))
    answer = noetlvm("replay", "--bundle", "edited.yaml")
    assert answer.code == 1
    assert "is decided differently at edited.yaml:" in answer.err
    assert 'recorded: ctx.patched of run 1 {"patch": {"total": 6}}' in answer.err
    assert 'decided:  ctx.patched of run 1 {"patch": {"total": 3}}' in answer.err
    (difference,) = noetlvm("replay", "--bundle", "edited.yaml", "--json").data["differences"]
    assert difference["expected"]["data"] == {"patch": {"total": 6}}
    assert noetlvm("events", "--json").out.splitlines()[difference["seq"] - 1].count("ctx.patched") == 1


CALLS = """apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: calls, path: t/calls }
workflow:
  - step: start
    tool:
      - add: { kind: python, args: { n: 3 }, code: result = n + 1 }
    next: { arcs: [{ step: after, when: "{{ event.name == 'step.done' }}" }] }
  - step: after
    tool: { kind: noop }
"""


def test_replay_stops_at_a_call_with_inputs_that_the_log_does_not_have(
    noetlvm: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "calls.yaml").write_text(CALLS)
    (tmp_path / "edited.yaml").write_text(CALLS.replace("n: 3", "n: 4"))
    assert noetlvm("run", "calls.yaml", "--quiet").code == 0
    answer = noetlvm("replay", "--bundle", "edited.yaml")
    assert answer.code == 1
    assert (
        "`add` of `start` calls `python`, attempt 1: the log has the outcome of a call with other inputs" in answer.err
    )
    assert 'recorded: task.started of run 1 {"inputs": {"args": {"n": 3}}}' in answer.err  # the code is the same
    monkeypatch.setenv("NOETLVM_INPUTS", "off")
    assert noetlvm("run", "calls.yaml", "--quiet").code == 0
    assert noetlvm("replay", "--bundle", "edited.yaml").code == 0


def test_replay_with_an_edit_that_matters_to_nobody_is_the_same(noetlvm: Command, tmp_path: Path) -> None:
    noetlvm("run", "counting.yaml", "-q")
    (tmp_path / "edited.yaml").write_text(COUNTING.replace("iter.item + workload.bonus", "workload.bonus + iter.item"))
    answer = noetlvm("replay", "--bundle", "edited.yaml", "--json")
    assert (answer.code, answer.data["differences"]) == (0, [])
    assert answer.data["recorded_with"] != answer.data["decided_with"]


def test_a_number_that_is_none_is_null_in_json_and_replays(noetlvm: Command, tmp_path: Path) -> None:
    text = FAILING.replace("do: fail", 'do: continue, set_ctx: { a: "{{ [1e999, 1e999 - 1e999, 1] }}" }')
    (tmp_path / "numbers.yaml").write_text(text)
    assert noetlvm("run", "numbers.yaml", "--json").data["ctx"] == {"a": [None, None, 1]}
    assert noetlvm("replay").code == 0


def test_what_has_ended_cannot_be_cancelled(noetlvm: Command) -> None:
    id = str(noetlvm("run", "counting.yaml", "--json").data["execution_id"])
    answer = noetlvm("cancel", id)
    assert (answer.code, "has ended as success" in answer.err) == (2, True)


def test_there_may_be_nothing_to_resume(noetlvm: Command) -> None:
    noetlvm("run", "counting.yaml", "-q")
    answer = noetlvm("resume")
    assert (answer.code, answer.out) == (0, "")
    assert "nothing is unfinished" in answer.err


@pytest.mark.parametrize("command", ["run", "resume", "list", "show", "events", "ctx", "replay", "cancel", "pause"])
def test_every_command_has_help_with_an_example(noetlvm: Command, command: str) -> None:
    answer = noetlvm(command, "--help")
    assert answer.code == 0
    assert f"noetlvm {command}" in answer.out.replace("\n", " ")
    assert "Example" in answer.out


def refused_log(noetlvm: Command) -> list[dict[str, Any]]:
    log = [json.loads(line) for line in noetlvm("events", "--json", "--db", "x.db").out.splitlines()]
    names = ["playbook.execution.requested", "playbook.request.evaluated", "playbook.processed"]
    assert [event["name"] for event in log] == names
    assert log[0]["data"]["payload"] == {}
    return log


def test_a_playbook_with_errors_leaves_them_in_the_log(noetlvm: Command, tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text(COUNTING.replace("sum", "sums") + "  - step: start\n    tool: { kind: noop }\n")
    answer = noetlvm("run", "bad.yaml", "--db", "x.db")
    assert answer.code == 2
    error = refused_log(noetlvm)[1]["data"]["error"]
    assert error["kind"] == "validation"
    assert error["message"].startswith("bad.yaml:")
    assert {found["code"] for found in error["details"]["findings"]} == {"P021", "P101"}
    assert error["details"]["count"] == 2
    assert "P021" in noetlvm("show", "--db", "x.db").out
    for command in ("list", "ctx", "fsck"):
        assert noetlvm(command, "--db", "x.db").code == 0, command
    assert "was refused before it had a bundle" in noetlvm("replay", "--db", "x.db").err


def test_a_bundle_that_is_none_and_a_request_too_large_to_record_leave_a_log(noetlvm: Command, tmp_path: Path) -> None:
    (tmp_path / "no.nbc").write_bytes(b"nothing")
    assert noetlvm("run", "no.nbc", "--db", "x.db").code == 2
    assert "M001" in refused_log(noetlvm)[1]["data"]["error"]["message"]
    (tmp_path / "good.yaml").write_text(COUNTING)
    (tmp_path / "large.json").write_text(json.dumps({f"key_{number}": "x" * 90 for number in range(3_000)}))
    answer = noetlvm("run", "good.yaml", "--payload", "large.json", "--db", "x.db")
    assert answer.code == 2
    assert "the request cannot be recorded" in refused_log(noetlvm)[1]["data"]["error"]["message"]


def test_a_refusal_that_cannot_be_recorded_is_still_explained(noetlvm: Command, tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text(COUNTING.replace("sum", "sums"))
    (tmp_path / "other").mkdir()
    answer = noetlvm("run", "bad.yaml", "--db", "other")
    assert answer.code == 2
    assert "P021" in answer.err
    assert "the refusal is not recorded" in answer.err
