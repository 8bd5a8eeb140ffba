"""Dot and Mermaid: every step and arc is there, and no name can break out of its quotes."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable

import pytest

from noetlc.graph.formats import dot, mermaid
from noetlc.graph.report import DeadArc
from noetlc.net.net import Reason
from noetlvm.record import changed
from tests.noetlc.graph.pictures.playbooks import hostile_report, playbook, report_of

SOURCE = playbook(12)


@pytest.mark.parametrize("unfold", [False, True])
@pytest.mark.parametrize("render", [dot.render, mermaid.render])
def test_every_step_and_arc_is_there(render: Callable[..., str], unfold: bool) -> None:
    report = report_of(SOURCE)
    text = render(report, unfold)
    assert all(step.name in text for step in report.net.steps)
    arrow = re.compile(r"^  n\d+ (?:->|-->|-\.->)", re.MULTILINE)
    assert len(arrow.findall(text)) == 1 + sum(len(step.arcs) for step in report.net.steps)


@pytest.mark.parametrize("render", [dot.render, mermaid.render])
def test_tasks_appear_only_when_unfolded(render: Callable[..., str]) -> None:
    report = report_of(SOURCE)
    assert "keep" not in render(report)
    assert "keep" in render(report, True)


def test_a_dot_string_ends_where_it_should() -> None:
    text = dot.render(hostile_report())
    for line in text.splitlines():
        assert re.sub(r'"(?:[^"\\]|\\.)*"', "", line).count('"') == 0, line


def test_mermaid_labels_hold_nothing_that_means_something() -> None:
    text = mermaid.render(hostile_report())
    for label in re.findall(r'"([^"]*)"', text):
        assert re.fullmatch(r"[\w \-.,:/+*=!?()…→'#;<>]*", label), label
        assert not re.search(r"<(?!br/>)", label), label


def test_dead_arcs_and_failures_look_different() -> None:
    report = report_of(SOURCE)
    step = next(step for step in report.net.steps if step.arcs)
    dead = DeadArc(step.name, 1, report.net.steps[step.arcs[0].target].name, Reason.CONSTANT)
    shown = changed(report, dead_arcs=(dead,))
    assert "style=dashed" in dot.render(shown)
    assert "-.->" in mermaid.render(shown)
    assert 'color="#b3261e"' in dot.render(report)
    assert "linkStyle" in mermaid.render(report)


def test_graphviz_reads_it(record_property: Callable[[str, object], None]) -> None:
    """Graphviz checks it where it is installed; elsewhere only quotes and braces are checked."""
    program = shutil.which("dot")
    for report in (report_of(SOURCE), hostile_report()):
        text = dot.render(report, True)
        assert text.count("{") >= text.count("subgraph") + 1
        if program:
            subprocess.run([program, "-Tcanon"], input=text.encode(), check=True, capture_output=True)
    record_property("graphviz", f"read back by {program}" if program else "not on this machine")
