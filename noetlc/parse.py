"""The front end alone: one file in, its tree and its problems out. No rule runs.

`noetlc parse` and the conformance cases of the stage `parse` use it.
"""

from __future__ import annotations

import json
from typing import Any

from noetlc.analysis.model import Model
from noetlc.files import read_file
from noetlc.syntax import ast
from noetlc.syntax.input import DEFAULT_LIMITS
from noetlc.syntax.playbook_parser import parse_playbook
from noetlc.syntax.playbook_printer import print_playbook, tree_data
from noetlc.syntax.span import Source, Span
from noetlc.syntax.yaml_reader import Document, decode, read_document
from noetlvm.record import Record


class ParsedFile(Record):
    """A file's tree and its problems."""

    source: Source
    playbook: ast.Playbook | None
    problems: tuple[dict[str, Any], ...]
    """Each with kind, message, help and 1-based line and column; ordered by position."""

    def as_json(self) -> str:
        """Return `{ok, problems, playbook}` as JSON text."""
        tree = tree_data(self.playbook) if self.playbook else None
        value = {"ok": not self.problems, "problems": list(self.problems), "playbook": tree}
        return json.dumps(value, indent=2, ensure_ascii=False) + "\n"

    def as_yaml(self) -> str:
        """Return the playbook printed as YAML; empty where there is none."""
        return print_playbook(self.playbook) if self.playbook else ""


def parse_file(path: str) -> ParsedFile:
    """Parse a file, or standard input for `-`."""
    return parse_bytes(path, read_file(path, DEFAULT_LIMITS.document_bytes_max))


def parse_bytes(path: str, data: bytes) -> ParsedFile:
    """Parse a file's bytes, whatever they are."""
    text, problem = decode(data)
    source = Source(path, text)
    document = Document(None, (problem,), ()) if problem else read_document(text)
    playbook, problems = None, document.problems
    if document.root is not None:
        parsed = parse_playbook(document.root)
        playbook, problems = parsed.playbook, problems + parsed.problems
    found = [_described(source, item.kind.value, item.span, item) for item in problems]
    if playbook is not None:
        found.extend(_template_problems(Model(source, document, playbook, problems)))
    found.sort(key=lambda item: (item["line"], item["column"]))
    return ParsedFile(source, playbook, tuple(found))


def _template_problems(model: Model) -> list[dict[str, Any]]:
    return [
        _described(model.source, f"template-{item.kind}", model.place(site, item.span), item)
        for site, template in model.template_sites
        for item in template.problems
    ]


def _described(source: Source, kind: str, span: Span, problem: Any) -> dict[str, Any]:
    line, column = source.position(span.start)
    return {"kind": kind, "message": problem.message, "help": problem.help, "line": line, "column": column}
