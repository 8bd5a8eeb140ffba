"""Makes a failing scenario small: fewer faults, processes, steps and tasks, as long as the same invariant breaks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

from noetlvm.sim.playbooks import Document, calls_child
from noetlvm.sim.world import Scenario

RUNS_MAX = 200
"""Simulations that one shrinking may cost."""


def shrink(scenario: Scenario, fails: Callable[[Scenario], bool]) -> Scenario:
    """Return the smallest scenario that was found to fail."""
    left = RUNS_MAX
    is_smaller = True
    while is_smaller and left > 0:
        is_smaller = False
        for candidate in _smaller(scenario):
            left -= 1
            if fails(candidate):
                scenario, is_smaller = candidate, True
                break
            if left <= 0:
                break
    return scenario


def _smaller(scenario: Scenario) -> Iterator[Scenario]:
    """Yield scenarios with something less, what removes most first."""
    faults = scenario.faults
    if len(faults) > 1:
        half = len(faults) // 2
        yield scenario._replace(faults=faults[half:])
        yield scenario._replace(faults=faults[:half])
    for number in range(len(faults)):
        yield scenario._replace(faults=[*faults[:number], *faults[number + 1 :]])
    if len(scenario.starts) > 1:
        yield scenario._replace(starts=scenario.starts[:1])
    if len(scenario.playbooks) > 1 and not calls_child(scenario.playbooks[0]):
        yield scenario._replace(playbooks=scenario.playbooks[:1])
    for number, document in enumerate(scenario.playbooks):
        for smaller in _smaller_playbooks(document):
            playbooks = [*scenario.playbooks[:number], smaller, *scenario.playbooks[number + 1 :]]
            yield scenario._replace(playbooks=playbooks)
    if scenario.servers > 1:
        yield scenario._replace(servers=1)
    if scenario.workers > 1:
        yield scenario._replace(workers=scenario.workers - 1)


def _smaller_playbooks(document: Document) -> Iterator[Document]:
    steps = document["workflow"]
    for key in sorted(document.keys() & {"workbook", "keychain"}):  # what is still in use does not compile without it
        yield {name: value for name, value in document.items() if name != key}
    for number in range(len(steps) - 1, 0, -1):
        yield _without_step(document, number)
    for number, step in enumerate(steps):
        for key in ("next", "loop", "spec"):
            if key in step:
                yield _changed(document, number, key, None)
        tasks = step.get("tool", [])
        for at in range(len(tasks)):
            if len(tasks) > 1:
                yield _changed(document, number, "tool", [*tasks[:at], *tasks[at + 1 :]])
        arcs = step.get("next", {}).get("arcs", [])
        for at in range(len(arcs)):
            if len(arcs) > 1:
                yield _changed(document, number, "next", step["next"] | {"arcs": [*arcs[:at], *arcs[at + 1 :]]})


def _without_step(document: Document, number: int) -> Document:
    made = deepcopy(document)
    gone = made["workflow"].pop(number)["step"]
    if made["executor"]["spec"].get("final_step") == gone:
        del made["executor"]["spec"]["final_step"]
    for step in made["workflow"]:
        arcs = [arc for arc in step.get("next", {}).get("arcs", []) if arc["step"] != gone]
        if arcs:
            step["next"]["arcs"] = arcs
        else:
            step.pop("next", None)
    return made


def _changed(document: Document, number: int, key: str, value: Any) -> Document:
    made = deepcopy(document)
    if value is None:
        del made["workflow"][number][key]
    else:
        made["workflow"][number][key] = deepcopy(value)
    return made
