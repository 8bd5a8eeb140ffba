"""What a worker has to send: reports until they are answered, results before them, and commands that it returns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from noetlvm.data.event import Event
from noetlvm.protocol.messages import Part, event_form, lease_form, part_in
from noetlvm.worker.pipeline_run import Done

RESULTS_BYTES = 8 * 1024 * 1024
"""Of results in one message; those beyond it are sent before, each in a message of its own."""


class Outbox:
    """Messages to a server that are not sent, or not answered."""

    def __init__(self, filled: Callable[[], None]) -> None:
        """`filled` is called whenever there is something to send."""
        self._filled = filled
        self._reports: list[dict[str, Any]] = []
        """Those without an answer."""
        self._waiting: dict[int, Done] = {}
        self._last_report = 0
        self._handed_over = 0
        """The last report that a connection got, whether it arrived or not."""
        self._results: list[tuple[str, bytes]] = []
        self._released: list[dict[str, Any]] = []

    def __bool__(self) -> bool:
        """Return whether a report has no answer."""
        return bool(self._reports)

    def report(
        self, part: Part, lease: int, events: list[Event], results: Iterable[tuple[str, bytes]], done: Done | None
    ) -> None:
        """Add a report, and the results that it refers to; `done` gets its answer."""
        self._last_report += 1
        self._results += results
        form = lease_form(part, lease)
        self._reports.append(form | {"number": self._last_report, "events": list(map(event_form, events))})
        if done is not None:
            self._waiting[self._last_report] = done
        self._filled()

    def release(self, part: Part, lease: int) -> None:
        """Return a command to the server: nothing more is accepted under its lease."""
        self._released.append(lease_form(part, lease))
        self._filled()

    def answer(self, number: int, accepted: bool) -> None:
        """Take the answer to a report."""
        self._reports = [report for report in self._reports if report["number"] != number]
        done = self._waiting.pop(number, None)
        if done is not None:
            done(accepted)

    def forget(self, part: Part, lease: int) -> None:
        """Drop what was reported about a command and has no answer."""
        forgotten = [report for report in self._reports if part_in(report) == part and report["lease"] <= lease]
        self._reports = [report for report in self._reports if report not in forgotten]
        for report in forgotten:
            self._waiting.pop(report["number"], None)

    def in_doubt(self) -> list[tuple[Part, int]]:
        """Return the commands with a report that a lost connection got: it may be in the log or not."""
        return [(part_in(one), one["lease"]) for one in self._reports if one["number"] <= self._handed_over]

    def take(self) -> Iterator[dict[str, Any]]:
        """Yield what is to be sent now: large results, and at last the message with everything else."""
        results, self._results = self._results, []
        released, self._released = self._released, []
        reports = [report for report in self._reports if report["number"] > self._handed_over]
        self._handed_over = self._last_report
        while sum(len(data) for _, data in results) > RESULTS_BYTES and len(results) > 1:
            yield {"results": [_result_form(*results.pop(0))]}
        yield {"reports": reports, "results": [_result_form(*result) for result in results], "released": released}


def _result_form(key: str, data: bytes) -> dict[str, Any]:
    return {"key": key, "data": data}
