"""Which input is read: how large it may be, and which YAML files look like playbooks.

Each limit has a test at it and one past it.
"""

from __future__ import annotations

import re

from noetlvm.record import Record

EXPRESSION_CHARS_MAX = 65_536
"""Characters in one scalar that has template marks; longer ones are refused unread."""

EXPRESSION_TOKENS_MAX = 4_096
"""Names, numbers, operators and brackets between one pair of template marks."""

EXPRESSION_DEPTH_MAX = 64
"""Nesting of brackets, operators and blocks inside one template."""


class ReadLimits(Record, cached=True):
    """What one YAML document may cost; checked while reading, before memory is spent."""

    document_bytes_max: int = 8 * 1024 * 1024
    """The file."""
    depth_max: int = 64
    """Mappings and lists inside each other."""
    nodes_max: int = 1_000_000
    """Scalars, lists and mappings."""
    alias_nodes_max: int = 100_000
    """Nodes that aliases and merge keys may add by repeating what an anchor holds."""


DEFAULT_LIMITS = ReadLimits()


# ---- recognition

_FIRST_CONTENT = re.compile(rb"^([ \t]*)(?!---|\.\.\.|[%#\s])(?=\S)", re.MULTILINE)
_FLOW_ROOT = re.compile(rb"\{[^#]*?[\"']?apiVersion[\"']?\s*:\s*[\"']?noetl\.io/", re.DOTALL)
# GitLab pipelines have a top-level `workflow` too; theirs is a mapping that starts with one of these three keys.
_TOP_LEVEL = rb"""^%s(?:
      (?P<a>["']?)apiVersion(?P=a)[ \t]*:[ \t]+["']?noetl\.io/
    | (?P<k>["']?)kind(?P=k)[ \t]*:[ \t]+["']?Playbook["']?[ \t]*(?:[#].*)?$
    | (?P<w>["']?)workflow(?P=w)[ \t]*:(?=\s|$)(?!(?:[ \t]*+(?:[#].*+)?\n)++[ \t]+(?:rules|name|auto_cancel)[ \t]*:)
)"""
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


def looks_like_playbook(data: bytes) -> bool:
    """True if a YAML file's top level has a NoETL `apiVersion`, `kind: Playbook` or a `workflow`.

    It does not parse or decode, so that a folder of a thousand manifests costs little, and it never raises. It may
    accept a file that is not quite a playbook (lint then reports what is missing), but must not miss one.
    """
    if data.startswith(_UTF16_MARKS):  # not allowed, but lint can only report files it finds
        data = data[2:].replace(b"\0", b"")
    data = data.removeprefix(b"\xef\xbb\xbf")
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    first = _FIRST_CONTENT.search(data)
    if first is None:
        return False
    if data.startswith(b"{", first.end()):
        return _FLOW_ROOT.match(data, first.end()) is not None
    return re.search(_TOP_LEVEL % re.escape(first[1]), data, re.MULTILINE | re.VERBOSE) is not None
