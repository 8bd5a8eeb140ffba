"""The SVG file: well formed, self-contained, and with room for its texts."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

from noetlc.graph.formats import svg
from noetlc.graph.formats.palette import DARK, LIGHT
from tests.noetlc.graph.pictures.playbooks import hostile_report, playbook, report_of

_NS = "{http://www.w3.org/2000/svg}"


def test_every_step_is_a_box_and_every_arc_a_line() -> None:
    report = report_of(playbook(30))
    root = ET.fromstring(svg.render(report))
    keys = {group.get("data-key") for group in root.iter(f"{_NS}g")}
    assert {step.name for step in report.net.steps} <= keys
    assert {f"{step.name}/arc.{arc.number}" for step in report.net.steps for arc in step.arcs} <= keys


def test_unfolded_it_shows_the_tasks() -> None:
    report = report_of(playbook(8))
    root = ET.fromstring(svg.render(report, True))
    inner = [group for group in root.iter(f"{_NS}g") if group.get("class") == "inner"]
    assert len(inner) == sum(step.pipeline is not None for step in report.net.steps)


def test_loops_show_their_width() -> None:
    report = report_of(playbook(60))
    looped = [step for step in report.net.steps if step.widths]
    assert looped
    text = svg.render(report)
    for step in looped:
        assert ("one at a time" if step.widths[0] == 1 else f"{step.widths[0]} at once") in text


def test_hostile_text_stays_text() -> None:
    root = ET.fromstring(svg.render(hostile_report()))
    assert {element.tag.removeprefix(_NS) for element in root.iter()} <= {
        "svg",
        "style",
        "g",
        "path",
        "rect",
        "text",
        "title",
    }


def test_it_makes_no_request() -> None:
    text = svg.render(report_of(playbook(8))).replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?:|url\(|@import|href", text)


def test_light_and_dark_have_the_same_colours_and_enough_contrast() -> None:
    assert LIGHT.keys() == DARK.keys()
    for palette in (LIGHT, DARK):
        for ink in ("ink", "soft", "bad", "warn", "accent"):
            for ground in ("ground", "card", "panel"):
                assert _contrast(palette[ink], palette[ground]) >= 4.5, (ink, ground)


def _contrast(a: str, b: str) -> float:
    """Return the contrast ratio: accessibility guidelines require at least 4.5 for text."""
    dark, light = sorted((_luminance(a), _luminance(b)))
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
