"""Every graph case of the conformance suite, against this implementation."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from noetlc.graph.run import GraphFormat, Order, graph
from tests.whole.conformance.suite import Case, read_cases

if TYPE_CHECKING:
    from pathlib import Path

CASES = read_cases("graph")


def reported(case: Case, folder: Path) -> dict[str, Any]:
    out = folder / "report.json"
    assert graph(Order((str(case.path),), GraphFormat.JSON, str(out))) == 0
    read: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    return read


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_graph_answers_as_the_case_expects(case: Case, tmp_path: Path) -> None:
    read = reported(case, tmp_path)
    for field in ("can_complete", "bounded", "max_tokens"):
        assert read[field] == case.expect[field], field
    for field in ("reachable", "unreachable"):
        assert sorted(read[field]) == sorted(case.expect[field]), field
    assert listed(read["dead_arcs"], "step", "arc", "reason") == listed(
        case.expect["dead_arcs"], "step", "arc", "reason"
    )
    assert listed(read["findings"], "kind", "step") == listed(case.expect["findings"], "kind", "step")
    assert all(finding["witness"] and finding["message"] for finding in read["findings"])


def listed(rows: list[dict[str, Any]], *fields: str) -> list[tuple[str, ...]]:
    return sorted(tuple(str(row[field]) for field in fields) for row in rows)
