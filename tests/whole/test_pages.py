"""Pages are executed: their console blocks show what the commands print. `pytest --update` rewrites them."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CONSOLE = re.compile(r"(?<=^```console\n)(.*?)(?=^```$)", re.MULTILINE | re.DOTALL)


def run(command: str, folder: Path) -> str:
    program, *rest = shlex.split(command)
    environment = {**os.environ, "NO_COLOR": "1", "COLUMNS": "100", "NOETLC_CACHE": str(folder / "cache")}
    environment["PYTHONPATH"] = str(ROOT)
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [sys.executable, *([] if program == "python" else ["-m", program]), *rest],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        check=False,
    )
    return steady(done.stdout)


def steady(text: str) -> str:
    """Put fixed values in place of what is different in every run: identifiers and durations."""
    text = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "01a1e318-d8a3-775f-97a4-06bbd6c33213", text)
    return re.sub(r"\d+\.\d\d s", "0.10 s", text)


def executed(text: str, folder: Path) -> str:
    """Return a page with each console block as it comes out today."""

    def block(match: re.Match[str]) -> str:
        commands = [line[2:] for line in match[1].splitlines() if line.startswith("$ ")]
        return "".join(f"$ {command}\n{run(command, folder)}" for command in commands)

    return CONSOLE.sub(block, text)


@pytest.mark.parametrize(
    ("name", "files"),
    [
        ("README.md", []),
        ("docs/getting-started.md", ["orders.yaml", "hello.yaml", "count.yaml"]),
        ("docs/keychain.md", ["shop.yaml"]),
        ("docs/graph.md", ["poll.yaml"]),
    ],
)
def test_a_page_shows_what_the_commands_print(
    name: str, files: list[str], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    page = ROOT / name
    text = page.read_text(encoding="utf-8")
    saved = re.findall(r"^Save this as `(\w+\.yaml)`:\n\n```yaml\n(.*?)```", text, re.DOTALL | re.MULTILINE)
    assert [file for file, _ in saved] == files
    for file, content in saved:
        (tmp_path / file).write_text(content, encoding="utf-8")
    shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    now = executed(text, tmp_path)
    for example in re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        subprocess.run([sys.executable, "-c", example], cwd=tmp_path, env={"PYTHONPATH": str(ROOT)}, check=True)
    if request.config.getoption("--update"):
        page.write_text(now, encoding="utf-8")
    assert page.read_text(encoding="utf-8") == now


def test_the_readme_is_read_in_two_minutes_and_says_how_to_test() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.encode()) < 6_000
    assert "make test" in text
    assert "\nmake test\n" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_every_target_of_make_that_a_page_names_exists(name: str) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    named = set(
        re.findall(
            r"\bmake ([a-z]+(?:-[a-z]+)*)(?=`|\s{2,}#|$)", (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE
        )
    )
    assert "test" in named
    assert [target for target in sorted(named) if not re.search(rf"^{target}:", makefile, re.MULTILINE)] == []


def test_the_list_of_pages_is_complete() -> None:
    text = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    pages = [page.name for page in sorted((ROOT / "docs").glob("*.md")) if page.name != "README.md"]
    assert [name for name in pages if f"]({name})" not in text] == []


def test_every_picture_of_a_page_exists() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    pictures = re.findall(r'src(?:set)?="([^"]+)"', text)
    assert len(pictures) == 2
    assert [name for name in pictures if not (ROOT / name).is_file()] == []


def test_every_link_between_pages_leads_to_a_file_and_a_heading() -> None:
    pages = [
        ROOT / "README.md",
        ROOT / "CHANGELOG.md",
        ROOT / "CONTRIBUTING.md",
        ROOT / "conformance" / "README.md",
        *(ROOT / "docs").glob("*.md"),
    ]
    links = [
        (page, link) for page in pages for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8"))
    ]
    inner = [(page, *link.partition("#")[::2]) for page, link in links if "://" not in link]
    assert len(inner) > 100
    broken = []
    for page, path, anchor in inner:
        target = page.parent / path if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(f"{page.name}: {path}#{anchor}")
    assert broken == []


def anchors(page: Path) -> set[str]:
    """Return the anchors that the headings of a page get."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
