"""Tells playbooks from other YAML without reading YAML, so that a folder of a thousand manifests costs little.

It may call something a playbook that is not quite one (lint then says what is missing), but it must not overlook a
playbook that a person would recognise. It never raises and never decodes.
"""

from __future__ import annotations

import re

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
    """Say whether a YAML file's top level has a NoETL `apiVersion`, `kind: Playbook` or a `workflow`."""
    if data.startswith(_UTF16_MARKS):  # not allowed, but lint can only say so about files it finds
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
