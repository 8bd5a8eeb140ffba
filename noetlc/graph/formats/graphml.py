"""The net as GraphML, which Gephi, yEd, Cytoscape and networkx read."""

from __future__ import annotations

from noetlc.graph.networkx_graph import to_networkx
from noetlc.graph.report import GraphReport


def render(report: GraphReport, unfold: bool = False) -> str:
    """Return the net as one GraphML document."""
    import networkx as nx

    return "\n".join(nx.generate_graphml(to_networkx(report.net), named_key_ids=True)) + "\n"
