"""`make demo`: a stranger sees the mistakes, the kill, the rest of the run, and gets a page."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo") / "demo.html"


@pytest.fixture(scope="module")
def shown(page: Path) -> str:
    command = [sys.executable, str(ROOT / "examples" / "demo.py"), "--seconds", "0", "--page", str(page)]
    done = subprocess.run(command, cwd=page.parent, text=True, stdout=-1, stderr=subprocess.STDOUT, check=False)
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_the_demo_shows_mistakes_with_remedies(shown: str) -> None:
    assert set(re.findall(r"^(?:error|warning)\[(\w+)\]", shown, re.MULTILINE)) == {"P504", "P211", "P102"}
    assert shown.count("= help: did you mean") == 3


def test_a_run_is_killed_and_goes_on_without_a_repeated_effect(shown: str) -> None:
    before, _, after = shown.partition("$ kill -9 ")
    assert before.count("is charged") == 8
    resumed = after[after.index("$ noetlvm resume") :]
    assert resumed.count("is charged") == 4
    assert resumed.count("is requested again") == 2
    assert "orders: success" in resumed
    assert re.search(r"orders charged +12 of 12\n +charged twice +0\n", resumed)


def test_every_line_of_the_demo_fits_a_terminal_of_80_columns(shown: str) -> None:
    assert [line for line in shown.splitlines() if len(line) > 80] == []


def test_the_page_shows_the_way_of_the_tokens_and_needs_nothing_else(shown: str, page: Path) -> None:
    assert "Open in a browser: demo.html" in shown
    text = page.read_text(encoding="utf-8")
    assert "src=" not in text.replace("default-src", "").replace("style-src", "")
    net = ElementTree.fromstring(text[text.index("<svg") : text.index("</svg>") + len("</svg>")])
    taken = {group.get("data-key") for group in net.iter() if "taken" in group.get("class", "").split()}
    assert taken == {"fetch", "charge", "ship", "report", "fetch/arc.1", "charge/arc.1", "charge/arc.2"}
    assert text.count('class="bar lost" style') == 2
    assert text.count('class="bar done" style') == 12
