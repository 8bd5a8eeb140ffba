"""P903: `next` as a list, or as a name, instead of a router."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from noetlc.analysis.model import Model
from noetlc.finding import Edit, Finding, Fix, Severity
from noetlc.rules.claim_rule import ClaimRule
from noetlc.syntax.nodes import Entry, Mapping, Node, Scalar, Sequence, scalars
from noetlc.syntax.problem import Problem
from noetlc.syntax.span import Span

_INDENT = 2
_NOTHING_BETWEEN = re.compile(r"\s*:(?:\s|#[^\r\n]*)*")
"""Between a key and its value: blanks, comments and line breaks."""
_NAME_IN_BRACKETS = re.compile(r"""[\w.-]+|"[^"]*"|'[^']*'""")
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")


class NextList(ClaimRule):
    code = "P903"
    name = "next-list"
    severity = Severity.ERROR
    summary = "`next` is a list of arcs, or the name of a step, instead of a router with `arcs`."
    why = (
        "How many arcs may fire is a setting of the router (`next.spec.mode`), and a list has no place for it. What "
        "cannot be read as a router leads nowhere: the branch would end here."
    )
    bad = """
    - step: start
      tool: {kind: noop}
      next:
        - step: finish
    - step: finish
      tool: {kind: noop}
    """
    good = """
    - step: start
      tool: {kind: noop}
      next:
        arcs:
          - step: finish
    - step: finish
      tool: {kind: noop}
    """
    covers = ("formal §8.1", "brief §3.2", "brief §12", "step spec §5.5", "step spec §13")
    claims = frozenset({("step", "next")})

    def check(self, model: Model) -> Iterator[Finding]:
        problems = list(self.claimed(model))
        entries = _nexts(model.document.root) if problems else {}
        for problem in problems:
            yield self._tell(model, problem, entries.get(problem.span.start))

    def _tell(self, model: Model, problem: Problem, entry: Entry | None) -> Finding:
        if entry is None or not (isinstance(entry.value, Sequence) or _is_name(entry.value)):
            return self.finding(problem.span, problem.message, "write `next: {arcs: [{step: …}]}`")
        shape = "a list" if isinstance(entry.value, Sequence) else "a name"
        return self.finding(
            problem.span,
            f"`next` is {shape}, as in the older dialect; it must be a router with `arcs`",
            "write `next: {spec: {mode: exclusive}, arcs: [{step: …, when: …}]}`",
            fix=_fix(model.source.text, entry),
        )


def _nexts(root: Node | None) -> dict[int, Entry]:
    """Return the `next` of every step, by where its value begins."""
    workflow = root.get("workflow") if isinstance(root, Mapping) else None
    steps = workflow.items if isinstance(workflow, Sequence) else ()
    entries = (entry for step in steps if isinstance(step, Mapping) for entry in step.entries)
    return {entry.value.span.start: entry for entry in entries if entry.key.text == "next"}


def _is_name(node: Node) -> bool:
    return (
        isinstance(node, Scalar)
        and isinstance(node.value, str)
        and not node.is_template
        and node.style not in ("|", ">")
    )


def _fix(text: str, entry: Entry) -> Fix | None:
    """Return the edits that put the arcs into a router, where they can be put there as they are written."""
    value = entry.value
    between = _NOTHING_BETWEEN.fullmatch(text, entry.key.span.end, max(entry.key.span.end, value.span.start))
    if between is None:
        return None  # an alias: the value stands elsewhere, and others may use it
    edits = _list_edits(text, entry.key, value) if isinstance(value, Sequence) else _name_edits(text, value)
    return Fix("put the arcs into a router", tuple(edits), safe=False) if edits else None


def _name_edits(text: str, value: Node) -> list[Edit]:
    """Between brackets a name without quotes may not hold what ends a list or a mapping."""
    written = text[value.span.start : value.span.end]
    return [*_around(value.span, "{arcs: [{step: ", "}]}")] if _NAME_IN_BRACKETS.fullmatch(written) else []


def _list_edits(text: str, key: Scalar, value: Sequence) -> list[Edit]:
    """An anchor or a tag at the list would end up at the router; such a list stays."""
    if not all(_is_arc(item) for item in value.items) or _has_alias(value):
        return []
    if text.startswith("[", value.span.start):
        return _flow_list(value)
    return _block_list(text, key, value) if text.startswith("-", value.span.start) else []


def _is_arc(item: Node) -> bool:
    return item.get("step") is not None if isinstance(item, Mapping) else _is_name(item)


def _has_alias(value: Sequence) -> bool:
    """Tell whether something in the list stands elsewhere in the file; what is written here stands in order."""
    starts = [value.span.start, *(scalar.span.start for scalar in scalars(value))]
    return any(after <= before for before, after in pairwise(starts))


def _around(span: Span, before: str, after: str) -> Iterator[Edit]:
    yield Edit(Span(span.start, span.start), before)
    yield Edit(Span(span.end, span.end), after)


def _flow_list(value: Sequence) -> list[Edit]:
    names = [edit for item in value.items if isinstance(item, Scalar) for edit in _around(item.span, "{step: ", "}")]
    return [*_around(value.span, "{arcs: ", "}"), *names]


def _block_list(text: str, key: Scalar, value: Sequence) -> list[Edit]:
    """Write `arcs:` under `next:` and move the list one level in."""
    line_start = max(text.rfind("\n", 0, key.span.start), text.rfind("\r", 0, key.span.start)) + 1
    indent = " " * (key.span.start - line_start + _INDENT)
    edits = [Edit(Span(item.span.start, item.span.start), "step: ") for item in value.items if isinstance(item, Scalar)]
    lines = _LINE.finditer(text, key.span.end, value.span.end)
    head = next(lines)
    head_end = head.start() + len(head.group().rstrip("\r\n"))
    edits.append(Edit(Span(head_end, head_end), f"\n{indent}arcs:"))
    moved = (line.start() for line in lines if line.group().strip("\r\n"))
    edits.extend(Edit(Span(start, start), " " * _INDENT) for start in moved)
    return edits
