"""The call paths in docs/architecture.md pass through the files that it names, and through as many as it says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NOOP = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: noop, path: demo/noop }
workflow:
  - step: start
    tool: { kind: noop }
"""
PATHS = {
    "YAML to finding": ("noetlc", "lint", "{folder}/hello.yaml", "--no-cache"),
    "YAML to bundle": ("noetlc", "compile", "examples/hello.yaml", "-o", "{folder}/hello.nbc"),
    "Bundle to finished execution": ("noetlvm", "run", "{folder}/noop.yaml", "--db", "{folder}/runs.db"),
}
MORE = 2
"""Files by which a count may be out: it depends a little on the version of Python."""


@pytest.mark.parametrize("path", PATHS)
def test_a_call_path_is_as_the_page_shows_it(path: str, tmp_path: Path) -> None:
    words = [word.format(folder=tmp_path) for word in PATHS[path]]
    hello = (ROOT / "examples" / "hello.yaml").read_text(encoding="utf-8")
    (tmp_path / "hello.yaml").write_text(hello.replace("workload.name", "workload.nam"), encoding="utf-8")
    if path.startswith("Bundle"):
        (tmp_path / "noop.yaml").write_text(NOOP, encoding="utf-8")
        bundle = str(tmp_path / "noop.nbc")
        subprocess.run([sys.executable, "-m", "noetlc", "compile", words[2], "-o", bundle], check=True, cwd=ROOT)
        words[2] = bundle
    program = [sys.executable, "-m", "bench.files_called", *words]
    *called, count = subprocess.run(program, capture_output=True, text=True, check=False, cwd=ROOT).stdout.splitlines()
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    shown = re.search(rf"\*\*{path}: (\d+) files.*?\n\n(.*?)\n\n", page, re.DOTALL)
    assert shown
    assert abs(int(shown[1]) - int(count.split()[0])) <= MORE
    named = set(re.findall(r"\b((?:[a-z_]+/)+[a-z_]+)", shown[2]))
    missing = {name for name in named if not any(f"{name}.py" in (file, file.partition("/")[2]) for file in called)}
    assert missing == set()
