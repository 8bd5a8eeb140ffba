"""The net as PNML: an ISO/IEC 15909-2 place/transition net with graphics, for any Petri-net tool.

A step is a place. Each way in which a step can end is a transition that takes the token out of the step's place and
puts one on the place of every target. An ending at which several choices are made for themselves would need a
transition for every combination; where these are many, each choice gets a place and transitions of its own.

A place/transition net cannot wait until all is at rest, so nothing leads to the final step's place: to analyse what
follows it, mark that place.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import product
from math import prod
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from noetlc.analysis.routers import Choice
from noetlc.graph.layout.place import lay_out
from noetlc.graph.layout.shapes import Layout, Link, Size
from noetlc.graph.picture import NOTE_EM, text_width
from noetlc.graph.report import GraphReport
from noetlc.net.net import Boundary, Net, NetStep
from noetlc.report.junit import cleaned

_PLACE, _TRANSITION = Size(32.0, 32.0), Size(24.0, 12.0)
_NAME_HEIGHT = 18.0
_COMBINATIONS_MAX = 16
_NAMESPACE = "http://www.pnml.org/version-2009/grammar/pnml"
_TYPE = "http://www.pnml.org/version-2009/grammar/ptnet"


@dataclass(frozen=True, slots=True)
class PetriNode:
    """A place or a transition."""

    id: str
    name: str
    is_place: bool
    tokens: int = 0


@dataclass(slots=True)
class PetriNet:
    """A place/transition net."""

    nodes: list[PetriNode] = field(default_factory=list)
    arcs: list[tuple[int, int, int]] = field(default_factory=list)
    """From node to node, by their places, and how many tokens move."""

    def add(self, node: PetriNode) -> int:
        self.nodes.append(node)
        return len(self.nodes) - 1

    def add_arcs(self, transition: int, targets: Counter[int]) -> None:
        self.arcs += [(transition, place, weight) for place, weight in targets.items()]


def petri_net(net: Net) -> PetriNet:
    """Return the place/transition net that plays the same token game."""
    made = PetriNet()
    for step in net.steps:
        made.add(PetriNode(f"step{step.index}", step.name, True, int(step.index == net.entry)))
    for step in net.steps:
        if step.may_drop:
            dropped = made.add(PetriNode(f"step{step.index}.dropped", f"{step.name} token.dropped", False))
            made.arcs.append((step.index, dropped, 1))
        if step.can_run:
            for number, ending in enumerate(step.endings, 1):
                _add_ending(made, step, ending, f"step{step.index}.ending{number}")
    return made


def _add_ending(made: PetriNet, step: NetStep, ending: Boundary, id: str) -> None:
    name = f"{step.name} {ending.event}"
    if prod(map(len, ending.choices)) <= _COMBINATIONS_MAX:
        sets = [tuple(sorted({arc for part in parts for arc in part})) for parts in product(*ending.choices)]
        _add_alternatives(made, step, step.index, tuple(dict.fromkeys(sets)), name, id)
        return
    start = made.add(PetriNode(id, name, False))
    made.arcs.append((step.index, start, 1))
    for number, choice in enumerate(ending.choices, 1):
        pending = made.add(PetriNode(f"{id}.choice{number}", f"{name}, choice {number}", True))
        made.arcs.append((start, pending, 1))
        _add_alternatives(made, step, pending, choice, f"{name}, choice {number}", f"{id}.choice{number}")


def _add_alternatives(made: PetriNet, step: NetStep, place: int, choice: Choice, name: str, id: str) -> None:
    for number, arcs in enumerate(choice, 1):
        fired = ", ".join(f"arc {arc + 1}" for arc in arcs) or "nothing fires"
        transition = made.add(PetriNode(f"{id}.firing{number}", f"{name}: {fired}", False))
        made.arcs.append((place, transition, 1))
        made.add_arcs(transition, Counter(step.arcs[arc].target for arc in arcs))


# ---- as XML


def render(report: GraphReport, unfold: bool = False) -> str:
    """Return the net as a PNML document. There is nothing to unfold: a pipeline moves no tokens."""
    net = petri_net(report.net)
    sizes = [_room(node) for node in net.nodes]
    layout = lay_out(sizes, [Link(source, target) for source, target, _ in net.arcs])
    document = _document(report.net.name, net, layout)
    indent(document)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{tostring(document, encoding="unicode")}\n'


def _room(node: PetriNode) -> Size:
    own = _PLACE if node.is_place else _TRANSITION
    return Size(max(own.width, round(text_width(node.name, NOTE_EM), 1)), own.height + _NAME_HEIGHT)


def _document(name: str, net: PetriNet, layout: Layout) -> Element:
    document = Element("pnml", xmlns=_NAMESPACE)
    root = SubElement(document, "net", id="net", type=_TYPE)
    _text(SubElement(root, "name"), name)
    page = SubElement(root, "page", id="page")
    for node, area in zip(net.nodes, layout.boxes, strict=True):
        _add_node(page, node, area.x + area.width / 2, area.y)
    for number, ((source, target, weight), route) in enumerate(zip(net.arcs, layout.routes, strict=True), 1):
        arc = SubElement(page, "arc", id=f"arc{number}", source=net.nodes[source].id, target=net.nodes[target].id)
        bends = [segment[-2:] for segment in route.segments[:-1]]  # PNML knows the ends
        graphics = SubElement(arc, "graphics") if bends else arc
        for x, y in bends:
            _point(graphics, "position", x, y)
        _text(SubElement(arc, "inscription"), str(weight))
    return document


def _add_node(page: Element, node: PetriNode, x: float, top: float) -> None:
    tag, size = ("place", _PLACE) if node.is_place else ("transition", _TRANSITION)
    element = SubElement(page, tag, id=node.id)
    name = SubElement(element, "name")
    _text(name, node.name)
    _point(SubElement(name, "graphics"), "offset", 0, size.height / 2 + _NAME_HEIGHT / 2)
    graphics = SubElement(element, "graphics")
    _point(graphics, "position", x, top + size.height / 2)
    _point(graphics, "dimension", size.width, size.height)
    if node.tokens:
        _text(SubElement(element, "initialMarking"), str(node.tokens))


def _text(parent: Element, value: str) -> None:
    SubElement(parent, "text").text = cleaned(value)


def _point(parent: Element, tag: str, x: float, y: float) -> None:
    SubElement(parent, tag, x=f"{x:.1f}".removesuffix(".0"), y=f"{y:.1f}".removesuffix(".0"))
