"""Every example runs on a machine without a network, against the bundled server where it needs one."""

from __future__ import annotations

import os
import runpy
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.commands import Command

EXAMPLES = Path(__file__).parents[3] / "examples"

CTX: dict[str, dict[str, Any]] = {
    "hello": {},
    "pagination": {"items": 300, "pages": 7, "amount": 14_850},
    "storage_routing": {"stored": ["report.csv", "prices.csv"], "missing": ["missing.csv", "missing-too.csv"]},
    "nested_loops": {"rooms": 9},
    "csv_to_parquet": {"best": "Paris"},
    "retry": {"answer": 42, "attempts": 3},
    "sub_playbook": {"total": 720},
    "invoice": {"amount": 90},
    "orders": {"paid": 412},
    "sugar": {},
    "workbook": {},
    "reducers": {
        "sensors": ["north", "south", "east"],
        "readings": 3,
        "highest": 9,
        "lowest": 1,
        "total": 44,
        "values": [3, 9, 4, 7, 1, 5, 5, 2, 8],
    },
}
RESULTS: dict[str, Any] = {
    "hello": "hello, world",
    "pagination": "300 items on 7 pages, worth 14850",
    "nested_loops": "9 rooms",
    "csv_to_parquet": "Paris sells most",
    "retry": "42, after 3 attempts",
    "reducers": "3 of ['north', 'south', 'east']: 9 values from 1 to 9, 44 in all",
    "storage_routing": "2 stored, 2 missing",
    "sub_playbook": "720 in all",
    "invoice": "nobody owes 90",
    "workbook": "audit - checked",
    "orders": {"stdout": "412 were paid\n", "stderr": "", "exit_code": 0},
}
WITH = {"sub_playbook": ["examples/invoice.yaml"]}


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    running = runpy.run_path(str(EXAMPLES / "server.py"))["start"]()
    yield f"http://127.0.0.1:{running.server_port}"
    running.shutdown()
    running.server_close()


def test_every_example_is_run_here() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.yaml")} - {"mistakes", "orders_draft"} == set(CTX)


@pytest.mark.parametrize("name", CTX)
def test_an_example_runs(name: str, server: str, noetlvm: Command, tmp_path: Path) -> None:
    shutil.copytree(EXAMPLES, tmp_path / "examples")
    files = [f"examples/{name}.yaml", *WITH.get(name, [])]
    answer = noetlvm("run", *files, "--set", f"api_url={server}", "--json")
    assert (answer.data["status"], answer.data["failures"], answer.code) == ("success", [], 0)
    assert answer.data["ctx"] == CTX[name]
    if name in RESULTS:
        assert answer.data["result"] == RESULTS[name]


@pytest.mark.parametrize("name", CTX)
def test_the_command_in_the_header_of_an_example_runs_it(name: str, tmp_path: Path) -> None:
    shutil.copytree(EXAMPLES, tmp_path / "examples")
    header = (EXAMPLES / f"{name}.yaml").read_text().partition("apiVersion")[0]
    command = header.partition("Run it: ")[2].strip()
    for program, words in (("python", ""), ("noetlvm", "-m noetlvm")):
        script = tmp_path / "bin" / program
        script.parent.mkdir(exist_ok=True)
        script.write_text(f'#!/bin/sh\nexec {sys.executable} {words} "$@"\n')
        script.chmod(0o755)
    environment = {**os.environ, "PYTHONPATH": str(EXAMPLES.parent), "NOETLVM_DB": str(tmp_path / "runs.db")}
    environment["PATH"] = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    done = subprocess.run(["sh", "-c", command], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert f"{name}: success" in done.stdout
