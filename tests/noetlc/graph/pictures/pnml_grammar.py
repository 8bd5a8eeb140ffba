"""The rules of the published PNML grammar (core model and P/T nets, version 2009), written out as a table.

An element's children may come in any order. `1` is exactly one, `?` at most one, `*` any number, `+` at least one.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator

NAMESPACE = "http://www.pnml.org/version-2009/grammar/pnml"
PT_NET = "http://www.pnml.org/version-2009/grammar/ptnet"

_ID = r"[A-Za-z_][\w.\-]*"
_DECIMAL = r"[+-]?(\d+(\.\d*)?|\.\d+)"
_POSITIVE = r"(?=.*[1-9])\d{1,3}(\.\d)?"
"""A positive decimal of at most four digits, one of them after the point."""

_NODE_GRAPHICS = {"position": "1", "dimension": "?", "fill": "?", "line": "?"}
_LABEL = {"text": "?", "graphics": "?", "toolspecific": "*"}
_OBJECT = {"name": "?", "toolspecific": "*"}

CHILDREN: dict[str, dict[str, str]] = {
    "pnml": {"net": "+"},
    "net": _OBJECT | {"page": "+"},
    "page": _OBJECT
    | {"graphics": "?"}
    | dict.fromkeys(("page", "place", "transition", "referencePlace", "referenceTransition", "arc"), "*"),
    "place": _OBJECT | {"graphics": "?", "initialMarking": "?"},
    "transition": _OBJECT | {"graphics": "?"},
    "arc": _OBJECT | {"graphics": "?", "inscription": "?"},
    "name": _LABEL,
    "initialMarking": _LABEL | {"text": "1"},
    "inscription": _LABEL | {"text": "1"},
    "text": {},
    "position": {},
    "offset": {},
    "dimension": {},
    "place/graphics": _NODE_GRAPHICS,
    "transition/graphics": _NODE_GRAPHICS,
    "page/graphics": _NODE_GRAPHICS,
    "arc/graphics": {"position": "*", "line": "?"},
    "name/graphics": {"offset": "1", "fill": "?", "line": "?", "font": "?"},
}
ATTRIBUTES: dict[str, dict[str, str]] = {
    "net": {"id": _ID, "type": re.escape(PT_NET)},
    "page": {"id": _ID},
    "place": {"id": _ID},
    "transition": {"id": _ID},
    "arc": {"id": _ID, "source": _ID, "target": _ID},
    "position": {"x": _DECIMAL, "y": _DECIMAL},
    "offset": {"x": _DECIMAL, "y": _DECIMAL},
    "dimension": {"x": _POSITIVE, "y": _POSITIVE},
}
TEXTS = {"initialMarking": r"\d+", "inscription": r"[1-9]\d*"}
_COUNTS = {"1": (1, 1), "?": (0, 1), "*": (0, 1 << 60), "+": (1, 1 << 60)}


def violations(document: str) -> list[str]:
    """Return where a document breaks the rules."""
    root = ET.fromstring(document)
    found = [] if root.tag == f"{{{NAMESPACE}}}pnml" else [f"the root is {root.tag}"]
    found += _element(root, "")
    return [*found, *_references(root)]


def _element(element: ET.Element, parent: str) -> Iterator[str]:
    tag = element.tag.removeprefix(f"{{{NAMESPACE}}}")
    rule = CHILDREN.get(f"{parent}/{tag}", CHILDREN.get(tag))
    if rule is None:
        yield f"`{tag}` in `{parent}`"
        return
    counts = Counter(child.tag.removeprefix(f"{{{NAMESPACE}}}") for child in element)
    yield from (f"`{name}` in `{tag}`" for name in counts if name not in rule)
    for name, times in rule.items():
        least, most = _COUNTS[times]
        if not least <= counts[name] <= most:
            yield f"{counts[name]} of `{name}` in `{tag}`"
    wanted = ATTRIBUTES.get(tag, {})
    if set(element.attrib) != set(wanted):
        yield f"attributes {sorted(element.attrib)} of `{tag}`"
    yield from (
        f"{name}={value!r} of `{tag}`" for name, value in element.attrib.items() if not _fits(wanted, name, value)
    )
    if tag == "text" and parent in TEXTS and not re.fullmatch(TEXTS[parent], element.text or ""):
        yield f"{element.text!r} in `{parent}`"
    if tag != "text" and (element.text or "").strip():
        yield f"text in `{tag}`"
    for child in element:
        yield from _element(child, tag)


def _fits(wanted: dict[str, str], name: str, value: str) -> bool:
    return bool(re.fullmatch(wanted.get(name, ""), value))


def _references(root: ET.Element) -> Iterator[str]:
    """Ids are unique, and an arc joins a place and a transition."""
    kinds = {element.get("id"): element.tag for element in root.iter() if element.get("id")}
    ids = [element.get("id") for element in root.iter() if element.get("id")]
    if len(kinds) != len(ids):
        yield "an id occurs twice"
    nodes = {f"{{{NAMESPACE}}}place", f"{{{NAMESPACE}}}transition"}
    for arc in root.iter(f"{{{NAMESPACE}}}arc"):
        if {kinds.get(arc.get("source")), kinds.get(arc.get("target"))} != nodes:
            yield f"arc {arc.get('id')} does not join a place and a transition"
