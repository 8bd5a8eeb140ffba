"""Objects of the playbook as plain data, for settings that the compiler hands on without a look at them."""

from __future__ import annotations

from typing import cast

from noetlc.syntax import nodes
from noetlc.syntax.ast import Struct, attribute
from noetlc.syntax.nodes import Entry
from noetlvm.bytecode.program import Value


def node_data(node: nodes.Node) -> Value:
    """Return a YAML node as data."""
    return cast("Value", nodes.plain(node))


def entries_data(entries: tuple[Entry, ...]) -> dict[str, Value]:
    """Return the fields of a mapping as data, in the order written."""
    return {entry.key.text: node_data(entry.value) for entry in entries}


def struct_data(struct: Struct | None, *without: str) -> dict[str, Value]:
    """Return an object as data: what was written, but for the keys in `without`.

    Its words come by name, then its open fields as written, so that the order of words makes no difference.
    """
    if struct is None:
        return {}
    found: dict[str, Value] = {}
    for key in sorted(struct.keys):
        value = None if key in without else getattr(struct, attribute(key), None)
        if isinstance(value, Struct):
            found[key] = struct_data(value)
        elif isinstance(value, nodes.Scalar | nodes.Sequence | nodes.Mapping):
            found[key] = node_data(value)
    return found | entries_data(tuple(entry for entry in struct.extra if entry.key.text not in without))
