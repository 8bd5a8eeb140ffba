"""The net as a networkx graph, as GraphML and as node-link JSON; playbooks with errors are drawn if they have a net."""

from __future__ import annotations

import io
import json
from pathlib import Path

import networkx as nx
import pytest

from noetlc.analysis import routers
from noetlc.analysis.formulas import Formula, OperandTest
from noetlc.graph import to_networkx
from noetlc.graph.run import GraphFormat, Order, graph
from noetlc.rules.catalogue import whole_playbook

STEPS = """
- step: start
  desc: Decides.
  tool: {kind: http, url: https://example.org}
  next:
    arcs:
      - step: finish
        when: "{{ event.name == 'step.done' }}"
      - step: finish
        when: "{{ event.name == 'step.failed' }}"
      - step: lost
        when: "{{ event.name == 'step.done' }}"
- step: finish
  tool: {kind: noop}
- step: lost
  tool: {kind: noop}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "net.yaml"
    path.write_text(whole_playbook(STEPS), encoding="utf-8")
    return path


def render(file: Path, format: GraphFormat, tmp_path: Path) -> str:
    output = tmp_path / "out"
    assert graph(Order((str(file),), format, str(output))) == 0
    return output.read_text(encoding="utf-8")


def test_steps_are_nodes_and_arcs_are_edges(file: Path) -> None:
    net = to_networkx(file)
    assert list(net) == ["start", "finish", "lost"]
    assert net.nodes["start"]["tools"] == "http"
    assert net.nodes["start"]["desc"] == "Decides."
    assert net.nodes["start"]["entry"]
    assert {number: edge["events"] for _, _, number, edge in net.edges(keys=True, data=True)} == {
        1: "step.done",
        2: "step.failed",
        3: "",
    }
    assert net.edges["start", "lost", 3]["reason"] == "shadowed"
    assert not net.edges["start", "lost", 3]["live"]


def test_graphml_and_node_link_are_read_back_by_networkx(file: Path, tmp_path: Path) -> None:
    net = to_networkx(file)
    xml = render(file, GraphFormat.GRAPHML, tmp_path)
    from_xml = nx.read_graphml(io.BytesIO(xml.encode()), force_multigraph=True)
    from_json = nx.node_link_graph(json.loads(render(file, GraphFormat.NODE_LINK, tmp_path)), edges="edges")
    for read in (from_xml, from_json):
        assert dict(read.nodes(data=True)) == dict(net.nodes(data=True))
        edges = [data for *_, data in read.edges(data=True)]
        assert [edge["guard"] for edge in edges] == [data["guard"] for *_, data in net.edges(data=True)]


def test_a_playbook_with_errors_is_drawn_if_it_has_a_net(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(file.read_text().replace("{kind: noop}", "{kind: noop, spec: {policy: {rules: [{then: 1}]}}}"))
    output = tmp_path / "out.json"
    assert graph(Order((str(file),), GraphFormat.JSON, str(output))) == 1
    assert "error[" in capsys.readouterr().err
    found = json.loads(output.read_text())
    assert found["steps"] == 3
    assert [(one["kind"], one["code"]) for one in found["findings"]] == [("unreachable", None), ("dead-arc", "P408")]


def test_errors_that_leave_no_net_are_reported(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(file.read_text().replace("step: lost", "step: nowhere", 1))
    assert graph(Order((str(file),), GraphFormat.TEXT)) == 1
    assert "nowhere" in capsys.readouterr().err
    with pytest.raises(ValueError, match="errors that leave no net"):
        to_networkx(file)


def test_a_router_of_many_arcs_is_evaluated_in_proportion_to_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    count = 0
    evaluate = routers.value_of

    def counted(formula: Formula, samples: dict[str, object]) -> bool:
        nonlocal count
        count += 1
        return evaluate(formula, samples)

    monkeypatch.setattr(routers, "value_of", counted)
    guards: list[Formula] = [OperandTest("ctx.kind", "==", f"v{number}") for number in range(2_000)]
    (choice,) = routers.choices(guards, inclusive=False)
    assert choice == ((), *((number,) for number in range(2_000)))
    assert count < 10_000
