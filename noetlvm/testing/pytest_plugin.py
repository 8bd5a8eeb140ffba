"""A pytest plugin: fixtures that run playbooks with scripted tools.

pytest loads it in every project that has noetlvm installed, so it imports nothing before a fixture is used.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from noetlvm.testing import RunResult

SCHEDULES = 10
"""Schedules that `run_schedules` runs, unless the test specifies otherwise."""


@pytest.fixture
def run_playbook(request: pytest.FixtureRequest) -> Callable[..., RunResult]:
    """Return `noetlvm.testing.run_playbook`; the name of a YAML file is found beside the test."""
    from noetlvm.testing import run_playbook

    folder = request.path.parent

    def run(playbook: Any, scripts: Any = None, **given: Any) -> RunResult:
        others = [_found(folder, other) for other in given.pop("others", ())]
        return run_playbook(_found(folder, playbook), scripts, others=others, **given)

    return run


@pytest.fixture
def run_schedules(run_playbook: Callable[..., RunResult]) -> Callable[..., list[RunResult]]:
    """Return a function that runs a playbook under several schedules, so that a race shows."""

    def run(playbook: Any, scripts: Any = None, *, schedules: int = SCHEDULES, **given: Any) -> list[RunResult]:
        return [run_playbook(playbook, scripts, schedule=seed, **given) for seed in range(schedules)]

    return run


def _found(folder: Path, playbook: Any) -> Any:
    """Return the path of a playbook that is given by the name of a file; anything else as it is."""
    is_name = isinstance(playbook, str) and "\n" not in playbook and playbook.endswith((".yaml", ".yml", ".nbc"))
    if is_name or isinstance(playbook, Path):
        return folder / playbook
    return playbook
