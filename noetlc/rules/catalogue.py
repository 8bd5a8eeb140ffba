"""All rules, found by their files: adding one is adding a file. Their codes, and the codes that they had before."""

from __future__ import annotations

import importlib
import re
from functools import cache
from pathlib import Path
from textwrap import dedent

from noetlc.rules.rule import Rule

_RULE_FILE = re.compile(r"([a-z]\d{3})_\w+\.py")


@cache
def all_rules() -> tuple[type[Rule], ...]:
    """Return every rule, ordered by code."""
    names = sorted(path.stem for path in Path(__file__).parent.iterdir() if _RULE_FILE.fullmatch(path.name))
    return tuple(_rule_in(importlib.import_module(f"noetlc.rules.{name}")) for name in names)


def _rule_in(module: object) -> type[Rule]:
    """Return the one rule that a rule file defines."""
    found = [
        value
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Rule) and value.__module__ == vars(module)["__name__"]
    ]
    if len(found) != 1:
        raise TypeError(f"{module} must define exactly one rule")
    return found[0]


@cache
def rules_by_code() -> dict[str, type[Rule]]:
    """Return every rule by its code."""
    return {rule.code: rule for rule in all_rules()}


@cache
def claimed_keys() -> frozenset[tuple[str, str]]:
    """Return the keys, as (object, key), that some rule explains better than the general rules do."""
    return frozenset(claim for rule in all_rules() for claim in rule.claims)


TOPICS = {
    "P0": "YAML and structure",
    "P1": "References, labels and inputs",
    "P2": "Expressions and scopes",
    "P3": "Policies and control",
    "P4": "Flow",
    "P5": "Data flow and races",
    "P6": "Safety and secrets",
    "P9": "The older dialect",
}
"""What the first digit means."""

_OLD_LETTERS = {"E": ("P0", "P1", "P2", "P3"), "W": ("P4", "P5", "P6"), "L": ("P9",)}
_OLD_CODE = re.compile(r"(?:E(?=[0-3])|W(?=[4-6])|L(?=9))(?P<digits>[0-9]{1,3})")


def current_codes(code: str) -> tuple[str, ...]:
    """Return today's form of a code or prefix. Only a letter alone (`W`) stands for several prefixes."""
    if code in _OLD_LETTERS:
        return _OLD_LETTERS[code]
    old = _OLD_CODE.fullmatch(code)
    return (f"P{old['digits']}",) if old else (code,)


_HEADER = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata:
  name: example
  path: examples/example
workflow:
"""


def whole_playbook(example: str) -> str:
    """Return a playbook as it is, and a list of steps under the usual header, without a change of columns."""
    text = dedent(example).lstrip("\n")
    return _HEADER + text if text.startswith("- ") else text
