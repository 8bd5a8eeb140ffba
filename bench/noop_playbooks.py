"""Writes the playbooks that the benchmarks of the machine run: their tools do nothing, so what is left is ours."""

from __future__ import annotations

from itertools import pairwise

IN_FLIGHT = 100
"""Items of a parallel loop that may be on their way at once."""

_HEAD = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {{ name: {name}, path: bench/{name} }}
workflow:
"""
_STEP = """\
  - step: {name}
    tool:
      - work: {{ kind: noop }}
"""
_ARC = """\
    next:
      arcs:
        - step: {next}
"""
_LOOP = """\
  - step: start
    loop:
      in: "{{{{ range({items}) }}}}"
      iterator: item
      spec: {{ mode: parallel, max_in_flight: {in_flight} }}
    tool:
      - work: {{ kind: noop }}
"""


def chain(steps: int) -> str:
    """Return a playbook of so many steps of one task, one after the other."""
    names = ["start", *(f"step_{number}" for number in range(2, steps + 1))]
    linked = [_STEP.format(name=name) + _ARC.format(next=after) for name, after in pairwise(names)]
    return "".join([_HEAD.format(name="chain"), *linked, _STEP.format(name=names[-1])])


def loop(items: int) -> str:
    """Return a playbook of one step that does one task for each of so many items, in parallel."""
    return _HEAD.format(name="loop") + _LOOP.format(items=items, in_flight=IN_FLIGHT)
