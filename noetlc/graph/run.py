"""One run of `noetlc graph`, from a file to an exit code: reads sources and bundles alike, analyses, writes."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from noetlc.files import write_file
from noetlc.graph.analyse import analyse, path_witness
from noetlc.graph.difference import only_in, text
from noetlc.graph.formats import html
from noetlc.graph.formats.json import witness_data
from noetlc.graph.formats.text import witness_text
from noetlc.graph.networkx_graph import graphml, node_link
from noetlc.graph.reading import Drawable, read_nets
from noetlc.graph.report import GraphReport
from noetlc.net.findings import NetFindingKind
from noetlvm.command_line.process import FAILURE, SUCCESS, CommandError
from noetlvm.nearest import suggestion

ALL = "all"


class GraphFormat(StrEnum):
    """How to show a report; each is a module of `noetlc.graph.formats`."""

    TEXT = "text"
    JSON = "json"
    DOT = "dot"
    MERMAID = "mermaid"
    PNML = "pnml"
    SVG = "svg"
    HTML = "html"
    GRAPHML = "graphml"
    NODE_LINK = "node-link"


class Order(NamedTuple):
    """One command line."""

    files: tuple[str, ...]
    format: GraphFormat = GraphFormat.TEXT
    output: str | None = None
    fail_on: tuple[str, ...] = ()
    path: tuple[str | None, str | None] | None = None
    """From which step to which; None for the entry, or for the end of the run."""
    diff: bool = False
    unfold: bool = False
    playbook: str | None = None
    """Path of the playbook that is meant; None for the main one."""
    config: str | None = None


def graph(order: Order) -> int:
    fail_on = _kinds(order.fail_on)
    _require_files(order)
    needs_code = order.unfold or order.format is GraphFormat.HTML
    read = [read_nets(file, needs_code, order.config) for file in order.files]
    errors = FAILURE if any(one.has_errors for one in read) else SUCCESS
    if not all(one.nets for one in read):
        return FAILURE
    reports = [_report(one, order.playbook, fail_on) for one in read]
    if order.diff:
        return max(errors, _show_difference(order, reports[0], reports[1], fail_on))
    report = reports[0]
    if order.path is not None:
        return max(errors, _show_path(order, report, *order.path))
    if order.format is GraphFormat.TEXT and order.output is None and sys.stdout.isatty():
        from noetlc.graph.formats.terminal import show

        show(report)
    else:
        _write(order, _rendered(order, report, read[0].sources))
    return FAILURE if any(finding.kind in fail_on for finding in report.findings) else errors


def _require_files(order: Order) -> None:
    if order.diff and len(order.files) != 2:
        raise CommandError("--diff compares two files: noetlc graph --diff OLD NEW")
    if not order.diff and len(order.files) != 1:
        raise CommandError("name one playbook or bundle; two only with --diff")
    if (order.diff or order.path) and order.format not in (GraphFormat.TEXT, GraphFormat.JSON):
        raise CommandError("--diff, --path, --from and --to print text, or json with --format json")


_OLDER_WORDS = {"critical": NetFindingKind.UNHANDLED_FAILURE.value}


def _kinds(words: tuple[str, ...]) -> frozenset[NetFindingKind]:
    known = [*NetFindingKind, ALL]
    words = tuple(_OLDER_WORDS.get(word, word) for word in words)
    for word in words:
        if word not in known:
            names = ", ".join(known)
            raise CommandError(f"no finding is called `{word}`: --fail-on takes {names}.{suggestion(word, known)}")
    return frozenset(NetFindingKind) if ALL in words else frozenset(NetFindingKind(word) for word in words)


# ---- reading


def _report(read: Drawable, playbook: str | None, requested: frozenset[NetFindingKind]) -> GraphReport:
    if playbook is None:
        return analyse(read.nets[0], read.name, read.silenced, requested)
    paths = [net.path for net in read.nets]
    if playbook not in paths:
        raise CommandError(f"{read.name} has no playbook `{playbook}`.{suggestion(playbook, paths)}")
    return analyse(read.nets[paths.index(playbook)], read.name, read.silenced, requested)


# ---- writing


def _rendered(order: Order, report: GraphReport, sources: dict[str, str]) -> str:
    if order.format is GraphFormat.HTML:
        return html.render(report, order.unfold, sources)
    if order.format in (GraphFormat.GRAPHML, GraphFormat.NODE_LINK):
        return graphml(report.net) if order.format is GraphFormat.GRAPHML else node_link(report.net)
    module = importlib.import_module(f"noetlc.graph.formats.{order.format.value}")
    return str(module.render(report, order.unfold))


def _write(order: Order, text: str) -> None:
    write_file(order.output, text.encode("utf-8"))


def _show_difference(order: Order, old: GraphReport, new: GraphReport, fail_on: frozenset[NetFindingKind]) -> int:
    went, appeared = only_in(old, new), only_in(new, old)
    if order.format is GraphFormat.JSON:
        _write(order, json.dumps({"went": went.to_json(), "appeared": appeared.to_json()}, indent=2) + "\n")
    else:
        _write(order, text(went, appeared))
    return FAILURE if any(finding.kind in fail_on for finding in appeared.findings) else SUCCESS


def _show_path(order: Order, report: GraphReport, start: str | None, end: str | None) -> int:
    _require_steps(report, [name for name in (start, end) if name is not None])
    witness = path_witness(report.net, start, end)
    if order.format is GraphFormat.JSON:
        _write(order, json.dumps(None if witness is None else witness_data(witness), indent=2) + "\n")
    elif witness is not None:
        _write(order, witness_text(witness))
    if witness is None:
        print(f"noetlc: no run leads from {start or 'the entry'} to {end or 'an end'}", file=sys.stderr)
        return FAILURE
    return SUCCESS


def _require_steps(report: GraphReport, names: Iterable[str]) -> None:
    known = [step.name for step in report.net.steps]
    for name in names:
        if name not in known:
            raise CommandError(f"{report.source} has no step `{name}`.{suggestion(name, known)}")
