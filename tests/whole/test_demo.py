"""`make demo`: a stranger sees the mistakes, the kill, the rest of the run, and gets a page."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parents[2]


def test_a_stranger_sees_mistakes_a_killed_run_that_continues_and_a_page(tmp_path: Path) -> None:
    page = tmp_path / "demo.html"
    command = [sys.executable, str(ROOT / "examples" / "demo.py"), "--seconds", "0", "--page", str(page)]
    done = subprocess.run(command, cwd=tmp_path, text=True, stdout=-1, stderr=subprocess.STDOUT, check=False)
    assert done.returncode == 0, done.stdout
    assert [line for line in done.stdout.splitlines() if len(line) > 80] == []
    check_mistakes(done.stdout)
    check_killed_run(done.stdout)
    assert "Open in a browser: demo.html" in done.stdout
    check_page(page.read_text(encoding="utf-8"))


def check_mistakes(shown: str) -> None:
    assert set(re.findall(r"^(?:error|warning)\[(\w+)\]", shown, re.MULTILINE)) == {"P504", "P211", "P102"}
    assert shown.count("= help: did you mean") == 3


def check_killed_run(shown: str) -> None:
    before, _, after = shown.partition("$ kill -9 ")
    assert before.count("is charged") == 8
    resumed = after[after.index("$ noetlvm resume") :]
    assert resumed.count("is charged") == 4
    assert resumed.count("is requested again") == 2
    assert "orders: success" in resumed
    assert re.search(r"orders charged +12 of 12\n +charged twice +0\n", resumed)


def check_page(text: str) -> None:
    assert "src=" not in text.replace("default-src", "").replace("style-src", "")
    net = ElementTree.fromstring(text[text.index("<svg") : text.index("</svg>") + len("</svg>")])
    taken = {group.get("data-key") for group in net.iter() if "taken" in group.get("class", "").split()}
    assert taken == {"fetch", "charge", "ship", "report", "fetch/arc.1", "charge/arc.1", "charge/arc.2"}
    assert text.count('class="bar lost" style') == 2
    assert text.count('class="bar done" style') == 12
