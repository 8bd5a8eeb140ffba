"""The page of `make demo`: the net of a run with the way that its tokens took, and its loop over time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

from jinja2 import Environment
from markupsafe import Markup

TEMPLATE = Path(__file__).with_name("demo_page.html")
SVG = "{http://www.w3.org/2000/svg}"
BADGE = 9.0
"""Radius of the circle with a token's number."""

Event = dict[str, Any]


class Move(NamedTuple):
    """A token comes to a step, from another one or from outside."""

    token: int
    source: str | None
    arc: str | None
    """Key of the arc in the picture, such as `fetch/arc.1`."""
    step: str
    seconds: float


class Request:
    """A request for a charge, with times in seconds since 1970."""

    def __init__(self, order: int, begun: float) -> None:
        self.order = order
        self.begun = begun
        self.ended = begun


class Bar(NamedTuple):
    """One request, in per cent of the run's time."""

    left: float
    width: float
    kind: str


def render(picture: str, events: list[Event], requests: list[Request], killed: float) -> str:
    """Return a page that needs nothing else, from the net as SVG and the events of a run that was killed once."""
    begin, end = seconds(events[0]), seconds(events[-1])
    resumed = min(request.begun for request in requests if request.begun > killed)
    span = end - begin
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(TEMPLATE.read_text(encoding="utf-8")).render(
        net=Markup(annotated(picture, moves := list(moves_of(events, begin)))),
        moves=moves,
        rows=rows_of(requests, begin, span, killed),
        killed=killed - begin,
        kill_left=percent(killed - begin, span),
        gap_width=percent(resumed - killed, span),
        span=span,
        count=len(events),
    )


def seconds(event: Event) -> float:
    return datetime.fromisoformat(event["timestamp"]).timestamp()


def moves_of(events: list[Event], begin: float) -> Iterator[Move]:
    """Yield the moves of the tokens. In the log, those of a router follow its event, in the order of its arcs."""
    steps: dict[str, str] = {}
    pending: list[tuple[str, str]] = []
    for event in events:
        data, run = event["data"], event.get("step_run_id", "")
        if event["name"] == "step.scheduled":
            steps[run] = data["step"]
        elif event["name"] == "next.evaluated":
            pending = [(steps[run], f"{steps[run]}/arc.{arc + 1}") for arc in data["arcs"]]
        elif event["name"] == "token.enqueued":
            source, arc = pending.pop(0) if pending else (None, None)
            yield Move(data["token"], source, arc, data["step"], seconds(event) - begin)


def rows_of(requests: list[Request], begin: float, span: float, killed: float) -> list[tuple[int, list[Bar]]]:
    """Return, for each order, the requests to charge it."""
    rows: dict[int, list[Bar]] = {}
    for request in requests:
        is_lost = request.begun < killed <= request.ended
        end = killed if is_lost else request.ended
        bar = Bar(
            percent(request.begun - begin, span), percent(end - request.begun, span), "lost" if is_lost else "done"
        )
        rows.setdefault(request.order, []).append(bar)
    return sorted(rows.items())


def percent(part: float, whole: float) -> float:
    return 100 * part / whole


def annotated(picture: str, moves: list[Move]) -> str:
    """Return the picture with the steps that ran, the arcs that fired, and the tokens."""
    ElementTree.register_namespace("", SVG.strip("{}"))
    root = ElementTree.fromstring(picture)
    keyed = {group.get("data-key"): group for group in root.iter(f"{SVG}g") if group.get("data-key")}
    for key in {move.step for move in moves} | {move.arc for move in moves if move.arc}:
        keyed[key].set("class", f"{keyed[key].get('class')} taken")
    for move in moves:
        root.append(badge(keyed[move.step], move.token))
    rounds = sorted({move.seconds for move in moves})
    for move in moves:
        if move.arc:
            root.append(moving(keyed[move.arc], 0.8 * rounds.index(move.seconds) / len(rounds)))
    return ElementTree.tostring(root, encoding="unicode")


def badge(box: ElementTree.Element, token: int) -> ElementTree.Element:
    """Return the number of a token for the corner of the box that it came to."""
    area = next(box.iter(f"{SVG}rect"))
    x, y = float(area.get("x", 0)) + float(area.get("width", 0)), float(area.get("y", 0))
    group = ElementTree.Element(f"{SVG}g", {"class": "token"})
    ElementTree.SubElement(group, f"{SVG}circle", {"cx": f"{x:.1f}", "cy": f"{y:.1f}", "r": str(BADGE)})
    text = ElementTree.SubElement(group, f"{SVG}text", {"x": f"{x:.1f}", "y": f"{y + 4:.1f}"})
    text.text = str(token)
    return group


def moving(line: ElementTree.Element, begin: float) -> ElementTree.Element:
    """Return a dot that moves along an arc once in each round of the animation, at its share of the round."""
    path = " ".join(part.get("d", "") for part in line.iter(f"{SVG}path") if part.get("class") != "head")
    path = re.sub(r"(?<=.)M[-\d. ]+", "", path)  # an arc in two parts is one way
    times = f"0;{begin:.2f};{begin + 0.15:.2f};1"
    dot = ElementTree.Element(f"{SVG}circle", {"class": "moving", "r": "5", "opacity": "0"})
    common = {"dur": "6s", "repeatCount": "indefinite", "keyTimes": times}
    move = {"path": path, "keyPoints": "0;0;1;1", "calcMode": "linear"}
    ElementTree.SubElement(dot, f"{SVG}animateMotion", common | move)
    fade = {"attributeName": "opacity", "values": "0;1;0;0", "calcMode": "discrete"}
    ElementTree.SubElement(dot, f"{SVG}animate", common | fade)
    return dot
