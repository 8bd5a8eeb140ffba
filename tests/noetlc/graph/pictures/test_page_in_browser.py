"""The page in a real browser: legible, and everything on it works by mouse and by keyboard.

Where the machine has no Chromium this file is left out, and `test_html.py` says so.
"""

from __future__ import annotations

import json
from itertools import combinations
from typing import TYPE_CHECKING, Any

import pytest

from noetlc.graph.analyse import analyse
from noetlc.graph.formats import html, svg
from noetlc.graph.reading import read_nets
from tests.chromium import Chromium, find_chromium
from tests.noetlc.graph.pictures.playbooks import HOSTILE, chain_report, hostile_report, playbook, report_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from noetlc.graph.report import GraphReport

PROGRAM = find_chromium() or ""
CHOSEN = "document.querySelector('#stage .chosen')?.dataset.key"
AREAS = """[...document.querySelectorAll('#picture .box > rect, #picture .line > rect')]
    .map(rect => rect.getBBox()).map(({ x, y, width, height }) => [x, y, width, height])"""
TEXTS = """[...document.querySelectorAll('#picture .box, #picture .line')].flatMap(group => {
    const rect = group.querySelector(':scope > rect')?.getBBox();
    return [...group.querySelectorAll(':scope > text')].map(text => text.getBBox())
        .filter(text => text.x < rect.x || text.x + text.width > rect.x + rect.width
                     || text.y + text.height > rect.y + rect.height + 2 || text.y < rect.y - 2)
        .map(() => group.textContent);
})"""


def write(folder: Path, name: str, report: GraphReport, sources: dict[str, str]) -> Path:
    path = folder / f"{name}.html"
    path.write_text(html.render(report, sources=sources), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with Chromium(PROGRAM) as running:
        yield running


@pytest.fixture(scope="module")
def sixty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = playbook(60)
    return write(tmp_path_factory.mktemp("page"), "sixty", report_of(source), {"playbook.yaml": source})


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    lines = "".join(f"step_{number}\n" for number in range(400))
    return write(tmp_path_factory.mktemp("page"), "large", chain_report(400), {"chain.yaml": lines})


@pytest.fixture
def page(browser: Chromium, sixty: Path) -> Chromium:
    browser.events.clear()
    browser.prefer("light")
    browser.load(sixty)
    return browser


def colour(browser: Chromium, selector: str, what: str) -> str:
    found: str = browser.evaluate(f"getComputedStyle(document.querySelector({json.dumps(selector)})).{what}")
    return found


def key_of_step(page: Chromium, number: int) -> str:
    found: str = page.evaluate(f"document.querySelectorAll('#picture .box[data-key]')[{number}].dataset.key")
    return found


@pytest.mark.parametrize("unfolded", [False, True])
def test_nothing_overlaps_and_every_text_has_room(page: Chromium, unfolded: bool) -> None:
    if unfolded:
        page.click("#unfold")
        areas = page.evaluate(AREAS.replace("#picture .", "#picture > svg > ."))
    else:
        areas = page.evaluate(AREAS)
    assert len(areas) > 100
    assert [pair for pair in combinations(areas, 2) if _overlap(*pair)] == []
    assert page.evaluate(TEXTS) == []


def _overlap(a: list[float], b: list[float]) -> bool:
    return (
        a[0] < b[0] + b[2] - 0.2 and b[0] < a[0] + a[2] - 0.2 and a[1] < b[1] + b[3] - 0.2 and b[1] < a[1] + a[3] - 0.2
    )


def test_every_arrow_head_can_be_seen(page: Chromium) -> None:
    hidden = page.evaluate("""(() => {
        const boxes = [...document.querySelectorAll('#picture .box > rect')].map(rect => rect.getBBox());
        return [...document.querySelectorAll('#picture .head')].map(head => head.getBBox()).filter(head => boxes.some(
            box => head.x + 4 > box.x && head.x + 4 < box.x + box.width
                && head.y + 4 > box.y && head.y + 4 < box.y + box.height)).length;
    })()""")
    assert hidden == 0


def test_it_logs_nothing_and_makes_no_request(page: Chromium) -> None:
    for selector in ("#unfold", "#help", "#theme", "#larger", "#fit", ".finding"):
        page.click(selector)
    assert page.complaints() == []


def test_a_click_on_a_finding_shows_the_step_and_its_line(page: Chromium) -> None:
    page.click("#findings li:nth-child(2) .finding")
    finding = page.evaluate("({ ...document.querySelectorAll('.finding')[1].dataset })")
    assert page.evaluate(CHOSEN) in (finding["key"], finding["step"])
    assert page.evaluate(
        "[...document.querySelectorAll('#source li')].findIndex(li => li.matches('.here')) + 1"
    ) == int(finding["line"])
    assert _in_view(page, "#source .here", "#source")
    assert _in_view(page, "#stage .chosen", "#stage")


def _in_view(page: Chromium, selector: str, frame: str) -> bool:
    found: bool = page.evaluate(
        f"(() => {{ const a = document.querySelector({json.dumps(selector)}).getBoundingClientRect(),"
        f" b = document.querySelector({json.dumps(frame)}).getBoundingClientRect();"
        " return a.bottom > b.top && a.top < b.bottom && a.right > b.left && a.left < b.right; })()"
    )
    return found


def test_the_way_to_a_finding_is_reported_move_by_move(page: Chromium) -> None:
    page.evaluate("[...document.querySelectorAll('#findings details')].at(-1).open = true")
    page.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done)))")
    moves = page.evaluate("document.querySelectorAll('#findings .move').length")
    assert moves > 0
    page.evaluate("document.querySelector('#findings .move').click()")
    assert page.evaluate("document.querySelectorAll('#source .here').length") == 1


def test_a_click_on_a_step_shows_its_line_and_its_arcs(page: Chromium) -> None:
    page.click("#picture .box[data-key=start]")
    assert page.evaluate(CHOSEN) == "start"
    assert page.evaluate("document.querySelector('#step h2').textContent") == "start"
    assert page.evaluate("document.querySelector('#source .here').textContent").strip() == "- step: start"
    assert page.evaluate("document.querySelectorAll('#stage .line.near').length") >= 1


def test_tasks_of_a_step_unfold_in_its_panel(page: Chromium) -> None:
    page.click("#picture .box[data-key=start]")
    page.evaluate("document.querySelector('#step details').open = true")
    page.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done)))")
    assert page.evaluate("document.querySelectorAll('#step .inside .box.task').length") >= 2


def test_all_steps_unfold_and_fold(page: Chromium) -> None:
    assert page.evaluate("document.querySelectorAll('#picture .inner').length") == 0
    page.click("#unfold")
    assert page.evaluate("document.querySelectorAll('#picture .inner').length") > 20
    page.click("#unfold")
    assert page.evaluate("document.querySelectorAll('#picture .inner').length") == 0


def test_it_may_begin_unfolded(browser: Chromium, tmp_path: Path) -> None:
    path = tmp_path / "unfolded.html"
    path.write_text(html.render(report_of(playbook(8)), unfold=True), encoding="utf-8")
    browser.load(path)
    assert browser.evaluate("document.querySelectorAll('#picture .inner').length") > 2
    assert browser.evaluate("document.querySelector('#unfold').getAttribute('aria-pressed')") == "true"


def test_search_finds_steps_by_part_of_their_names(page: Chromium) -> None:
    page.press("/")
    for char in "score":
        page.press(char)
    hits = page.evaluate("[...document.querySelectorAll('#results button')].map(button => button.textContent)")
    assert hits
    assert all("score" in name for name in hits)
    assert page.evaluate("document.querySelectorAll('#picture .match').length") == len(hits)
    page.press("Enter")
    assert page.evaluate(CHOSEN) == hits[0]
    assert page.evaluate("document.activeElement.dataset.key") == hits[0]


def test_arrows_walk_from_step_to_step(page: Chromium) -> None:
    page.evaluate("document.querySelector('#picture .box[data-key=start]').focus()")
    page.press("ArrowDown")
    below = page.evaluate(CHOSEN)
    assert below
    assert below != "start"
    page.press("ArrowUp")
    assert page.evaluate(CHOSEN) == "start"
    page.press("Escape")
    assert page.evaluate(CHOSEN) is None


def test_tab_goes_through_the_steps_and_enter_chooses(page: Chromium) -> None:
    page.evaluate("document.querySelector('#stage').focus()")
    page.press("Tab")
    focused = page.evaluate("document.activeElement.dataset.key")
    assert focused == key_of_step(page, 0)
    page.press("Enter")
    assert page.evaluate(CHOSEN) == focused
    assert _in_view(page, "#stage .chosen", "#stage")
    page.press("Tab")
    assert page.evaluate("document.activeElement.dataset.key") == key_of_step(page, 1)
    assert _in_view(page, "#stage .box:focus", "#stage")


def test_keys_go_through_the_findings(page: Chromium) -> None:
    page.press("n")
    page.press("n")
    assert page.evaluate("[...document.querySelectorAll('.finding')].findIndex(one => one.matches('.chosen'))") == 1
    page.press("p")
    assert page.evaluate("[...document.querySelectorAll('.finding')].findIndex(one => one.matches('.chosen'))") == 0


def test_zoom_and_pan(page: Chromium) -> None:
    frame = "document.querySelector('#picture svg').getAttribute('viewBox').split(' ').map(Number)"
    before = page.evaluate(frame)
    page.press("+")
    assert page.evaluate(frame)[2] == pytest.approx(before[2] / 1.25, rel=0.01)
    page.press("-")
    assert page.evaluate(frame) == pytest.approx(before, abs=0.1)
    for kind, x in (("mousePressed", 700), ("mouseMoved", 760), ("mouseMoved", 800), ("mouseReleased", 800)):
        page.mouse(kind, x, 900, buttons=1)
    assert page.evaluate(frame)[0] < before[0]
    page.press("0")
    whole: Any = page.evaluate(
        "(() => { const a = document.querySelector('#stage').getBoundingClientRect();"
        " return [...document.querySelectorAll('#picture .box')].map(box => box.getBoundingClientRect()).every(b =>"
        " b.top >= a.top && b.bottom <= a.bottom && b.left >= a.left && b.right <= a.right); })()"
    )
    assert whole


def test_dark_by_the_viewers_wish_and_by_the_button(page: Chromium) -> None:
    light = colour(page, "#picture svg", "backgroundColor")
    page.prefer("dark")
    dark = colour(page, "#picture svg", "backgroundColor")
    assert light != dark
    page.click("#theme")
    assert colour(page, "#picture svg", "backgroundColor") == light
    page.click("#theme")
    assert colour(page, "#picture svg", "backgroundColor") == dark


def test_hostile_text_does_nothing(browser: Chromium, tmp_path: Path) -> None:
    browser.events.clear()
    browser.load(write(tmp_path, "hostile", hostile_report(), {"playbook.yaml": f"{HOSTILE}\n" * 50}))
    browser.evaluate("document.querySelectorAll('.finding').forEach(one => one.click())")
    browser.click("#unfold")
    assert browser.evaluate("window.broken") is None
    assert browser.evaluate("document.querySelectorAll('img').length") == 0
    assert "onerror" in browser.evaluate("document.querySelector('#source li').textContent")
    assert browser.complaints() == []


def test_a_large_net_requires_a_confirmation_before_it_draws_everything(browser: Chromium, large: Path) -> None:
    browser.load(large)
    boxes = "document.querySelectorAll('#picture .box').length"
    assert browser.evaluate(boxes) < 30
    browser.click("#draw-all")
    assert browser.evaluate(boxes) < 30
    browser.click("#yes")
    assert browser.evaluate(boxes) == 401


def test_groups_open_and_close_and_search_finds_what_is_in_them(browser: Chromium, large: Path) -> None:
    browser.load(large)
    browser.click("#picture .box.group")
    assert browser.evaluate("document.querySelectorAll('#picture .box.routing').length") == 40
    browser.click("#back")
    assert browser.evaluate("document.querySelectorAll('#picture .box.group').length") == 10
    browser.press("/")
    for char in "step_333":
        browser.press(char)
    browser.press("Enter")
    assert browser.evaluate(CHOSEN) == "step_333"
    assert browser.evaluate("document.querySelector('#source .here').textContent") == "step_333"


def test_the_svg_file_is_drawn_as_it_was_laid_out(browser: Chromium, tmp_path: Path) -> None:
    path = tmp_path / "net.svg"
    path.write_text(svg.render(report_of(playbook(20))), encoding="utf-8")
    browser.send("Page.navigate", url=path.as_uri())
    while browser.evaluate("location.href") != path.as_uri() or browser.evaluate("document.readyState") != "complete":
        pass
    assert browser.evaluate("document.querySelectorAll('.box').length") == 21
    assert browser.evaluate(TEXTS.replace("#picture ", "")) == []


DESCRIBED = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: described, path: described, note: port 80 of 3}  # a remark
workload: {count: 3}
workflow:
  - step: start
    desc: Fetches the orders of the day.
    tool:
      - get: {kind: http, url: https://example.org}
      - note: {kind: noop, text: "{{ ctx.total }}"}
    next:
      arcs:
        - step: one
          when: "{{ workload.count == 1 }}"
        - step: two
          when: "{{ workload.count == 2 }}"
        - step: three
  - step: one
    tool: {kind: noop}
  - step: two
    tool: {kind: noop}
  - step: three
    tool: {kind: noop}
"""


@pytest.fixture
def described(browser: Chromium, tmp_path: Path) -> Chromium:
    (tmp_path / "described.yaml").write_text(DESCRIBED, encoding="utf-8")
    net = read_nets(str(tmp_path / "described.yaml"), with_pipelines=True).nets[0]
    browser.load(write(tmp_path, "described", analyse(net), {"described.yaml": DESCRIBED}))
    return browser


def test_boxes_show_tool_kinds_and_descriptions(described: Chromium) -> None:
    box = described.evaluate("document.querySelector('#picture [data-key=start]').textContent")
    assert "http, noop" in box
    assert "Fetches the orders of the day." in box
    assert described.evaluate(TEXTS) == []


def test_siblings_stand_in_the_order_of_their_guards(described: Chromium) -> None:
    left = "document.querySelector('#picture [data-key={}]').getBoundingClientRect().left"
    one, two, three = (described.evaluate(left.format(name)) for name in ("one", "two", "three"))
    assert one < two < three


def test_the_source_is_coloured(described: Chromium) -> None:
    coloured = "[...document.querySelectorAll('#source .{}')].map(one => one.textContent.trim())"
    assert "workload" in described.evaluate(coloured.format("key"))
    assert described.evaluate(coloured.format("value")) == ["3"]
    assert "# a remark" in described.evaluate(coloured.format("comment"))
    assert '"{{ ctx.total }}"' in described.evaluate(coloured.format("template"))
    lines = described.evaluate("[...document.querySelectorAll('#source li')].map(one => one.textContent)")
    assert lines == DESCRIBED.rstrip("\n").split("\n")


def test_a_step_of_one_task_is_not_unfolded(described: Chromium) -> None:
    described.evaluate("document.getElementById('unfold').click()")
    inner = "document.querySelectorAll('#picture [data-key^=\"{}/\"]').length"
    assert described.evaluate(inner.format("start")) >= 2
    assert described.evaluate(inner.format("one")) == 0


def test_a_small_net_has_no_overview(described: Chromium) -> None:
    assert described.evaluate("document.getElementById('overview').hidden")


def test_a_long_net_has_an_overview_that_leads_anywhere_in_it(browser: Chromium, tmp_path: Path) -> None:
    steps = "".join(
        f"  - step: s{number}\n    tool: {{kind: noop}}\n    next: {{arcs: [{{step: s{number + 1}}}]}}\n"
        for number in range(35)
    )
    head = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: long, path: long}\nworkflow:\n"
    text = f"{head}{steps}  - step: s35\n    tool: {{kind: noop}}\n"
    (tmp_path / "long.yaml").write_text(text, encoding="utf-8")
    net = read_nets(str(tmp_path / "long.yaml")).nets[0]
    browser.load(write(tmp_path, "long", analyse(net), {"long.yaml": text}))
    assert not browser.evaluate("document.getElementById('overview').hidden")
    assert browser.evaluate("document.querySelectorAll('#overview rect:not(.frame)').length") >= 36
    visible = (
        "(() => { const a = document.querySelector('#stage').getBoundingClientRect();"
        " const b = document.querySelector('#picture [data-key=s35]').getBoundingClientRect();"
        " return b.top >= a.top && b.bottom <= a.bottom; })()"
    )
    assert not browser.evaluate(visible)
    x, y = browser.evaluate(
        "(() => { const a = document.querySelector('#overview svg').getBoundingClientRect();"
        " return [a.x + a.width / 2, a.bottom - 2]; })()"
    )
    browser.mouse("mousePressed", x, y, buttons=1)
    browser.mouse("mouseReleased", x, y, buttons=1)
    assert browser.evaluate(visible)
