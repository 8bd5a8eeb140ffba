"""All rules, found by their files: adding one is adding a file."""

from __future__ import annotations

import importlib
import re
from functools import cache
from pathlib import Path
from textwrap import dedent

from noetlc.rules.rule import Rule

_RULE_FILE = re.compile(r"([a-z]\d{3})_\w+\.py")


RETIRED = frozenset({"P112", "P313", "P409", "P502"})
"""Codes that no rule may get: of rules that are gone, and numbers that were skipped.

Settings and comments of users may still name such a code. Add the code of a rule when you delete it.
"""


@cache
def all_rules() -> tuple[type[Rule], ...]:
    """Return every rule, ordered by code."""
    names = sorted(path.stem for path in Path(__file__).parent.iterdir() if _RULE_FILE.fullmatch(path.name))
    return tuple(_rule_in(importlib.import_module(f"noetlc.rules.{name}")) for name in names)


def _rule_in(module: object) -> type[Rule]:
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
    return {rule.code: rule for rule in all_rules()}


@cache
def claimed_keys() -> frozenset[tuple[str, str]]:
    """Return the keys, as (object, key), that some rule explains better than the general rules do."""
    return frozenset(claim for rule in all_rules() for claim in rule.claims)


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
