"""Script files with a literal address are in the bundle; the others are read when the task runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from noetlc.session import Session
from noetlvm import bridge

HEAD = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: a, path: a}\nworkload: {file: count.py}\n"


def compiled(folder: Path, script: str) -> bytes:
    (folder / "flows").mkdir(exist_ok=True)
    playbook = folder / "flows" / "a.yaml"
    playbook.write_text(f"{HEAD}workflow:\n  - step: start\n    tool: {{kind: python, script: {script}}}\n")
    return bridge.compile_playbooks([str(playbook)], quiet=True)


@pytest.mark.parametrize(
    "script", ["{uri: ./count.py}", "{uri: count.py, source: {type: file}}", "{uri: count.py, source: file}"]
)
def test_a_file_beside_the_playbook_is_in_the_bundle(tmp_path: Path, script: str) -> None:
    (tmp_path / "flows").mkdir()
    (tmp_path / "flows" / "count.py").write_text("result = {'sum': 1 + 1}  # {{ no template }}\n")
    assert b"{{ no template }}" in compiled(tmp_path, script)


@pytest.mark.parametrize("script", ["{uri: absent.py}", "{uri: 'https://127.0.0.1/x.py'}", "{uri: 'gs://b/x.py'}"])
def test_what_cannot_be_read_here_is_left_to_the_worker(tmp_path: Path, script: str) -> None:
    assert b"uri" in compiled(tmp_path, script)


def test_an_address_that_is_a_template_is_left_to_the_worker(tmp_path: Path) -> None:
    (tmp_path / "flows").mkdir()
    (tmp_path / "flows" / "count.py").write_text("result = 'secret sauce'\n")
    assert b"secret sauce" not in compiled(tmp_path, "{uri: '{{ workload.file }}'}")


def test_a_text_without_files_around_it_reads_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "count.py").write_text("result = 'secret sauce'\n")
    text = f"{HEAD}workflow:\n  - step: start\n    tool: {{kind: python, script: {{uri: count.py}}}}\n"
    assert b"secret sauce" not in bridge.compile_texts([text])
    Path("a.yaml").write_text(text)
    assert b"secret sauce" in Session(["a.yaml"]).compile().data
