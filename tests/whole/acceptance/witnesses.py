"""What an acceptance test checks: the requests to a server, and the result of the run."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from noetlvm.data.event import Recorded
from noetlvm.rounds.active import Ending


class Api:
    """A server whose answers the test decides, and which records its requests."""

    def __init__(self) -> None:
        self.url = ""
        self.answer: Callable[[str, dict[str, str]], tuple[int, Any]] = lambda path, params: (200, {})
        self.requested: list[tuple[str, dict[str, str]]] = []
        self.most = 0
        """Most requests at once."""
        self._open = 0
        self._lock = threading.Lock()

    def respond(self, path: str, params: dict[str, str]) -> tuple[int, Any]:
        with self._lock:
            self.requested.append((path, params))
            self._open += 1
            self.most = max(self.most, self._open)
        try:
            return self.answer(path, params)
        finally:
            with self._lock:
                self._open -= 1

    def counts(self) -> Counter[str]:
        return Counter(path for path, _ in self.requested)


class Run(NamedTuple):
    """A run that has ended."""

    ending: Ending
    events: list[Recorded]
    folder: Path
    """Where its database and its results are."""

    @property
    def status(self) -> str:
        return self.ending.status

    def names(self) -> list[str]:
        return [recorded.event.name for recorded in self.events]

    def steps(self) -> list[str]:
        found = [each.event.data for each in self.events if each.event.name == "step.scheduled"]
        return [data["step"] for data in found if "step" in data]
