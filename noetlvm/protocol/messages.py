"""What worker and server send each other, by name: leases, events, work, and the message of a server.

The messages of a worker are declared in `worker_messages`, where a server checks them. All messages are msgpack.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

from noetlvm.data.event import Event
from noetlvm.machine.messages import Work
from noetlvm.machine.state import FrameState

Part: TypeAlias = tuple[str, int, str]
"""Execution, run and iteration of a command."""


def part_of(work: Work) -> Part:
    """Return the part of its execution that work is for."""
    return work.execution_id, work.run, work.iteration


def lease_form(part: Part, lease: int) -> dict[str, Any]:
    """Return a lease as messages name it."""
    return {"execution_id": part[0], "run": part[1], "iteration": part[2], "lease": lease}


def part_in(form: Mapping[str, Any]) -> Part:
    """Return the part of an execution that a lease, or a report, is about."""
    return form["execution_id"], form["run"], form["iteration"]


def event_form(event: Event) -> dict[str, Any]:
    """Return an event as messages name it."""
    return event._asdict()


def work_form(work: Work) -> dict[str, Any]:
    """Return work as messages name it."""
    frame = {name: getattr(work.frame, name) for name in FrameState.__slots__}
    return work._asdict() | {"frame": frame, "keychain": list(work.keychain)}


def work_in(form: Mapping[str, Any]) -> Work:
    """Return the work of a message."""
    frame = FrameState()
    for name, value in form["frame"].items():
        setattr(frame, name, value)
    return Work(**{**form, "frame": frame, "keychain": tuple(form["keychain"])})


class ServerMessage(NamedTuple):
    """What a worker is sent in one message."""

    commands: list[dict[str, Any]]
    """Of each the `work`, and the `secrets` that it needs."""
    answers: list[dict[str, Any]]
    """Of each the `number` of a report, and whether it was `accepted`."""
    stop: list[dict[str, Any]]
    """Leases of commands to leave."""
    beat: int = 0
    """The latest renewal that was performed; 0: none since the last message."""
    lease_seconds: float = 0.0
    """With a beat: how long the leases are good, from the moment when the worker sent it."""

    @property
    def is_empty(self) -> bool:
        return not (self.commands or self.answers or self.stop or self.beat)

    def to_data(self) -> dict[str, Any]:
        return self._asdict()

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> ServerMessage:
        """Return the message that `to_data` described."""
        return cls(**data)
