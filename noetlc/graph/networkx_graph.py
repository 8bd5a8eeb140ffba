"""The net as a networkx graph: public, and what the analyses of `noetlc graph` work on."""

from __future__ import annotations

import json
from functools import cached_property
from itertools import pairwise
from typing import Any, TypeAlias

import networkx as nx

from noetlc.net.moves import Paths, branch_may_end, live_arcs, path_to
from noetlc.net.net import Net, NetArc
from noetlc.net.reach import Reach

Graph: TypeAlias = Any
"""A `networkx.MultiDiGraph`; networkx has no type hints of its own."""


def to_networkx(net: Net) -> Graph:
    """Return a net as a networkx graph: a node per step, an edge per arc, keyed by the arc's number.

    Nodes carry `kind`, `gate`, `tools`, `desc`, `entry`, `final` and `endings`; edges carry `guard`, `live`, `events`
    (the endings with which the arc can fire) and `reason` (why a dead arc never fires). Values are text, numbers and
    booleans, so that every format of networkx can write them.
    """
    graph: Graph = nx.MultiDiGraph(name=net.name, path=net.path)
    for step in net.steps:
        graph.add_node(
            step.name,
            kind=step.kind.value,
            gate=step.gate.value,
            mode="inclusive" if step.inclusive else "exclusive",
            tools=" ".join(step.tools),
            desc=step.desc,
            entry=step.index == net.entry,
            final=step.index == net.final,
            endings=" ".join(ending.event for ending in step.endings),
            **_place(step.where),
        )
    for step in net.steps:
        live = {arc.index for arc in live_arcs(step)}
        for arc in step.arcs:
            events = [
                ending.event
                for ending in step.endings
                if any(arc.index in fired for choice in ending.choices for fired in choice)
            ]
            graph.add_edge(
                step.name,
                net.steps[arc.target].name,
                key=arc.number,
                number=arc.number,
                guard=arc.label,
                live=arc.index in live,
                events=" ".join(events),
                reason=arc.reason.value if arc.reason else "",
                **_place(arc.where),
            )
    return graph


def graphml(net: Net) -> str:
    """Return a net as GraphML, which Gephi, yEd, Cytoscape and networkx read."""
    return "\n".join(nx.generate_graphml(to_networkx(net), named_key_ids=True)) + "\n"


def node_link(net: Net) -> str:
    """Return a net as node-link JSON, which D3 and `networkx.node_link_graph` read."""
    return json.dumps(nx.node_link_data(to_networkx(net), edges="edges"), indent=2, ensure_ascii=False) + "\n"


def _place(where: Any) -> dict[str, object]:
    return {"file": where.file, "line": where.line, "column": where.column} if where else {}


class NetworkxReach(Reach):
    """What tokens can reach, computed by networkx."""

    @cached_property
    def live(self) -> Graph:
        """The live arcs of the net; nodes are indices of steps, edges carry their `arc`."""
        graph: Graph = nx.MultiDiGraph()
        graph.add_nodes_from(range(len(self.net.steps)))
        graph.add_edges_from(
            (arc.source, arc.target, arc.index, {"arc": arc}) for arcs in self.paths.onward for arc in arcs
        )
        return graph

    @cached_property
    def graph(self) -> Graph:
        """The part of it that tokens from the entry can reach."""
        reached = {self.net.entry, *nx.descendants(self.live, self.net.entry)}
        return self.live if len(reached) == len(self.live) else self.live.subgraph(reached).copy()

    @cached_property
    def arrived(self) -> list[int]:
        return sorted(self.graph)

    @cached_property
    def components(self) -> list[list[int]]:
        """The strongly connected components, in reverse topological order."""
        condensed = self.condensation
        return [sorted(condensed.nodes[node]["members"]) for node in reversed(list(nx.topological_sort(condensed)))]

    @cached_property
    def condensation(self) -> Graph:
        """The acyclic graph of the components; nodes carry their `members`."""
        return nx.condensation(self.graph)

    @cached_property
    def first_arcs(self) -> dict[int, NetArc | None]:
        found: dict[int, NetArc | None] = {self.net.entry: None}
        for step, previous in nx.bfs_predecessors(self.graph, self.net.entry):
            found[step] = _first_arc(self.graph, previous, step)
        return found

    def shortest(self, start: int, end: int) -> list[NetArc] | None:
        """Return a shortest path between two steps, a cycle if they are the same; None if there is none."""
        if start == end:
            return self.paths.round_trip(start)
        try:
            steps = nx.shortest_path(self.live, start, end)
        except nx.NetworkXNoPath:
            return None
        return [_first_arc(self.live, one, other) for one, other in pairwise(steps)]


def _first_arc(graph: Graph, source: int, target: int) -> NetArc:
    edges = graph[source][target]
    arc: NetArc = edges[next(iter(edges))]["arc"]
    return arc


def networkx_reach(net: Net) -> NetworkxReach:
    return NetworkxReach(net, Paths(net))


def shortest_path(reach: NetworkxReach) -> list[int]:
    """Return the fewest steps from the entry to one where a branch may end; empty if there is none."""
    for step in reach.first_arcs:  # in order of distance
        if branch_may_end(reach.net.steps[step]):
            return [reach.net.entry, *(arc.target for arc in path_to(step, reach.first_arcs) or ())]
    return []


def longest_path(reach: NetworkxReach) -> list[int] | None:
    """Return the most steps in a row from the entry; None if a cycle makes them unlimited."""
    if reach.cycles:
        return None
    return list(nx.dag_longest_path(reach.graph))
