"""Puts script files into the playbook: `script: {uri: ./count.py}` becomes the text of the file.

The bundle then holds what runs, whatever becomes of the file. An address that is a template, a web address and a file
that cannot be read here are left to the worker, which reads them when the task runs.
"""

from __future__ import annotations

from collections.abc import Callable

from noetlc.syntax import ast
from noetlc.syntax.nodes import Mapping, MappingEntry, Node, Scalar
from noetlc.syntax.tree import Rewriter
from noetlvm.record import changed

ReadScript = Callable[[str], str | None]
"""Returns the text of a file by its address; None if it cannot be read here."""

SCRIPT = "script"
_FILE = "file"
_MARKS = ("{{", "{%", "{#")


def with_scripts(playbook: ast.Playbook, read: ReadScript) -> ast.Playbook:
    """Return the playbook with the text of its script files."""
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
        address = script_file(entry.value) if entry.key.text == SCRIPT else None
        text = self._read(address) if address else None
        if text is None or "endraw" in text:
            return entry
        if any(mark in text for mark in _MARKS):
            text = "{% raw %}" + text + "{% endraw %}"
        return MappingEntry(entry.key, Scalar(entry.value.span, text, text, "|"))


def script_file(script: Node) -> str | None:
    """Return the path of a script that is a file with a literal address."""
    uri = script.get("uri") if isinstance(script, Mapping) else None
    if not isinstance(script, Mapping) or not isinstance(uri, Scalar) or uri.is_template:
        return None
    source = script.get("source")
    kind = source.get("type") if isinstance(source, Mapping) else source
    scheme = kind.text if isinstance(kind, Scalar) else uri.text.partition("://")[0] if "://" in uri.text else _FILE
    return uri.text.removeprefix("file://") if scheme == _FILE and isinstance(uri.value, str) else None
