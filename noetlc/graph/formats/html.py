"""The net as one page that needs nothing else: the picture, what was found, the source, and the script that joins them.

All text from a playbook is escaped where it is written, and the page's policy allows no script but its own and no
request at all. What is not shown at first travels compressed.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from typing import Any
from zlib import compress

from jinja2 import Environment
from markupsafe import Markup, escape

from noetlc.graph.formats.palette import asset, variables
from noetlc.graph.formats.svg import svg
from noetlc.graph.grouping import LARGE, Grouping
from noetlc.graph.picture import Picture, draw, has_flow, inside, picture_of
from noetlc.graph.report import GraphFinding, GraphReport
from noetlc.net.net import Where
from noetlc.report.junit import cleaned

_BYTES_MAX = 2_900_000
"""What is dropped first when the page would get larger than this: see `_OPTIONAL`."""
_OPTIONAL = ("unfolded", "all", "inner", "witnesses", "groups", "sources")
_DRAW_ALL_MAX = 20_000
_INNER_MAX = 2_000
_FINDINGS_MAX = 300
_MOVES_MAX = 60
"""Of a longer firing sequence, the page shows the beginning and the end."""
_QUOTED = re.compile("`([^`]+)`")


def render(report: GraphReport, unfold: bool = False, sources: Mapping[str, str] | None = None) -> str:
    """Return the page. `sources` are the files that the report's lines are in, by the names that it gives them."""
    grouping = Grouping(report) if len(report.net.steps) > LARGE else None
    main = grouping.overview() if grouping else picture_of(report)
    stored = _stored(report, grouping, sources or {})
    picture = _svg(main, report.net.name)
    packed = _packed(stored)
    for name in _OPTIONAL:
        if len(picture) + len(packed) <= _BYTES_MAX:
            break
        stored.pop(name, None)
        packed = _packed(stored)
    flags = {"data-grouped": grouping is not None, "data-unfolded": unfold}
    return _page(report, picture, packed, "".join(f" {name}" for name, is_set in flags.items() if is_set))


# ---- what travels compressed


def _stored(report: GraphReport, grouping: Grouping | None, sources: Mapping[str, str]) -> dict[str, Any]:
    steps = report.net.steps
    small = grouping is None
    wanted: dict[str, tuple[bool, Callable[[], Any]]] = {
        "sources": (True, lambda: dict(sources)),
        "groups": (not small, lambda: _groups(grouping)),
        "witnesses": (True, lambda: [_witness(one) for one in report.findings[:_FINDINGS_MAX]]),
        "inner": (
            len(steps) <= _INNER_MAX,
            lambda: {step.name: _svg(inside(step), step.name) for step in steps if has_flow(step)},
        ),
        "all": (not small and len(steps) <= _DRAW_ALL_MAX, lambda: _svg(picture_of(report), report.net.name)),
        "unfolded": (small and any(map(has_flow, steps)), lambda: _svg(picture_of(report, True), "")),
    }
    stored: dict[str, Any] = {"steps": list(_steps(report, grouping))}
    return stored | {name: make() for name, (is_wanted, make) in wanted.items() if is_wanted}


def _steps(report: GraphReport, grouping: Grouping | None) -> Iterator[dict[str, Any]]:
    net = report.net
    dead = {(arc.step, arc.arc) for arc in report.dead_arcs}
    for step in net.steps:
        arcs = [
            {"to": net.steps[arc.target].name, "when": arc.label, "dead": (step.name, arc.number) in dead}
            | _place(arc.where)
            for arc in step.arcs
        ]
        known = {"name": step.name, "kind": step.kind.value, "arcs": arcs} | _place(step.where)
        tokens = report.step_tokens.get(step.name, 0)
        known["tokens"] = "without bound" if tokens is None else tokens
        if grouping is not None:
            known["group"] = grouping.groups[grouping.group_of[step.index]].key
        yield known


def _witness(finding: GraphFinding) -> list[dict[str, Any]]:
    """Return a firing sequence; of a long one, beginning and end."""
    moves = [
        {"step": move.step, "event": move.event, "to": list(move.targets)} | _place(move.where)
        for move in finding.witness
    ]
    if len(moves) <= _MOVES_MAX:
        return moves
    return [*moves[: _MOVES_MAX // 2], {"left_out": len(moves) - _MOVES_MAX}, *moves[-_MOVES_MAX // 2 :]]


def _place(where: Where | None) -> dict[str, Any]:
    return {"file": where.file, "line": where.line} if where else {}


def _groups(grouping: Grouping | None) -> dict[str, str]:
    if grouping is None:
        return {}
    return {group.key: _svg(grouping.picture(number), group.key) for number, group in enumerate(grouping.groups)}


def _svg(picture: Picture, title: str) -> str:
    return svg(draw(picture), title=title)


def _packed(stored: dict[str, Any]) -> str:
    data = json.dumps(stored, ensure_ascii=True, separators=(",", ":")).encode("ascii")
    return b64encode(compress(data, 9)).decode("ascii")


# ---- the page


def _page(report: GraphReport, picture: str, packed: str, flags: str) -> str:
    script = asset("page.js")
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters["clean"] = cleaned
    environment.filters["quoted"] = _quoted
    return environment.from_string(asset("page.html")).render(
        report=report,
        policy=_policy(script),
        style=Markup(variables() + asset("picture.css") + asset("page.css")),
        facts=_facts(report),
        findings=report.findings[:_FINDINGS_MAX],
        further=max(0, len(report.findings) - _FINDINGS_MAX),
        flags=flags,
        picture=Markup(picture),
        stored=packed,
        script=Markup(script),
    )


def _policy(script: str) -> str:
    own = b64encode(sha256(script.encode("utf-8")).digest()).decode("ascii")
    return f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{own}'; img-src data:"


def _facts(report: GraphReport) -> dict[str, str]:
    return {
        "Steps": f"{len(report.net.steps):,}",
        "Reachable": f"{len(report.reachable):,}",
        "Can always complete": "yes" if report.can_complete else "no",
        "Tokens at once": "without bound" if not report.bounded else str(report.max_tokens),
        "Longest path": f"{len(report.longest_path):,} steps" if report.longest_path is not None else "without end",
    }


def _quoted(message: str) -> Markup:
    """Return a message as HTML; what it quotes between backticks is code."""
    return Markup(_QUOTED.sub(r"<code>\1</code>", str(escape(cleaned(message)))))
