"""Effects of a pipeline, which its driver performs, and how it ends."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeAlias

from noetlvm.limits import MESSAGE_CHARS_MAX


class CallTool(NamedTuple):
    """Run a tool and give its outcome to `Frame.complete`."""

    kind: str
    inputs: dict[str, Any]
    spec: dict[str, Any]
    task: int
    """Number of the task run."""
    label: str
    attempt: int
    key: str
    """Identifier of the task run: the same for all attempts, and after a crash. Tools use it to do a thing once."""


class Wait(NamedTuple):
    """Let time pass before the next attempt."""

    seconds: float
    since: Any = None
    """When the wait began, as the outcome before it said; None: it begins now."""


class Ended(NamedTuple):
    """The pipeline has ended, as its last event says; or it waits for so long that the worker leaves it."""

    status: Literal["done", "failed", "suspended"]
    result: Any = None
    """As the event carries it: what is large is there by reference."""
    error: dict[str, Any] | None = None


Effect: TypeAlias = CallTool | Wait | Ended

DONE, FAILED = -1, -2
"""Program counters of a pipeline that has ended."""


def failure(kind: str, message: str, **details: Any) -> dict[str, Any]:
    """Return an error as `outcome.error` has it (S19), one that trying again does not mend."""
    return {"kind": kind, "retryable": False, "message": shortened(message), "details": details}


def shortened(message: str) -> str:
    """Return a message as an event may hold it: it may quote something of any length."""
    return message if len(message) <= MESSAGE_CHARS_MAX else message[:MESSAGE_CHARS_MAX] + "…"
