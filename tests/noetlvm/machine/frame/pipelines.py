"""Compiles a list of tasks, and runs it with scripted outcomes as a driver would."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from noetlc.compile import compile_playbooks
from noetlvm.data.event import Event
from noetlvm.machine.frame import Frame
from noetlvm.machine.instructions import CallTool, Ended, Wait
from noetlvm.machine.loaded import LoadedPipeline, LoadedProgram, load_program
from noetlvm.machine.payload import Offload
from noetlvm.machine.scope import Scope
from noetlvm.machine.state import FrameState

HEAD = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: { name: test, path: tests/test }\n"


def program_of(text: str, *, checked: bool = False) -> LoadedProgram:
    """Return a compiled playbook, given without its head."""
    compiled = compile_playbooks([("playbook.yaml", (HEAD + text).encode())])
    findings = [finding.message for file in compiled.files for finding in file.findings]
    assert compiled.data, findings
    return load_program(compiled.data, checked=checked)


def pipeline_of(tasks: str, *, loop: bool = False, limits: str = "", checked: bool = False) -> LoadedPipeline:
    """Return the pipeline of a list of tasks, written at the margin."""
    text = f"executor: {{ spec: {{ policy: {{ limits: {limits} }} }} }}\n" if limits else ""
    text += "workload: { items: [1] }\nworkflow:\n  - step: start\n"
    text += '    loop: { in: "{{ workload.items }}", iterator: item }\n' if loop else ""
    text += "    tool:\n" + "".join(f"      {line}\n" for line in tasks.strip("\n").splitlines())
    pipeline = program_of(text, checked=checked).main.steps["start"].pipeline
    assert pipeline is not None
    return pipeline


def rules(*rows: str, label: str = "fetch", inputs: str = "") -> str:
    """Return a task with these policy rules."""
    listed = "".join(f"        - {row}\n" for row in rows)
    given = "".join(f"    {line}\n" for line in inputs.splitlines())
    return f"- {label}:\n    kind: python\n    code: ''\n{given}    spec:\n      policy:\n        rules:\n{listed}"


def ok(result: Any = None, **more: Any) -> dict[str, Any]:
    """Return an outcome that went well."""
    return {"status": "ok", "result": result, **more}


def error(kind: str = "http", retryable: bool = True, **more: Any) -> dict[str, Any]:
    """Return an outcome that did not."""
    reported = {"kind": kind, "retryable": retryable, "message": "it failed", "details": {}}
    return {"status": "error", "error": reported, **more}


@dataclass
class Ran:
    """What a pipeline did."""

    calls: list[CallTool] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    ended: Ended | None = None

    @property
    def labels(self) -> list[str]:
        return [call.label for call in self.calls]

    @property
    def directives(self) -> list[str]:
        return [event.data["do"] for event in self.events if event.name == "task.done"]

    @property
    def error(self) -> dict[str, Any]:
        assert self.ended is not None
        assert self.ended.error is not None
        return self.ended.error


def scope(*, loop: bool = False, offload: Offload | None = None, **given: Any) -> Scope:
    """Return the surroundings of a pipeline."""
    iteration = {"iteration": "0", "iter": {"item": 1, "index": 0}} if loop else {}
    return Scope(offload or Offload(), "e1", 1, **{**iteration, **given})


def run(pipeline: LoadedPipeline, *outcomes: dict[str, Any], within: Scope | None = None) -> Ran:
    """Run a pipeline to its end; the tools give these outcomes, then plain successes."""
    frame = Frame(pipeline, within or scope(), FrameState())
    return drive(frame, iter(outcomes))


def drive(frame: Frame, outcomes: Iterator[dict[str, Any]]) -> Ran:
    """Run a frame to its end."""
    ran = Ran()
    while ran.ended is None:
        effect = frame.advance()
        ran.events += frame.take_events()
        if isinstance(effect, CallTool):
            ran.calls.append(effect)
            frame.complete(next(outcomes, ok()))
        elif isinstance(effect, Wait):
            ran.waits.append(effect.seconds)
        else:
            ran.ended = effect
    return ran
