"""The page as a file: complete, small, closed to the outside, and with everything from a playbook escaped."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import subprocess
import sys
import zlib
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from noetlc.graph.formats import html
from noetlc.graph.formats.palette import asset
from noetlc.graph.grouping import LARGE, Grouping
from tests.chromium import find_chromium
from tests.noetlc.graph.pictures.playbooks import HOSTILE, chain_report, hostile_report, playbook, report_of

LIMIT = 3_000_000


class Elements(HTMLParser):
    """Collects what a browser would see: tags, attributes, and the text of scripts."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def stored(page: str) -> dict[str, Any]:
    packed = re.search(r'<script type="text/plain" id="stored">([A-Za-z0-9+/=]*)</script>', page)
    assert packed
    data: dict[str, Any] = json.loads(zlib.decompress(base64.b64decode(packed[1])))
    return data


@pytest.fixture(scope="module")
def source() -> str:
    return playbook(60)


@pytest.fixture(scope="module")
def page(source: str) -> str:
    return html.render(report_of(source), sources={"playbook.yaml": source})


def test_it_is_one_small_file_that_requests_nothing(page: str) -> None:
    assert len(page.encode()) < 500_000
    for tag, attributes in Elements(page).tags:
        assert tag not in {"link", "img", "iframe", "object", "embed", "base", "form", "video", "audio"}
        assert not {"src", "href", "action", "data", "background", "poster", "srcset"} & attributes.keys()
        assert not [name for name in attributes if name.startswith("on") or name == "style"]
    script, style = asset("page.js"), asset("page.css") + asset("picture.css")
    assert not re.search(r"https?://|fetch\(|XMLHttpRequest|WebSocket|import\(|eval\(|innerHTML", script)
    assert not re.search(r"url\(|@import", style)


def test_which_browser_there_is(record_property: Callable[[str, object], None]) -> None:
    program = find_chromium()
    if program is not None:
        version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout.strip()
        record_property("browser", f"the page was tested in {version}")
    assert program is None or Path(program).is_file()


@pytest.mark.parametrize(("setting", "code"), [("", 0), ("required", 4)])
def test_a_missing_browser_is_reported_and_fails_where_it_is_required(setting: str, code: int, tmp_path: Path) -> None:
    root = Path(__file__).parents[4]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "tests/noetlc/graph/pictures", "-k", "its_policy"],
        cwd=root,
        env={"PATH": str(tmp_path), "NOETL_BROWSER": setting, "PYTHONPATH": str(root), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    assert "apt-get install chromium" in done.stdout + done.stderr
    if not setting:
        assert "tests of pages in a browser" in done.stdout


def test_its_policy_allows_its_own_script_and_nothing_else(page: str) -> None:
    policy = next(attributes["content"] for tag, attributes in Elements(page).tags if "http-equiv" in attributes)
    digest = base64.b64encode(hashlib.sha256(asset("page.js").encode()).digest()).decode()
    assert policy is not None
    assert "default-src 'none'" in policy
    assert f"script-src 'sha256-{digest}'" in policy


def test_it_holds_picture_findings_source_and_tasks(page: str, source: str) -> None:
    report = report_of(source)
    tags = Elements(page).tags
    boxes = [attributes for tag, attributes in tags if (attributes.get("class") or "").startswith("box")]
    assert {box.get("data-key") for box in boxes} >= {step.name for step in report.net.steps}
    findings = [attributes for _, attributes in tags if (attributes.get("class") or "").startswith("finding ")]
    assert [one["data-step"] for one in findings] == [finding.step for finding in report.findings]
    data = stored(page)
    assert data["sources"] == {"playbook.yaml": source}
    assert data["inner"].keys() == {step.name for step in report.net.steps if step.pipeline}
    assert [len(moves) for moves in data["witnesses"]] == [min(61, len(one.witness)) for one in report.findings]
    assert "<svg" in data["unfolded"]


def test_hostile_text_stays_text() -> None:
    report = hostile_report()
    page = html.render(report, sources={HOSTILE: HOSTILE, "playbook.yaml": HOSTILE})
    tags = [tag for tag, _ in Elements(page).tags]
    assert tags.count("script") == 2
    assert "img" not in tags
    assert page.count("</script>") == 2
    assert "@@script@@" in page  # the name, as it was written
    page.encode()
    assert stored(page)["sources"]["playbook.yaml"] == HOSTILE


def test_a_large_net_is_shown_in_groups_first() -> None:
    report = chain_report(LARGE + 100)
    page = html.render(report, sources={"chain.yaml": "x\n" * 400})
    assert "<body data-grouped>" in page
    data = stored(page)
    assert data.keys() >= {"groups", "all", "sources"}
    assert {step["group"] for step in data["steps"]} == data["groups"].keys()
    assert len(data["groups"]) <= 20


def test_groups_part_the_net() -> None:
    grouping = Grouping(chain_report(1000))
    steps = [step for group in grouping.groups for step in group.steps]
    assert sorted(steps) == list(range(1000))
    assert max(len(group.steps) for group in grouping.groups) <= 40
    overview = grouping.overview()
    assert len(overview.boxes) == len(grouping.groups) + 1


def test_the_picture_of_a_group_shows_its_steps_and_the_groups_around_it() -> None:
    grouping = Grouping(chain_report(400))
    picture = grouping.picture(1)
    kinds = [box.kind for box in picture.boxes]
    assert kinds.count("outside") == 2
    assert kinds.count("routing") == len(grouping.groups[1].steps)


def test_a_page_that_would_get_too_large_leaves_the_least_needed_out(monkeypatch: pytest.MonkeyPatch) -> None:
    report = chain_report(LARGE + 100)
    whole = html.render(report, sources={"chain.yaml": "x"})
    monkeypatch.setattr(html, "_BYTES_MAX", len(whole) - 40_000)
    smaller = stored(html.render(report, sources={"chain.yaml": "x"}))
    assert "all" not in smaller
    assert smaller["sources"] == {"chain.yaml": "x"}


def test_thousands_of_steps_stay_below_the_limit() -> None:
    report = chain_report(4_000)
    lines = "".join(f"  - step: step_{number}\n    next: {{ arcs: [] }}\n" for number in range(4_000))
    assert len(html.render(report, sources={"chain.yaml": lines}).encode()) < LIMIT


def test_without_sources_it_is_still_a_page() -> None:
    page = html.render(report_of(playbook(4)))
    assert stored(page)["sources"] == {}
