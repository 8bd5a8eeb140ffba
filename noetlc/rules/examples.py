"""Makes a rule's example a whole playbook, for the rule's page and its tests."""

from __future__ import annotations

from textwrap import dedent

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
