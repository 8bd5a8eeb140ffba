"""The catalogue of events is complete and consistent."""

import ast
from pathlib import Path
from typing import get_args

import pytest

import noetlvm
from noetlvm.language.events import BOUNDARY, EVENTS, EventName, Plane, Status

FORMAL = """
PlaybookExecutionRequested PlaybookRequestEvaluated WorkflowStarted TokenEnqueued TokenClaimed StepScheduled
NextEvaluated WorkflowFinished PlaybookProcessed TaskStarted TaskProcessed StepDone StepFailed LoopStarted
LoopIterationStarted LoopIterationCompleted LoopDone
"""

BRIEF_SERVER = """
playbook.execution.requested playbook.request.evaluated workflow.started step.scheduled next.evaluated
workflow.finished playbook.processed
"""

BRIEF_WORKER = "step.started task.started task.done step.done step.failed loop.iteration.started"

RENAMED = {"task.done": "TaskProcessed", "loop.iteration.done": "LoopIterationCompleted"}


@pytest.mark.parametrize("camel", FORMAL.split())
def test_every_event_of_formal_10_2_is_there(camel: str) -> None:
    assert camel in {event.camel for event in EVENTS.values()}


@pytest.mark.parametrize("name", BRIEF_SERVER.split())
def test_server_events_of_brief_11_belong_to_the_server(name: str) -> None:
    assert EVENTS[name].plane is Plane.SERVER


@pytest.mark.parametrize("name", BRIEF_WORKER.split())
def test_worker_events_of_brief_11_belong_to_the_worker(name: str) -> None:
    assert EVENTS[name].plane is Plane.WORKER


def test_the_literal_type_of_names_is_the_catalogue() -> None:
    assert set(get_args(EventName)) == set(EVENTS)


@pytest.mark.parametrize("package", ["machine", "server", "worker", "engine", "replay", "service", "sim", "cli"])
def test_code_compares_events_with_names_that_exist(package: str) -> None:
    """The type checker sees it in `==`, not in a tuple after `in`."""
    compared = {
        literal.value
        for file in (Path(noetlvm.__file__).parent / package).rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Compare)
        for literal in ast.walk(node)
        if isinstance(literal, ast.Constant) and isinstance(literal.value, str) and literal.value.count(".") in (1, 2)
        if literal.value.split(".")[0] in {name.split(".")[0] for name in EVENTS}
    }
    assert compared <= set(EVENTS)


def test_both_names_are_unique() -> None:
    assert len({event.camel for event in EVENTS.values()}) == len(EVENTS)


@pytest.mark.parametrize("name", EVENTS)
def test_the_two_names_say_the_same(name: str) -> None:
    made = "".join(part.capitalize() for part in name.split("."))
    assert EVENTS[name].camel == RENAMED.get(name, made)


def test_a_step_run_ends_with_one_of_three_events() -> None:
    assert {name: event.boundary for name, event in BOUNDARY.items()} == {
        "step.done": Status.SUCCESS,
        "step.failed": Status.ERROR,
        "loop.done": Status.SUCCESS,
    }
