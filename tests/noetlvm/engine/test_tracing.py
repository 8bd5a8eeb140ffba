"""Traces: one for each request, built from events alone, the same whichever server writes them."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, Sampler

from noetlvm.rounds.spans import TraceWriter
from noetlvm.rounds.tracing import TracingError, tracing_of
from noetlvm.store.memory import MemoryStore
from noetlvm.tools.call import Outcome, ToolCall, error, ok
from tests.noetlvm.engine.runs import Session, bundle_of
from tests.waiting import turns

HEAD = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: { name: test, path: tests/test }\n"
PLAYBOOK = """
workflow:
  - step: start
    tool:
      - fetch:
          kind: shell
          command: [fetch]
          spec:
            policy:
              rules:
                - when: "{{ outcome.status == 'error' }}"
                  then: { do: retry, attempts: 3, delay: 1 }
                - else: { then: { do: continue } }
    next: { arcs: [{ step: each }] }
  - step: each
    loop: { in: [1, 2], iterator: n, spec: { mode: parallel } }
    tool: [{ item: { kind: shell, command: [item] } }]
    next: { arcs: [{ step: broken }] }
  - step: broken
    tool: [{ fails: { kind: shell, command: [fails] } }]
"""


class Traced:
    """A session whose executions are traced into memory, by as many writers as servers would have."""

    def __init__(self, writers: int = 1, sampler: Sampler | None = None) -> None:
        self.exporter = InMemorySpanExporter()
        self.failures = {"fetch": 1, "fails": 9}
        self.session = Session(self.play)
        provider = TracerProvider(sampler=sampler) if sampler else TracerProvider()
        processor = SimpleSpanProcessor(self.exporter)
        self.writers = [TraceWriter(self.session.store, provider, processor) for _ in range(writers)]
        self._turn = 0

    async def play(self, call: ToolCall) -> Outcome:
        await turns()
        left = self.failures.get(call.label, 0)
        self.failures[call.label] = left - 1
        return error("shell", f"no {call.label}") if left > 0 else ok(call.label)

    def observe(self, row: Any, recorded: Any) -> None:
        self._turn += 1
        self.writers[self._turn % len(self.writers)].observe(row, recorded)

    def run(self, *texts: str) -> str:
        async def go() -> str:
            engine = self.session.engine(observers=(self.observe,))
            id = engine.start(bundle_of(*(HEAD + texts[0], *texts[1:])), {})
            await engine.run()
            return id

        return asyncio.run(go())

    @property
    def spans(self) -> tuple[ReadableSpan, ...]:
        return self.exporter.get_finished_spans()


def shape(spans: tuple[ReadableSpan, ...]) -> list[tuple[str, str, str]]:
    """Name, name of the parent and status of each span."""
    names = {span.context.span_id: span.name for span in spans if span.context}
    return sorted(
        (span.name, names[span.parent.span_id] if span.parent else "", span.status.status_code.name) for span in spans
    )


EXPECTED = [
    ("call fails", "task fails", "ERROR"),
    ("call fetch", "task fetch", "ERROR"),
    ("call fetch", "task fetch", "OK"),
    ("call item", "task item", "OK"),
    ("call item", "task item", "OK"),
    ("step broken", "test", "ERROR"),
    ("step each", "test", "OK"),
    ("step start", "test", "OK"),
    ("task fails", "step broken", "ERROR"),
    ("task fetch", "step start", "OK"),
    ("task item", "step each", "OK"),
    ("task item", "step each", "OK"),
    ("test", "", "ERROR"),
]


@pytest.mark.parametrize("writers", [1, 3])
def test_an_execution_is_one_trace_of_steps_tasks_and_calls(writers: int) -> None:
    traced = Traced(writers)
    id = traced.run(PLAYBOOK)
    assert shape(traced.spans) == EXPECTED
    assert {span.context.trace_id for span in traced.spans if span.context} == {UUID(id).int}
    by_name = {span.name: span for span in traced.spans}
    assert by_name["step broken"].attributes is not None
    assert by_name["step broken"].attributes["error.type"] == "shell"
    root = by_name["test"]
    for span in traced.spans:
        assert span.start_time is not None
        assert span.end_time is not None
        assert root.start_time <= span.start_time <= span.end_time <= root.end_time  # type: ignore[operator]
    assert by_name["task fetch"].end_time - by_name["task fetch"].start_time >= 1e9  # type: ignore[operator]


CHILD = """
workflow:
  - step: start
    tool: [{ run: { kind: playbook, path: tests/kid } }]
"""
KID = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: kid, path: tests/kid }
workflow:
  - step: start
    tool: [{ say: { kind: shell, command: [say] } }]
"""


def test_children_are_part_of_the_trace() -> None:
    traced = Traced()
    id = traced.run(CHILD, KID)
    assert ("kid", "test", "OK") in shape(traced.spans)
    assert {span.context.trace_id for span in traced.spans if span.context} == {UUID(id).int}


def test_a_retry_is_a_trace_of_its_own_that_links_to_the_first() -> None:
    traced = Traced()
    first = traced.run(PLAYBOOK)
    traced.exporter.clear()
    traced.failures.clear()

    async def retry() -> None:
        engine = traced.session.engine(observers=(traced.observe,))
        engine.retry(first)
        await engine.run()

    asyncio.run(retry())
    assert shape(traced.spans) == [
        ("call fails", "task fails", "OK"),
        ("step broken", "test", "OK"),
        ("task fails", "step broken", "OK"),
        ("test", "", "OK"),
    ]
    (link,) = traced.spans[-1].links
    assert link.context.trace_id == UUID(first).int


def test_the_sampler_decides_for_a_whole_trace() -> None:
    traced = Traced(sampler=ALWAYS_OFF)
    traced.run(PLAYBOOK)
    assert traced.spans == ()


def test_open_spans_are_forgotten_when_an_execution_ends() -> None:
    traced = Traced()
    traced.run(PLAYBOOK)
    assert not traced.writers[0]._open


@pytest.mark.parametrize(
    "environment",
    [{}, {"OTEL_TRACES_EXPORTER": "none"}, {"OTEL_TRACES_EXPORTER": "console", "OTEL_SDK_DISABLED": "true"}],
)
def test_traces_are_off_unless_the_environment_wants_them(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert tracing_of(MemoryStore()) is None


def test_an_unknown_exporter_is_a_plain_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "zipkin")
    with pytest.raises(TracingError, match="otlp, console or none"):
        tracing_of(MemoryStore())
