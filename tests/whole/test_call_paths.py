"""The call paths of docs/architecture.md: the functions that they name are called, in that order."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PATHS = {
    "YAML to finding": ("noetlc", "lint", "{folder}/hello.yaml", "--no-cache"),
    "YAML to bundle": ("noetlc", "compile", "{folder}/noop.yaml", "-o", "{folder}/noop.nbc"),
    "Bundle to finished execution": ("noetlvm", "run", "{folder}/noop.nbc", "--db", "{folder}/runs.db"),
}
"""By heading: the command."""
NOOP = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: noop, path: demo/noop }
workflow:
  - step: start
    tool: { kind: noop }
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the files of the commands; the second makes the bundle of the third."""
    made = tmp_path_factory.mktemp("paths")
    hello = (ROOT / "examples" / "hello.yaml").read_text(encoding="utf-8")
    (made / "hello.yaml").write_text(hello.replace("workload.name", "workload.nam"), encoding="utf-8")
    (made / "noop.yaml").write_text(NOOP, encoding="utf-8")
    compiled = [sys.executable, "-m", "noetlc", "compile", "noop.yaml", "-o", "noop.nbc"]
    subprocess.run(compiled, check=True, cwd=made, env={"PYTHONPATH": str(ROOT)})
    return made


def named(heading: str) -> list[str]:
    """Return the functions and classes of a call path; what stands behind two spaces is explanation."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    shown = re.search(rf"\*\*{heading}\.\*\*.*?\n\n(.*?)\n\n", page, re.DOTALL)
    assert shown
    calls = " ".join(line.strip().partition("  ")[0] for line in shown[1].splitlines())
    return re.findall(r"(?:\w+/)*\w+\.[\w.]*\w", calls)


def first_calls(names: list[str], called: list[str]) -> Iterator[int | None]:
    """Yield, for each name, which call is its first; None where it is never called."""
    for name in names:
        its = re.compile(rf"noetl(?:c|vm)/{re.escape(name)}(?:\.|$)")
        yield next((number for number, one in enumerate(called) if its.match(one)), None)


@pytest.mark.parametrize("heading", PATHS)
def test_functions_of_a_call_path_are_called_in_the_order_of_the_page(heading: str, folder: Path) -> None:
    words = [word.format(folder=folder) for word in PATHS[heading]]
    program = [sys.executable, "-m", "tests.whole.calls", *words]
    called = subprocess.run(program, capture_output=True, text=True, check=False, cwd=ROOT).stdout.splitlines()
    names = named(heading)
    assert len(names) > 8
    firsts = list(first_calls(names, called))
    assert [name for name, first in zip(names, firsts, strict=True) if first is None] == [], "never called"
    assert names == [name for _, name in sorted(zip(firsts, names, strict=True), key=lambda pair: pair[0] or 0)]
