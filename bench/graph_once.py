"""Goes once over a generated net in a process of its own and prints the seconds as JSON. For the benchmarks.

Usage: python -m bench.graph_once noetlc|pm4py|snakes STEPS
"""

from __future__ import annotations

import gc
import json
import sys
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

from bench.generate_nets import generate_net
from noetlc.graph.analyse import analyse
from noetlc.graph.formats.pnml import petri_net
from noetlc.net.program import program_net as build_net
from noetlvm.bytecode.program import PlaybookCode


def main() -> int:
    contestant, steps = sys.argv[1], int(sys.argv[2])
    prepared = _PREPARE[contestant](generate_net(steps))
    gc.set_threshold(200_000, 50, 50)  # as the command line has it
    began = time.perf_counter()
    prepared()
    print(json.dumps({"seconds": time.perf_counter() - began}))
    return 0


def _ours(playbook: PlaybookCode) -> Callable[[], object]:
    return lambda: analyse(build_net(playbook))


def _pm4py(playbook: PlaybookCode) -> Callable[[], object]:
    kinds: Any = import_module("pm4py.objects.petri_net.obj")
    petri_utils: Any = import_module("pm4py.objects.petri_net.utils.petri_utils")
    reachability_graph: Any = import_module("pm4py.objects.petri_net.utils.reachability_graph")
    drawn = petri_net(build_net(playbook))
    net = kinds.PetriNet("net")
    nodes: list[Any] = [
        kinds.PetriNet.Place(node.id) if node.is_place else kinds.PetriNet.Transition(node.id, node.id)
        for node in drawn.nodes
    ]
    for node, made in zip(drawn.nodes, nodes, strict=True):
        (net.places if node.is_place else net.transitions).add(made)
    for source, target, weight in drawn.arcs:
        petri_utils.add_arc_from_to(nodes[source], nodes[target], net, weight)
    start = kinds.Marking({made: node.tokens for node, made in zip(drawn.nodes, nodes, strict=True) if node.tokens})
    return lambda: reachability_graph.construct_reachability_graph(net, start)


def _snakes(playbook: PlaybookCode) -> Callable[[], object]:
    snakes: Any = import_module("snakes.nets")
    drawn = petri_net(build_net(playbook))
    net = snakes.PetriNet("net")
    for node in drawn.nodes:
        if node.is_place:
            net.add_place(snakes.Place(node.id, [snakes.dot] * node.tokens))
        else:
            net.add_transition(snakes.Transition(node.id))
    for source, target, weight in drawn.arcs:
        one = snakes.Value(snakes.dot)
        moved = snakes.MultiArc([one] * weight) if weight > 1 else one
        ends = drawn.nodes[source].id, drawn.nodes[target].id
        if drawn.nodes[source].is_place:
            net.add_input(*ends, moved)
        else:
            net.add_output(*reversed(ends), moved)
    return lambda: snakes.StateGraph(net).build()


_PREPARE: dict[str, Callable[[PlaybookCode], Callable[[], object]]] = {
    "noetlc": _ours,
    "pm4py": _pm4py,
    "snakes": _snakes,
}


if __name__ == "__main__":
    sys.exit(main())
