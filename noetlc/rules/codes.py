"""Rule codes: `P` for playbook, a digit for the topic, two for the rule. A code says nothing about severity.

The letter was once `E`, `W` or `L`, which read like a severity and for one rule in six was the wrong one. The digits
have not changed, so old codes in comments, configurations and baselines keep their meaning.
"""

from __future__ import annotations

import re

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
