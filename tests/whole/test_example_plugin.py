"""The example plugin, found through its entry points as an installed package would be."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

PLUGIN = Path(__file__).parents[2] / "examples" / "plugins" / "noetl_quantum"


@pytest.fixture
def installed(tmp_path: Path) -> list[str]:
    """Write the metadata that installing the package writes, and return the path to import from."""
    project = tomllib.loads((PLUGIN / "pyproject.toml").read_text())["project"]
    folder = tmp_path / "site" / "noetl_quantum-0.1.0.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    groups = project["entry-points"].items()
    lines = [
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in found.items()) for group, found in groups
    ]
    (folder / "entry_points.txt").write_text("\n".join(lines))
    return [str(tmp_path / "site"), str(PLUGIN / "src")]


def command(program: str, installed: list[str], folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", program, *arguments],
        cwd=folder,
        env={
            "PYTHONPATH": ":".join([*installed, str(PLUGIN.parents[2])]),
            "PATH": "/usr/bin:/bin",
            "HOME": str(folder),
        },
        capture_output=True,
        text=True,
        check=False,
    )


def run(playbook: str, installed: list[str], folder: Path, *more: str) -> dict[str, object]:
    (folder / "tokens").mkdir(exist_ok=True)
    (folder / "tokens" / "lab.token").write_text("lab-token-0123456789")
    options = ("--keychain", "quantum_lab:tokens", "--db", "x.db", "--json", *more)
    done = command("noetlvm", installed, folder, "run", str(PLUGIN / "playbooks" / playbook), *options)
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, object] = json.loads(done.stdout)
    return found


def test_the_playbooks_lint_without_errors_where_the_package_is_installed(installed: list[str], tmp_path: Path) -> None:
    playbooks = [str(path) for path in sorted((PLUGIN / "playbooks").glob("*.yaml"))]
    assert command("noetlc", installed, tmp_path, "lint", *playbooks).returncode == 0
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    without = command("noetlc", [], elsewhere, "lint", *playbooks)
    assert "there is no tool kind `quantum`" in without.stdout + without.stderr


def test_a_sweep_is_a_loop_whose_cost_and_queue_time_are_in_the_outcomes(installed: list[str], tmp_path: Path) -> None:
    result = run("sweep.yaml", installed, tmp_path)["result"]
    assert isinstance(result, dict)
    assert (result["cost"], result["queued"]) == (1.2, pytest.approx(0.15))
    none, half, whole = result["ones"]
    assert (none, whole) == (0, 400)
    assert 100 < half < 300
    assert run("sweep.yaml", installed, tmp_path)["result"] == result


def test_a_job_is_submitted_by_one_task_and_polled_for_by_another(installed: list[str], tmp_path: Path) -> None:
    result = run("poll.yaml", installed, tmp_path)["result"]
    assert isinstance(result, dict)
    assert set(result["counts"]) == {"00", "11"}
    assert sum(result["counts"].values()) == result["shots"] == 200
    assert result["queue_time_s"] == 0.2


def test_the_kind_is_described_by_the_command(installed: list[str], tmp_path: Path) -> None:
    done = command("noetlvm", installed, tmp_path, "tools", "quantum")
    assert "Runs a circuit on a quantum computer" in done.stdout


def test_a_missing_token_is_named_with_the_providers_folder(installed: list[str], tmp_path: Path) -> None:
    playbook = str(PLUGIN / "playbooks" / "poll.yaml")
    done = command("noetlvm", installed, tmp_path, "run", playbook, "--keychain", "quantum_lab:nowhere", "--db", "x.db")
    assert done.returncode == 2
    assert "the laboratory's folder nowhere" in done.stdout + done.stderr


def test_a_circuit_that_is_none_is_an_error_of_the_task(installed: list[str], tmp_path: Path) -> None:
    text = (PLUGIN / "playbooks" / "poll.yaml").read_text().replace("[cx, 0, 1]", "[cx, 0, 0]")
    (tmp_path / "bad.yaml").write_text(text)
    (tmp_path / "tokens").mkdir()
    (tmp_path / "tokens" / "lab.token").write_text("lab-token-0123456789")
    options = ("--keychain", "quantum_lab:tokens", "--db", "x.db")
    done = command("noetlvm", installed, tmp_path, "run", "bad.yaml", *options)
    assert done.returncode == 1
    assert "gate 1 is no gate" in done.stdout + done.stderr


def test_the_tool_kind_of_the_page_runs(tmp_path: Path) -> None:
    page = (PLUGIN.parents[2] / "docs" / "plugins.md").read_text(encoding="utf-8")
    folder = tmp_path / "site" / "greet-0.1.0.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: greet\nVersion: 0.1.0\n")
    (folder / "entry_points.txt").write_text("[noetlvm.tools]\ngreet = greet_tool:KIND\n")
    (tmp_path / "site" / "greet_tool.py").write_text(page.partition("```python\n")[2].partition("```")[0])
    (tmp_path / "greet.yaml").write_text(
        "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: { name: greet, path: demo/greet }\nworkflow:\n"
        "  - step: start\n    tool: { kind: greet, name_of: you, timeout: 5 }\n"
    )
    options = ("greet.yaml", "--db", "x.db", "--json", "--quiet")
    done = command("noetlvm", [str(tmp_path / "site")], tmp_path, "run", *options)
    assert json.loads(done.stdout)["result"] == {"text": "Hello, you!"}
