"""What a playbook can do, for all runs at once: `noetlc graph`, and the net as a networkx graph."""

from __future__ import annotations

from os import PathLike, fspath
from typing import TYPE_CHECKING, Any

from noetlc.graph.networkx_graph import to_networkx as convert
from noetlc.graph.reading import read_nets

if TYPE_CHECKING:
    from noetlc.net.net import Net


def to_networkx(source: Net | str | PathLike[str]) -> Any:
    """Return a net as a `networkx.MultiDiGraph`: of a playbook's or bundle's file, or of a net.

    Raises ValueError for a playbook whose errors leave no net. docs/graph.md lists the attributes.
    """
    if not isinstance(source, str | PathLike):
        return convert(source)
    nets = read_nets(fspath(source)).nets
    if not nets:
        raise ValueError(f"{fspath(source)} has errors that leave no net; `noetlc lint` lists them")
    return convert(nets[0])
