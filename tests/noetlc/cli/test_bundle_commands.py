"""`compile` and the commands that look into what it makes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from noetlvm.bytecode.codec.container import bundle_id
from tests.commands import Answer

Run = Callable[..., Answer]

PLAYBOOK = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: flow, path: tests/flow }
keychain:
  - { name: api, kind: bearer_token }
workload: { url: https://example.com, rows: [1] }
workflow:
  - step: start
    loop: { in: "{{ workload.rows }}", iterator: row }
    tool:
      - fetch: { kind: http, url: "{{ workload.url }}/{{ iter.row }}", auth: api }
      - choose:
          - when: "{{ _prev.status == 200 }}"
            then:
              - keep: { kind: noop }
    next:
      arcs:
        - { step: child, when: "{{ event.name == 'loop.done' }}" }
  - step: child
    tool: { kind: playbook, path: tests/child }
"""
CHILD = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: child, path: tests/child }
workflow:
  - step: start
    tool: { kind: noop }
"""
BROKEN = CHILD.replace("tool: { kind: noop }", "next: { arcs: [{ step: nowhere }] }")


@pytest.fixture
def bundle(noetlc: Run, tmp_path: Path) -> Path:
    """Compile both playbooks."""
    (tmp_path / "flow.yaml").write_text(PLAYBOOK, encoding="utf-8")
    (tmp_path / "child.yaml").write_text(CHILD, encoding="utf-8")
    assert noetlc("compile", "flow.yaml", "child.yaml", "-q") == Answer(0, "", "")
    return tmp_path / "flow.nbc"


# ---- compile


def test_compile_writes_a_bundle_beside_the_first_file_and_says_so(noetlc: Run, tmp_path: Path) -> None:
    (tmp_path / "child.yaml").write_text(CHILD, encoding="utf-8")
    answer = noetlc("compile", "child.yaml")
    data = (tmp_path / "child.nbc").read_bytes()
    assert answer == Answer(0, "", f"noetlc: child.nbc: 1 step, {len(data)} bytes, id {bundle_id(data)[:16]}\n")


def test_errors_are_reported_as_lint_reports_them_and_nothing_is_written(noetlc: Run, tmp_path: Path) -> None:
    (tmp_path / "broken.yaml").write_text(BROKEN, encoding="utf-8")
    answer = noetlc("compile", "broken.yaml")
    assert answer.code == 1
    assert "error[P102]" in answer.err
    assert not (tmp_path / "broken.nbc").exists()


def test_warnings_stop_it_only_if_requested(noetlc: Run, tmp_path: Path) -> None:
    (tmp_path / "idle.yaml").write_text(CHILD.replace("    tool: { kind: noop }\n", ""), encoding="utf-8")
    assert noetlc("compile", "idle.yaml", "--werror").code == 1
    assert not (tmp_path / "idle.nbc").exists()
    answer = noetlc("compile", "idle.yaml")
    assert answer.code == 0
    assert "warning[P401]" in answer.err


def test_warnings_that_the_configuration_ignores_are_not_reported(noetlc: Run, tmp_path: Path) -> None:
    (tmp_path / "noetlc.toml").write_text('ignore = ["P401"]\n', encoding="utf-8")
    (tmp_path / "idle.yaml").write_text(CHILD.replace("    tool: { kind: noop }\n", ""), encoding="utf-8")
    answer = noetlc("compile", "idle.yaml", "--werror", "-q")
    assert answer == Answer(0, "", "")


def test_strip_leaves_out_the_debug_map_and_keeps_the_id(noetlc: Run, bundle: Path, tmp_path: Path) -> None:
    assert noetlc("compile", "flow.yaml", "child.yaml", "--strip", "-q", "-o", "small.nbc").code == 0
    small = (tmp_path / "small.nbc").read_bytes()
    assert len(small) < len(bundle.read_bytes())
    assert bundle_id(small) == bundle_id(bundle.read_bytes())


def test_emit_asm_prints_what_disasm_prints(noetlc: Run, bundle: Path) -> None:
    printed = noetlc("compile", "flow.yaml", "child.yaml", "--emit", "asm").out
    assert printed == noetlc("disasm", bundle.name).out
    assert 'ENTER "fetch"' in printed


def test_emit_canon_prints_yaml_that_compiles_to_the_same_bundle(noetlc: Run, tmp_path: Path) -> None:
    (tmp_path / "flow.yaml").write_text(PLAYBOOK, encoding="utf-8")
    noetlc("compile", "flow.yaml", "-q")
    canonical = noetlc("compile", "flow.yaml", "--emit", "canon", "-q").out
    assert "choose_1.when_1" in canonical
    assert noetlc("compile", "-", "-o", "canonical.nbc", "-q", stdin=canonical.encode()).code == 0
    ids = {bundle_id((tmp_path / name).read_bytes()) for name in ("flow.nbc", "canonical.nbc")}
    assert len(ids) == 1


def test_emit_json_prints_the_program_as_data(noetlc: Run, bundle: Path) -> None:
    data = json.loads(noetlc("compile", "flow.yaml", "child.yaml", "--emit", "json").out)
    assert data["id"] == bundle_id(bundle.read_bytes())
    step = data["playbooks"][0]["steps"][0]
    assert step["name"] == "start"
    assert step["pipeline"]["code"][0] == ["ENTER", "fetch"]
    assert step["loops"][0]["collection"][:2] == [["NAME", "workload"], ["ATTR", "rows"]]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("absent.yaml",), "cannot read absent.yaml"),
        (("flow.yaml", "--emit", "elf"), "'elf' is not one of 'nbc', 'asm', 'canon', 'json'"),
        (("-",), "needs a file"),
        (("-", "flow.yaml"), "cannot be combined"),
        (("flow.yaml", "child.yaml", "-o", "no/such/folder.nbc"), "cannot write"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_sentence(
    noetlc: Run, bundle: Path, arguments: tuple[str, ...], why: str
) -> None:
    answer = noetlc("compile", *arguments, "-q")
    assert answer.code == 2
    assert why in answer.err


# ---- disasm and asm


def test_asm_turns_the_text_back_into_the_same_bytes(noetlc: Run, bundle: Path, tmp_path: Path) -> None:
    assert noetlc("disasm", bundle.name, "-o", "flow.nasm") == Answer(0, "", "")
    assert noetlc("asm", "flow.nasm", "-o", "again.nbc") == Answer(0, "", "")
    assert (tmp_path / "again.nbc").read_bytes() == bundle.read_bytes()


def test_asm_says_where_the_text_is_wrong(noetlc: Run, bundle: Path) -> None:
    text = noetlc("disasm", bundle.name).out.replace("ENTER", "ENTRE", 1)
    answer = noetlc("asm", "-", "-o", "again.nbc", stdin=text.encode())
    line = text[: text.index("ENTRE")].count("\n") + 1
    assert answer.code == 1
    assert answer.err.startswith(f"-:{line}:")


def test_asm_writes_what_is_invalid_only_if_requested(noetlc: Run, bundle: Path, tmp_path: Path) -> None:
    text = noetlc("disasm", bundle.name).out.replace('.entry "start"', '.entry "nowhere"', 1).encode()
    answer = noetlc("asm", "-", "-o", "bad.nbc", stdin=text)
    assert answer.code == 1
    assert "invalid bundle: V077" in answer.err
    assert not (tmp_path / "bad.nbc").exists()
    assert noetlc("asm", "-", "-o", "bad.nbc", "--unverified", stdin=text).code == 0
    assert noetlc("verify", "bad.nbc").code == 1


# ---- verify


def test_verify_distinguishes_good_from_malformed_and_invalid(noetlc: Run, bundle: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.nbc").write_bytes(b"PK")
    good = noetlc("verify", bundle.name)
    assert good == Answer(0, f"flow.nbc: valid, id {bundle_id(bundle.read_bytes())}\n", "")
    both = noetlc("verify", bundle.name, "bad.nbc", "--json")
    first, second = json.loads(both.out)
    assert both.code == 1
    assert (first["ok"], first["error"]) == (True, None)
    assert (second["ok"], second["error"]["kind"], second["error"]["code"]) == (False, "malformed", "M001")
    assert noetlc("verify", "bad.nbc").err.startswith("bad.nbc: malformed bundle: M001")
    assert noetlc("verify", "absent.nbc").code == 2


# ---- inspect


def test_inspect_sums_up_steps_tools_secrets_and_sizes(noetlc: Run, bundle: Path) -> None:
    summary = json.loads(noetlc("inspect", bundle.name, "--json").out)
    main, child = summary["playbooks"]
    assert summary["bytes"] == len(bundle.read_bytes())
    assert sum(summary["sections"].values()) < summary["bytes"]
    assert [step["name"] for step in main["steps"]] == ["start", "child"]
    assert main["steps"][0]["tasks"] == [{"label": "fetch", "kind": "http"}, {"label": "keep", "kind": "noop"}]
    assert main["tools"] == {"http": 1, "noop": 1, "playbook": 1}
    assert main["secrets"] == [{"name": "api", "kind": "bearer_token", "steps": ["start"]}]
    assert main["children"] == ["tests/child"]
    assert child["path"] == "tests/child"


def test_inspect_prints_a_table(noetlc: Run, bundle: Path) -> None:
    lines = noetlc("inspect", bundle.name).out.splitlines()
    assert "  secrets     api (bearer_token, used by start)" in lines
    assert "  start  row    fetch: http, keep: noop  child" in lines


# ---- where


@pytest.mark.parametrize(
    ("wanted", "line"),
    [
        ("start", "flow.yaml:8:11: step (start)"),
        ("start/fetch", "flow.yaml:11:9: task fetch (start/fetch)"),
        ("keep", "flow.yaml:15:17: task keep (start/keep)"),
        ("start/choose_1.when_1", "flow.yaml:13:13: choose (start/choose_1.when_1)"),
        ("start/choose_1.end", "flow.yaml:12:9: choose (start/choose_1.end)"),
        ("start/arc.1/when", "flow.yaml:18:36: arc (start/arc.1/when)"),
        ("tests/child#start", "child.yaml:5:11: step (tests/child#start)"),
    ],
)
def test_where_leads_from_code_to_the_line(noetlc: Run, bundle: Path, wanted: str, line: str) -> None:
    assert noetlc("where", bundle.name, wanted).out == f"{line}\n"


def test_where_leads_from_a_line_to_its_code(noetlc: Run, bundle: Path) -> None:
    found = json.loads(noetlc("where", bundle.name, "flow.yaml:18", "--json").out)
    assert [one["address"] for one in found] == ["start/arc.1", "start/arc.1/when"]


def test_where_suggests_a_name_that_exists(noetlc: Run, bundle: Path) -> None:
    answer = noetlc("where", bundle.name, "start/fetsh")
    assert answer.code == 1
    assert "Did you mean `start/fetch`?" in answer.err


def test_where_needs_the_debug_map(noetlc: Run, bundle: Path) -> None:
    assert noetlc("strip", bundle.name) == Answer(0, "", "")
    answer = noetlc("where", bundle.name, "start")
    assert answer.code == 2
    assert "stripped" in answer.err


# ---- strip


def test_strip_works_in_place_and_keeps_the_id(noetlc: Run, bundle: Path) -> None:
    before = bundle.read_bytes()
    assert noetlc("strip", bundle.name) == Answer(0, "", "")
    assert len(bundle.read_bytes()) < len(before)
    assert bundle_id(bundle.read_bytes()) == bundle_id(before)


@pytest.mark.parametrize("command", ["disasm", "inspect", "strip"])
def test_a_file_that_is_no_bundle_is_refused(noetlc: Run, tmp_path: Path, command: str) -> None:
    (tmp_path / "x.nbc").write_bytes(b"kind: Playbook\n")
    answer = noetlc(command, "x.nbc")
    assert answer.code == 2
    assert "x.nbc: malformed bundle: M001" in answer.err


@pytest.mark.parametrize("command", ["compile", "disasm", "asm", "verify", "inspect", "where", "strip"])
def test_help_shows_examples_and_exit_codes(noetlc: Run, command: str) -> None:
    printed = noetlc(command, "--help").out
    assert f"noetlc {command}" in printed
    assert "Exit codes:" in printed
