"""`noetlvm result`: small and stored results, by execution, step and key."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from tests.commands import Command

LARGE = """\
apiVersion: noetl.io/v2
metadata: { name: large, path: tests/large }
workflow:
  - step: start
    tool: [{ make: { kind: python, code: "result = {'text': 'x' * 100000}" } }]
    next: { arcs: [{ step: end, when: "{{ event.name == 'step.done' }}" }] }
  - step: end
    tool: [{ make: { kind: python, code: "result = [1, 2]" } }]
"""


def test_a_stored_result_is_printed_by_step_and_by_key(noetlvm: Command, write: Callable[[str, str], Path]) -> None:
    ran = noetlvm("run", str(write("large.yaml", LARGE)), "--json")
    assert ran.code == 0
    assert json.loads(noetlvm("result").out) == [1, 2]
    whole = {"text": "x" * 100_000}
    assert json.loads(noetlvm("result", ran.data["execution_id"], "--step", "start").out) == whole
    events = [json.loads(line) for line in noetlvm("events", "--json").out.splitlines()]
    key = next(event["data"]["result"]["key"] for event in events if event["name"] == "step.done")
    assert json.loads(noetlvm("result", key).out) == whole


def test_a_stored_result_of_the_execution_says_how_to_read_it(
    noetlvm: Command, write: Callable[[str, str], Path]
) -> None:
    ran = noetlvm("run", str(write("large.yaml", LARGE.split("    next:")[0])), "--json")
    assert f"noetlvm result {ran.data['execution_id']}" in ran.err
    assert json.loads(noetlvm("result").out) == {"text": "x" * 100_000}


def test_an_unknown_step_and_an_unknown_key_are_refused(noetlvm: Command, write: Callable[[str, str], Path]) -> None:
    noetlvm("run", str(write("large.yaml", LARGE)), "--json")
    assert "steps with a result: start, end" in noetlvm("result", "--step", "none").err
    assert noetlvm("result", "0" * 64).code == 2
