"""The compiler as a whole: what it refuses, what it promises of its bytes, and how playbooks go together."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from noetlc.assembly.assembler import assemble
from noetlc.assembly.disassembler import disassemble
from noetlc.compile import Compiled, compile_playbooks, file_names
from noetlc.rules.catalogue import whole_playbook
from noetlc.syntax.playbook_printer import print_playbook
from noetlvm.bytecode.codec.container import bundle_id, strip
from noetlvm.bytecode.codec.encoder import encode
from noetlvm.bytecode.program import Program

ROOT = Path(__file__).parents[3]
PLAYBOOKS = sorted([*(ROOT / "examples").glob("*.yaml"), *(ROOT / "conformance").glob("[cl]*/*.yaml")])


def compiled(*texts: str) -> Compiled:
    return compile_playbooks([(f"file_{n}.yaml", whole_playbook(text).encode()) for n, text in enumerate(texts)])


def program(*texts: str) -> Program:
    made = compiled(*texts)
    assert made.program is not None, [finding.message for file in made.files for finding in file.findings]
    return made.program


def codes(made: Compiled) -> list[str]:
    return [finding.code for file in made.files for finding in file.findings]


def called(path: str, *, child: str = "") -> str:
    """Return a playbook of that path which runs `child`."""
    tool = f"    tool: {{ kind: playbook, path: {child} }}\n" if child else "    tool: { kind: noop }\n"
    head = f"apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {{ name: n, path: {path} }}\n"
    return f"{head}workflow:\n  - step: start\n{tool}"


STEPS = """\
- step: start
  tool:
    - fetch: { kind: http, url: "https://example.com/{{ workload.page }}" }
  next: { arcs: [{ step: last, when: "{{ event.name == 'step.done' }}" }] }
- step: last
  tool:
    - while:
        when: "{{ ctx.n < 3 }}"
        do:
          - count:
              kind: noop
              spec: { policy: { rules: [{ else: { then: { do: continue, set_ctx: { n: 1 } } } }] } }
"""

# ---- what it refuses


def test_an_error_that_lint_finds_stops_it() -> None:
    made = compiled("- step: start\n  next: { arcs: [{ step: nowhere }] }\n")
    assert made.program is None
    assert made.data == b""
    assert "P102" in codes(made)


def test_an_error_stops_it_even_where_a_comment_silences_it() -> None:
    made = compiled("- step: start\n  next: { arcs: [{ step: nowhere }] }  # noetlc: ignore[P102]\n")
    assert made.program is None
    assert "P102" in codes(made)


def test_a_warning_does_not_stop_it() -> None:
    made = compiled("- step: start\n")
    assert codes(made) == ["P401"]
    assert made.program is not None


def test_what_has_no_code_is_an_error_at_its_place() -> None:
    text = '- step: start\n  tool: [{ while: { when: "{{ ctx.x }}", max: -1, do: [{ kind: noop }] } }]\n'
    made = compiled(text)
    assert made.program is None
    (finding,) = [finding for finding in made.files[0].findings if finding.code == "P319"]
    assert made.files[0].source.text[finding.span.start :].startswith("-1,")


def test_what_a_bundle_cannot_hold_is_an_error() -> None:
    made = compiled(f'- step: start\n  tool: {{ kind: noop, x: "{{{{ 1{"0" * 2_000} }}}}" }}\n')
    assert made.program is None
    assert codes(made) == ["C004"]


@pytest.mark.long
def test_data_that_a_bundle_has_no_room_for_is_an_error() -> None:
    made = compiled("- step: start\n  tool: { kind: noop }\nworkload: { many: [" + "1," * 700_000 + "1] }\n")
    assert made.program is None
    assert codes(made) == ["C004"]


def test_a_choose_without_branches_does_nothing() -> None:
    assert compiled("- step: start\n  tool: [{ choose: [] }]\n").program is not None


# ---- several playbooks


def test_the_first_playbook_is_the_main_one_and_the_others_go_by_path() -> None:
    made = program(called("main", child="b"), called("z"), called("b", child="z"))
    assert [playbook.path for playbook in made.playbooks] == ["main", "b", "z"]
    assert made.debug is not None
    assert made.debug.files == ("file_0.yaml", "file_2.yaml", "file_1.yaml")
    assert [entry.address for entry in made.debug.entries if entry.construct == "step"] == [
        "start",
        "b#start",
        "z#start",
    ]


def test_the_order_of_the_other_files_makes_no_difference() -> None:
    main, one, two = called("main", child="b"), called("b"), called("z")
    first = compile_playbooks([(name, text.encode()) for name, text in [("m", main), ("1", one), ("2", two)]])
    second = compile_playbooks([(name, text.encode()) for name, text in [("m", main), ("2", two), ("1", one)]])
    assert first.data == second.data


def test_two_playbooks_of_one_path_are_an_error() -> None:
    made = compiled(called("a"), called("a"))
    assert made.program is None
    assert codes(made) == ["C002"]


def test_a_child_that_is_not_among_the_files_is_left_to_the_catalogue() -> None:
    assert codes(compiled(called("a", child="billing/invoice"))) == ["C003"]
    assert codes(compiled(called("a", child="b"), called("b"))) == []


@pytest.mark.parametrize(("step", "found"), [("start", []), ("strat", ["C005"]), ('"{{ 1 }}"', [])])
def test_a_step_to_return_must_be_one_of_the_child(step: str, found: list[str]) -> None:
    parent = called("a", child="b").replace("path: b", f"path: b, return_step: {step}")
    assert f"return_step: {step}" in parent
    assert codes(compiled(parent, called("b"))) == found


# ---- what it promises of its bytes


@pytest.mark.parametrize("file", PLAYBOOKS, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_what_lints_without_errors_compiles_and_so_does_its_canonical_form_to_the_same_id(file: Path) -> None:
    made = compile_playbooks([(file.name, file.read_bytes())])
    if made.program is None:
        assert any(finding.severity == "error" for finding in made.files[0].findings)
        return
    assert encode(assemble(disassemble(made.program))) == made.data
    canonical = print_playbook(made.canonical[0].playbook)
    again = compile_playbooks([("canonical.yaml", canonical.encode())])
    assert bundle_id(again.data) == bundle_id(made.data)


def test_the_same_bytes_in_every_process_hash_seed_and_folder(tmp_path: Path) -> None:
    file = tmp_path / "flow.yaml"
    file.write_text(whole_playbook(STEPS), encoding="utf-8")
    script = (
        "import sys; from pathlib import Path; from noetlc.compile import compile_playbooks;"
        "path = sys.argv[1];"
        "sys.stdout.buffer.write(compile_playbooks([(path, Path(path).read_bytes())]).data)"
    )
    ways = [("1", tmp_path, "flow.yaml"), ("2", ROOT, str(file)), ("3", tmp_path.parent, f"{tmp_path.name}/flow.yaml")]
    made = {
        subprocess.run(
            [sys.executable, "-c", script, path],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed, folder, path in ways
    }
    assert len(made) == 1
    assert made != {b""}


def test_a_comment_or_moved_lines_change_only_the_debug_section() -> None:
    plain = compiled(STEPS)
    text = (
        whole_playbook(STEPS)
        .replace("workflow:", "# a remark\n\nworkflow:")
        .replace("kind: noop", "kind:   noop # why")
    )
    moved = compile_playbooks([("file_0.yaml", text.encode())])
    assert moved.data != plain.data
    assert strip(moved.data) == strip(plain.data)
    assert bundle_id(moved.data) == bundle_id(plain.data)


def test_stripping_keeps_the_id() -> None:
    data = compiled(STEPS).data
    assert len(strip(data)) < len(data)
    assert bundle_id(strip(data)) == bundle_id(data)


def blocks(made: Program) -> dict[str, str]:
    """Return the text of each step, without source lines."""
    parts = re.split(r'(?m)^(?=\.step ")', disassemble(made, source_lines=False))[1:]
    return {part.split('"')[1]: part.rstrip("\n") for part in parts}


@pytest.mark.parametrize(
    "edited",
    [
        STEPS.replace("https://example.com/", "https://example.com/v2/"),
        STEPS.replace("    - fetch:", "    - before: { kind: noop }\n    - fetch:"),
        STEPS.replace("    - fetch:", '    - choose: [{ when: "{{ ctx.n }}", then: [] }]\n    - fetch:'),
        "- step: new\n  tool: { kind: noop }\n" + STEPS,
        STEPS.replace("- step: last", "- step: between\n  tool: { kind: noop }\n- step: last"),
    ],
)  # fmt: skip
def test_editing_one_step_changes_no_other_steps_code_or_labels(edited: str) -> None:
    assert blocks(program(edited))["last"] == blocks(program(STEPS))["last"]


def test_every_instruction_has_a_line_inside_its_step() -> None:
    made = compiled(STEPS)
    text = made.files[0].source.text
    last = text[: text.index("- step: last")].count("\n") + 1
    assert made.program is not None
    assert made.program.debug is not None
    for entry in made.program.debug.entries:
        is_last = entry.address.startswith("last")
        assert all((mark.line >= last) == is_last for mark in entry.marks), entry.address


def test_generated_labels_lead_to_what_the_author_wrote() -> None:
    debug = program(STEPS).debug
    assert debug is not None
    assert "while" in {entry.construct for entry in debug.entries}


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["flows/etl.yaml"], ["etl.yaml"]),
        (["flows/etl.yaml", "flows/load.yaml"], ["etl.yaml", "load.yaml"]),
        (["flows/etl.yaml", "flows/parts/load.yaml"], ["etl.yaml", "parts/load.yaml"]),
        (["a/x.yaml", "b/x.yaml"], ["a/x.yaml", "b/x.yaml"]),
    ],
)
def test_files_are_called_by_their_place_below_the_folder_that_holds_them_all(
    paths: list[str], names: list[str]
) -> None:
    assert file_names(paths) == names
