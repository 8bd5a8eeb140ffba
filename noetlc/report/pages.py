"""Rules' pages as text and as JSON: what `noetlc explain` prints and the documentation shows."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

from noetlc.rules.rule import Rule

_WIDTH = 80


def rule_list(rules: Sequence[type[Rule]]) -> str:
    """Return one line for each rule."""
    width = max((len(rule.name) for rule in rules), default=0)
    return "".join(f"{rule.code}  {rule.severity:<7}  {rule.name:<{width}}  {rule.summary}\n" for rule in rules)


def page(rule: type[Rule]) -> str:
    paragraphs = [
        f"{rule.code} {rule.name} ({rule.severity})",
        textwrap.fill(rule.summary, _WIDTH),
        "\n\n".join(textwrap.fill(part, _WIDTH) for part in rule.why.strip().split("\n\n")),
        f"Instead of\n\n{indented(rule.bad)}",
        f"write\n\n{indented(rule.good)}",
    ]
    if rule.covers:
        paragraphs.append(f"Covers: {', '.join(rule.covers)}")
    paragraphs.append(f"To accept it in one place: # noetlc: ignore[{rule.code}]")
    return "\n\n".join(paragraphs) + "\n"


def page_json(rule: type[Rule]) -> dict[str, Any]:
    return {
        "code": rule.code,
        "name": rule.name,
        "severity": rule.severity.value,
        "summary": rule.summary,
        "why": rule.why.strip(),
        "bad": rule.bad,
        "good": rule.good,
        "covers": list(rule.covers),
    }


def indented(example: str) -> str:
    return textwrap.indent(example.strip("\n"), "    ")
