"""An event log as lines of JSON, one envelope each, and the state that it folds to, under stable names."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from noetlvm.data.event import Event, Recorded, envelope
from noetlvm.data.references import Reference
from noetlvm.machine.fold import apply
from noetlvm.machine.state import Run, State, Thread
from noetlvm.testing.result import shown

_REFERENCE_KEYS = {"store", "key", "checksum", "size", "schema_hint"}


def write_log(execution_id: str, events: Sequence[Event], times: Sequence[float]) -> Iterator[str]:
    """Yield the lines of a log; identifiers of events are made of their numbers."""
    trace = events[0].data.get("trace") or execution_id
    for seq, (event, time) in enumerate(zip(events, times, strict=True), 1):
        found = envelope(execution_id, trace, Recorded(seq, f"{execution_id}-{seq}", time, event))
        yield json.dumps(shown(found), ensure_ascii=False)


def read_log(lines: Iterable[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines if line.strip()]


def event_of(found: Mapping[str, Any]) -> Event:
    prefix = f"{found['execution_id']}/"
    run = int(found["step_run_id"].removeprefix(prefix)) if "step_run_id" in found else 0
    iteration = found["iteration_id"].removeprefix(f"{prefix}{run}/") if "iteration_id" in found else ""
    task = int(found["task_run_id"].rpartition("#")[2]) if "task_run_id" in found else 0
    data = _untraced(_with_references(found["data"]))
    return Event(found["name"], data, run, iteration, task, found.get("task_label", ""), found.get("attempt", 0))


def fold_log(envelopes: Iterable[Mapping[str, Any]], state: State | None = None) -> State:
    """Return the state after the last event, from the first on or from a state that includes those before."""
    state = state or State()
    for found in envelopes:
        apply(state, event_of(found), datetime.fromisoformat(found["timestamp"]).timestamp())
    return state


def state_view(state: State) -> dict[str, Any]:
    """Return the part of a state that the language defines."""
    return shown(  # type: ignore[no-any-return]  # a mapping stays one
        {
            "status": "paused" if state.paused else state.status,
            "workload": state.workload,
            "ctx": state.ctx,
            "results": state.results,
            "result": state.result,
            "failures": state.failures,
            "tokens": [{"step": token.step, "args": token.args} for token in state.tokens.values()],
            "runs": [_run_view(number, run) for number, run in state.runs.items()],
        }
    )


def _run_view(number: int, run: Run) -> dict[str, Any]:
    return {
        "run": number,
        "step": run.step,
        "args": run.args,
        "loops": {
            path: {
                "total": loop.total,
                "begun": loop.next,
                "ok": loop.ok,
                "failed": loop.failed,
                "writes": {str(index): loop.patches[index] for index in sorted(loop.patches)},
            }
            for path, loop in run.loops.items()
        },
        "pipelines": {path: _thread_view(thread) for path, thread in run.threads.items()},
    }


def _thread_view(thread: Thread) -> dict[str, Any]:
    frame = thread.frame
    found = {"task_runs": frame.task, "task": frame.label, "attempt": frame.attempt, "prev": frame.prev}
    return found | {"iter": frame.iter, "retry_after": frame.waiting, "child": _child_path(thread)}


def _child_path(thread: Thread) -> str | None:
    return thread.child.path if thread.child and thread.answer is None else None


def _untraced(data: dict[str, Any]) -> dict[str, Any]:
    """Return data without what an envelope adds to it."""
    outcome = data.get("outcome")
    if not outcome or "trace_id" not in outcome.get("meta", {}):
        return data
    meta = {key: value for key, value in outcome["meta"].items() if key != "trace_id"}
    return data | {"outcome": outcome | {"meta": meta}}


def _with_references(value: Any) -> Any:
    if isinstance(value, dict):
        if value.keys() == _REFERENCE_KEYS:
            return Reference(value["store"], value["key"], value["size"], value["schema_hint"])
        return {key: _with_references(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_references(item) for item in value]
    return value
