"""Prints a syntax tree as YAML. Reading the text again gives the same tree; comments and layout are lost."""

from __future__ import annotations

from typing import Any

import yaml

from noetlc.syntax import ast
from noetlc.syntax.nodes import Node, Scalar, Sequence
from noetlc.syntax.yaml_reader import NO_BREAKS, plain_value
from noetlvm.record import fields_of

_NOT_KEYS = frozenset({"span", "keys", "extra", "word"})


def print_playbook(playbook: ast.Playbook) -> str:
    return yaml.dump(
        tree_data(playbook), Dumper=_Dumper, sort_keys=False, allow_unicode=True, default_flow_style=False, width=120
    )


def tree_data(struct: ast.Struct) -> dict[str, Any]:
    """Return an object as plain data, in the order in which its keys were written."""
    if isinstance(struct, ast.Choose):
        return {"choose": [tree_data(branch) for branch in struct.choose]}
    if isinstance(struct, ast.Repeat):
        return {struct.word: _fields(struct)}
    if isinstance(struct, ast.Task):
        return _task(struct)
    if isinstance(struct, ast.Workbook) and struct.tasks is not None:
        return {"tasks": {task.name.text: [tree_data(entry) for entry in task.entries] for task in struct.tasks}}
    return _fields(struct)


def _task(task: ast.Task) -> dict[str, Any]:
    body = _fields(task)
    label = body.pop("label", None)
    if label is None:
        return body
    return {"name": label, **body} if "name" in task.keys and task.get_extra("name") is None else {label: body}


def _fields(struct: ast.Struct) -> dict[str, Any]:
    data = {entry.key.text: _value(entry.value) for entry in struct.extra}
    for name in fields_of(type(struct)):
        value = getattr(struct, name)
        if name not in _NOT_KEYS and value is not None:
            data[ast.yaml_key(name)] = _value(value)
    order = {key: index for index, key in enumerate(struct.keys)}
    return dict(sorted(data.items(), key=lambda item: order.get(item[0], -1)))


def _value(value: Any) -> Any:
    if isinstance(value, ast.Struct):
        return tree_data(value)
    if isinstance(value, tuple):
        return [_value(item) for item in value]
    return _exact(value)


class _Quoted(str):
    """A string that would read as something else without quotes."""


def _exact(node: Node) -> Any:
    """Plain data in which every string is still a string when it is read again."""
    if isinstance(node, Scalar):
        return _quoted(node.text) if isinstance(node.value, str) else node.value
    if isinstance(node, Sequence):
        return [_exact(item) for item in node.items]
    return {_quoted(entry.key.text): _exact(entry.value) for entry in node.entries}


def _quoted(text: str) -> str:
    """Mark a text that without quotes would be a number, a boolean, null, a merge key, or be cut into lines."""
    needs_quotes = plain_value(text) != text or text == "<<" or any(character in text for character in NO_BREAKS)
    return _Quoted(text) if needs_quotes else text


_EMITTER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
"""libyaml's where there is one: it writes the same text many times faster."""


class _Dumper(_EMITTER):  # type: ignore[misc]
    """Writes no aliases, and quotes what YAML 1.2 would not read as a string."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


_Dumper.add_representer(
    _Quoted, lambda dumper, data: dumper.represent_scalar("tag:yaml.org,2002:str", str(data), style='"')
)
