"""A graph report as JSON. The schema is documented on the page about `noetlc graph`; fields are only ever added."""

from __future__ import annotations

import json
from typing import Any

from noetlc.graph.report import Firing, GraphFinding, GraphReport
from noetlc.net.net import Where
from noetlvm.record import as_data

SCHEMA_VERSION = 1


def render(report: GraphReport, unfold: bool = False) -> str:
    return json.dumps(report_data(report), indent=2, ensure_ascii=False) + "\n"


def report_data(report: GraphReport) -> dict[str, Any]:
    """Return a report as plain data. `critical` is an older name of `unhandled_failures`."""
    return {
        "version": SCHEMA_VERSION,
        "source": report.source,
        "name": report.net.name,
        "path": report.net.path,
        "steps": len(report.net.steps),
        "entry": report.net.steps[report.net.entry].name,
        "final": None if report.net.final is None else report.net.steps[report.net.final].name,
        "reachable": list(report.reachable),
        "unreachable": [one.step for one in report.unreachable],
        "unreachable_reasons": {one.step: one.reason.value for one in report.unreachable},
        "dead_arcs": [as_data(dead) for dead in report.dead_arcs],
        "can_complete": report.can_complete,
        "bounded": report.bounded,
        "max_tokens": report.max_tokens,
        "max_tokens_witness": witness_data(report.max_tokens_witness),
        "step_tokens": report.step_tokens,
        "cycles": [list(cycle) for cycle in report.cycles],
        "always_before": report.always_before,
        "always_after": report.always_after,
        "concurrent": [list(pair) for pair in report.concurrent],
        "concurrent_complete": report.concurrent_complete,
        "shortest_path": list(report.shortest_path),
        "longest_path": None if report.longest_path is None else list(report.longest_path),
        "unhandled_failures": list(report.unhandled_failures),
        "critical": list(report.unhandled_failures),
        "findings": [finding_data(finding) for finding in report.findings],
        "left_out": {kind.value: count for kind, count in report.left_out.items()},
    }


def finding_data(finding: GraphFinding) -> dict[str, Any]:
    return {
        "kind": finding.kind.value,
        "severity": finding.severity.value,
        "code": finding.code or None,
        "step": finding.step,
        "arc": finding.arc,
        "steps": list(finding.steps),
        "message": finding.message,
        "help": finding.help,
        **where_data(finding.where),
        "witness": witness_data(finding.witness),
    }


def witness_data(witness: tuple[Firing, ...]) -> list[dict[str, Any]]:
    return [_firing(firing) for firing in witness]


def where_data(where: Where | None) -> dict[str, Any]:
    """Return a place as plain data; nulls where a bundle has no debug map."""
    if where is None:
        return {"file": None, "line": None, "column": None}
    return {"file": where.file, "line": where.line, "column": where.column}


def _firing(firing: Firing) -> dict[str, Any]:
    arcs = [
        {"arc": number, "target": target, **where_data(where)}
        for number, target, where in zip(firing.arcs, firing.targets, firing.arcs_where, strict=True)
    ]
    return {"step": firing.step, "event": firing.event, "arcs": arcs, **where_data(firing.where)}
