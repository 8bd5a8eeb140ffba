"""Where instructions come from, for tasks of the workbook (S40)."""

from __future__ import annotations

from noetlc.bundle.source_map import find
from noetlvm.bridge import compile_texts
from noetlvm.bytecode.program import Program
from noetlvm.bytecode.verify.verifier import load

HEAD = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: k, path: t/k}\nworkload: {x: 1, y: 2}\n"


def program(text: str) -> Program:
    """Return the program of a text, as a bundle holds it."""
    return load(compile_texts([HEAD + text]))


def lines(found: Program, address: str) -> set[int]:
    """Return the lines of the code at addresses that begin with this one."""
    assert found.debug is not None
    return {mark.line for entry in found.debug.entries if entry.address.startswith(address) for mark in entry.marks}


def test_text_that_reads_an_argument_keeps_its_places() -> None:
    text = """workflow:
  - step: start
    tool:
      - save: {kind: workbook, task: one, args: {v: "{{ workload.y }}"}}
workbook:
  tasks:
    one:
      kind: python
      code: result = n
      args:
        n: |
          {{ args.v }}
          and {{ workload.x }}
"""
    found = program(text)
    assert {16, 17} <= lines(found, "start/tool.1.1")
    assert [place.construct for place in find(found, "17")]


def test_a_call_of_a_single_task_is_found_at_its_own_line_and_at_that_of_the_task() -> None:
    text = """workflow:
  - step: start
    tool:
      - save: {kind: workbook, task: one}
workbook:
  tasks:
    one: {kind: noop}
"""
    assert lines(program(text), "start/tool") == {8, 11}


def test_a_single_task_behind_two_calls_is_found_at_the_first() -> None:
    text = """workflow:
  - step: start
    tool:
      - save: {kind: workbook, task: one}
workbook:
  tasks:
    one: {kind: workbook, task: two}
    two: {kind: noop}
"""
    assert lines(program(text), "start/tool") == {8, 12}
