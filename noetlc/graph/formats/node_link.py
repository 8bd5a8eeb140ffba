"""The net as node-link JSON: `networkx.node_link_graph` and D3 read it."""

from __future__ import annotations

import json

from noetlc.graph.networkx_graph import to_networkx
from noetlc.graph.report import GraphReport


def render(report: GraphReport, unfold: bool = False) -> str:
    """Return the net as one JSON object."""
    import networkx as nx

    return json.dumps(nx.node_link_data(to_networkx(report.net), edges="edges"), indent=2, ensure_ascii=False) + "\n"
