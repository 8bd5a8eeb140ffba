"""OpenTelemetry traces of executions, built from their events once these are durable (extra `otel`).

One trace for an execution and its children: its id is the execution's at their root, and the id of a span follows from
the identifier of what it stands for. So several servers that decide for one execution write one trace. A server that
did not see the beginning of something reads it from the log. Spans carry names, numbers and kinds of errors, never data
of a playbook.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any
from uuid import UUID

from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.sampling import Decision
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, TraceFlags
from opentelemetry.trace import Status as SpanStatus
from opentelemetry.trace.status import StatusCode

from noetlvm import __version__
from noetlvm.data.event import Event, Recorded, status, step_run_id, task_run_id
from noetlvm.language.events import EventName, Status
from noetlvm.store.interface import Execution, LogReader

EXECUTIONS_MAX = 10_000
"""Executions whose open spans are in memory; those of the least recent are read from the log again when they end."""


class _OpenSpans:
    """What of an execution has begun and has not ended: when, and under what name."""

    def __init__(self) -> None:
        self.seq = 0
        self.started = 0.0
        self.retried_from = ""
        self.steps: dict[int, tuple[str, float]] = {}
        self.tasks: dict[tuple[int, str, int], float] = {}
        self.attempts: dict[tuple[int, str, int, int], float] = {}

    def note(self, recorded: Recorded) -> None:
        """Note what an event begins."""
        event, time = recorded.event, recorded.timestamp
        self.seq = recorded.seq
        if event.name in _BEGINNINGS:
            self.started, self.retried_from = time, event.data.get("retried_from", "")
        elif event.name == "step.scheduled" and "step" in event.data:
            self.steps[event.run] = event.data["step"], time
        elif event.name == "task.started":
            time = event.data.get("ts", time)
            self.tasks.setdefault((event.run, event.iteration, event.task), time)
            self.attempts[event.run, event.iteration, event.task, event.attempt] = time


class TraceWriter:
    """Makes spans of events, and gives each to a processor when it ends."""

    def __init__(self, reader: LogReader, provider: TracerProvider, processor: SpanProcessor) -> None:
        self._reader = reader
        self._provider = provider
        self._processor = processor
        self._open: OrderedDict[str, _OpenSpans] = OrderedDict()

    def close(self) -> None:
        """Export what has ended."""
        self._processor.shutdown()

    def observe(self, row: Execution, recorded: Sequence[Recorded]) -> None:
        """Take events of an execution that have become durable."""
        if not recorded or not self._is_sampled(row):
            return
        spans = self._spans(row, recorded[0].seq)
        for one in recorded:
            spans.note(one)
            end = _ENDS.get(one.event.name)
            if end is not None:
                end(self, row, spans, one)

    def _spans(self, row: Execution, first: int) -> _OpenSpans:
        id = row.execution_id
        spans = self._open.pop(id, None) or _OpenSpans()
        self._open[id] = spans
        while len(self._open) > EXECUTIONS_MAX:
            self._open.popitem(last=False)
        if spans.seq != first - 1:  # another server has decided since, or everything until now
            for one in self._reader.events(id, spans.seq, first - 1):
                spans.note(one)
        return spans

    def _is_sampled(self, row: Execution) -> bool:
        sampled = self._provider.sampler.should_sample(None, _trace_id(row.trace_id), row.name)
        return sampled.decision is Decision.RECORD_AND_SAMPLE

    # ---- what ends

    def _task_done(self, row: Execution, spans: _OpenSpans, one: Recorded) -> None:
        event, id = one.event, row.execution_id
        task = task_run_id(id, event.run, event.iteration, event.task)
        meta = event.data["outcome"].get("meta", {})
        end = meta.get("ts", one.timestamp)
        begun = end - meta.get("duration_ms", 0) / 1000
        step = spans.steps.get(event.run, ("", 0.0))[0]
        attributes = {
            "noetl.step": step,
            "noetl.task.label": event.label,
            "noetl.task_run_id": task,
            "noetl.task.attempt": event.attempt,
            **({"noetl.iteration": event.iteration} if event.iteration else {}),
        }
        key = (event.run, event.iteration, event.task, event.attempt)
        self._end(
            row,
            f"call {event.label}",
            (f"{task}.{event.attempt}", task),
            (spans.attempts.pop(key, begun), end),
            attributes,
            event,
            SpanKind.CLIENT,
        )
        if event.data["do"] != "retry":
            start = spans.tasks.pop(key[:3], begun)
            about = (task, step_run_id(id, event.run))
            self._end(row, f"task {event.label}", about, (start, end), attributes, event)

    def _step_ended(self, row: Execution, spans: _OpenSpans, one: Recorded) -> None:
        run = one.event.run
        name, start = spans.steps.pop(run, ("", one.timestamp))
        id = step_run_id(row.execution_id, run)
        attributes = {"noetl.step": name, "noetl.step_run_id": id}
        self._end(row, f"step {name}", (id, row.execution_id), (start, one.timestamp), attributes, one.event)
        # A task that waited for its next attempt when its run was stopped has no other end.
        spans.tasks = {key: time for key, time in spans.tasks.items() if key[0] != run}
        spans.attempts = {key: time for key, time in spans.attempts.items() if key[0] != run}

    def _processed(self, row: Execution, spans: _OpenSpans, one: Recorded) -> None:
        attributes = {"noetl.status": one.event.data["status"], "noetl.bundle": row.bundle}
        times = (spans.started or row.started, one.timestamp)
        self._end(row, row.name, (row.execution_id, row.parent), times, attributes, one.event, spans=spans)
        self._open.pop(row.execution_id, None)

    def _end(
        self,
        row: Execution,
        name: str,
        about: tuple[str, str],
        times: tuple[float, float],
        attributes: dict[str, Any],
        event: Event,
        kind: SpanKind | None = None,
        spans: _OpenSpans | None = None,
    ) -> None:
        """Give a span to the processor. `about` has the identifiers of what it stands for and what that belongs to."""
        itself, around = about
        failed = status(event) is Status.ERROR
        error = (event.data.get("error") or (event.data.get("outcome") or {}).get("error") or {}) if failed else {}
        known = {"noetl.execution_id": row.execution_id, "noetl.playbook.path": row.path}
        retried = spans.retried_from if spans else ""
        start, end = (round(time * 1e9) for time in times)
        self._processor.on_end(
            ReadableSpan(
                name=name,
                context=_context(row.trace_id, itself),
                parent=_context(row.trace_id, around) if around else None,
                resource=self._provider.resource,
                attributes=known | attributes | ({"error.type": str(error["kind"])} if "kind" in error else {}),
                links=[Link(_context(retried, retried))] if retried else [],
                kind=kind or SpanKind.INTERNAL,
                instrumentation_scope=InstrumentationScope("noetlvm", __version__),
                status=SpanStatus(StatusCode.ERROR if failed else StatusCode.OK),
                start_time=min(start, end),
                end_time=end,
            )
        )


_BEGINNINGS: frozenset[EventName] = frozenset({"playbook.execution.requested", "execution.retried"})

_ENDS: dict[EventName, Callable[[TraceWriter, Execution, _OpenSpans, Recorded], None]] = {
    "task.done": TraceWriter._task_done,
    "step.done": TraceWriter._step_ended,
    "step.failed": TraceWriter._step_ended,
    "loop.done": TraceWriter._step_ended,
    "playbook.processed": TraceWriter._processed,
}


def _trace_id(execution_id: str) -> int:
    """Return the trace of an execution: its own identifier, which is a UUID; of any other text, a hash."""
    try:
        return UUID(execution_id).int
    except ValueError:
        return int.from_bytes(sha256(execution_id.encode()).digest()[:16])


def _context(trace: str, identifier: str) -> SpanContext:
    span_id = int.from_bytes(sha256(identifier.encode()).digest()[:8]) or 1
    return SpanContext(_trace_id(trace), span_id, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))
