"""Makes sure that no comment is lost: one whose construct was rebuilt moves before the step that it stood in."""

from __future__ import annotations

import re
import textwrap
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable

from noetlc.syntax.nodes import Mapping, Node, Sequence
from noetlc.syntax.span import Span
from noetlc.syntax.yaml_reader import Document

_COMMENT = re.compile(r"(?:^|(?<=\s))#[^\r\n]*", re.MULTILINE)


def with_all_comments(
    before: str, document: Document, after: str, written: Document, left: Iterable[tuple[str, str, Span]] = ()
) -> str:
    """Return a rewritten text with the comments that it misses, and with what is `left` as comments."""
    if written.root is None or document.root is None:
        return after
    present = Counter(comment for _, comment in _comments(after, written))
    missing: dict[str, list[str]] = defaultdict(list)
    for step, code, span in left:
        lines = textwrap.dedent(" " * (span.start - before.rfind("\n", 0, span.start) - 1) + before[slice(*span)])
        missing[step] += [f"# not migrated ({code}):", *(f"#   {line}" for line in lines.rstrip().splitlines())]
    for offset, comment in _comments(before, document):
        if present[comment]:
            present[comment] -= 1
        else:
            missing[_owner(document.root, offset)].append(comment)
    return _inserted(after, written.root, missing) if missing else after


def _comments(text: str, document: Document) -> list[tuple[int, str]]:
    """Return the comments of a text with their offsets; what looks like one inside a scalar is text."""
    spans = sorted(document.scalar_spans)
    starts = [span.start for span in spans]
    found = []
    for match in _COMMENT.finditer(text):
        at = bisect_right(starts, match.start()) - 1
        if at < 0 or match.start() >= spans[at].end:
            found.append((match.start(), match[0].rstrip()))
    return found


def _owner(root: Node, offset: int) -> str:
    """Return the name of the step that an offset is in, or of the root section with a mark before it."""
    owner = ""
    for section in root.entries if isinstance(root, Mapping) else ():
        if section.key.span.start > offset:
            break
        owner = f"/{section.key.text}"
        for step in section.value.items if isinstance(section.value, Sequence) else ():
            name = step.get("step") or step.get("name") if isinstance(step, Mapping) else None
            if name is not None and step.span.start <= offset:
                owner = str(getattr(name, "text", ""))
    return owner


def _inserted(text: str, root: Node, missing: dict[str, list[str]]) -> str:
    """Write comments before the line on which their step or section begins."""
    places: dict[str, int] = {}
    for section in root.entries if isinstance(root, Mapping) else ():
        places.setdefault(f"/{section.key.text}", section.key.span.start)
        for step in section.value.items if isinstance(section.value, Sequence) else ():
            name = step.get("step") if isinstance(step, Mapping) else None
            if name is not None:
                places.setdefault(str(getattr(name, "text", "")), step.span.start)
    for owner, offset in sorted(places.items(), key=lambda place: -place[1]):
        lines = missing.pop(owner, [])
        start = text.rfind("\n", 0, offset) + 1
        indent = text[start:offset].partition("-")[0]
        if lines and not indent.strip():
            text = text[:start] + "".join(f"{indent}{line}\n" for line in lines) + text[start:]
    rest = [line for lines in missing.values() for line in lines]
    return text if not rest else text.rstrip("\n") + "\n" + "".join(f"{line}\n" for line in rest)
