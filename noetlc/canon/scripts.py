"""Puts scripts into the playbook: `script: {uri: ./count.py}` becomes the text of the file, a web address what it has.

The bundle then holds what runs, even if the file changes. An address that is a template or cannot be read here is
left to the worker, which reads it when the task runs.
"""

from __future__ import annotations

from collections.abc import Callable

from noetlc.syntax import ast
from noetlc.syntax.nodes import Mapping, MappingEntry, Node, Scalar, scalars
from noetlc.syntax.tree import Rewriter
from noetlvm.record import changed

ReadScript = Callable[[str], str | None]
"""Returns the text of a script by its path or web address; None if it cannot be read here."""

SCRIPT = "script"
_FILE = "file"
_WEB = ("http", "https")
_MARKS = ("{{", "{%", "{#")


def with_scripts(playbook: ast.Playbook, read: ReadScript) -> ast.Playbook:
    return _Embedder(read).rewrite(playbook)


class _Embedder(Rewriter):
    def __init__(self, read: ReadScript) -> None:
        self._read = read

    def entry(self, entry: ast.PipelineEntry) -> ast.PipelineEntry:
        return self.rewrite(entry)

    def struct(self, struct: ast.Struct) -> ast.Struct:
        if not isinstance(struct, ast.Task):
            return struct
        extra = tuple(self._embedded(entry) for entry in struct.extra)
        is_same = all(made is entry for made, entry in zip(extra, struct.extra, strict=True))
        return struct if is_same else changed(struct, extra=extra)

    def _embedded(self, entry: MappingEntry) -> MappingEntry:
        address = script_address(entry.value) if entry.key.text == SCRIPT else None
        text = self._read(address) if address else None
        if text is None or "endraw" in text:
            return entry
        if any(mark in text for mark in _MARKS):
            text = "{% raw %}" + text + "{% endraw %}"
        return MappingEntry(entry.key, Scalar(entry.value.span, text, text, "|"))


def script_address(script: Node) -> str | None:
    """Return the path or the web address of a script that is written out; None if only the worker can resolve it."""
    if not isinstance(script, Mapping) or any(leaf.is_template for leaf in scalars(script)):
        return None
    uri, source = script.get("uri"), script.get("source")
    if not isinstance(uri, Scalar) or not isinstance(uri.value, str):
        return None
    parts = source if isinstance(source, Mapping) else None
    kind = parts.get("type") if parts else source
    scheme = kind.text if isinstance(kind, Scalar) else uri.text.partition("://")[0] if "://" in uri.text else _FILE
    if scheme == _FILE:
        return uri.text.removeprefix("file://")
    if scheme not in _WEB or (parts and parts.get("headers")):
        return None  # headers may be meant for the worker's network only
    base = parts.get("endpoint") if parts else None
    if "://" in uri.text:
        return uri.text
    return f"{base.text.rstrip('/')}/{uri.text.lstrip('/')}" if isinstance(base, Scalar) and base.text else None
