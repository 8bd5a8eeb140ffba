"""What a tool is given and what it gives back. Tools see nothing else of the engine, and the engine nothing of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, Protocol, TypeAlias

from noetlvm.tools.kept import Kept

Outcome: TypeAlias = dict[str, Any]
"""`{status, result, error}`, and the tool's own part: `http`, `pg` or `py`. The engine adds `meta`."""


class ToolCall(NamedTuple):
    """One attempt of a task, its inputs rendered."""

    kind: str
    inputs: dict[str, Any]
    spec: dict[str, Any]
    """Settings, all layers merged (S38)."""
    key: str
    """Identifier of the task run: the same for all attempts, and after a crash, so that a thing can be done once."""
    auth: Any = None
    """The keychain entry that `auth` names; None if it names none."""
    label: str = ""
    """The task's label, for messages."""
    attempt: int = 1


Tool: TypeAlias = Callable[[ToolCall, Kept], Awaitable[Outcome]]
"""What runs one kind: `run` in the kind's module. Inputs and settings fit the kind, and have their defaults."""


class Tools(Protocol):
    """Everything that can be called."""

    def at_once(self, call: ToolCall) -> Outcome | None:
        """Return the outcome of a tool that needs no time and has no effect; None: it has to be run."""

    async def run(self, call: ToolCall) -> Outcome:
        """Run a tool. It may be cancelled; else it always gives an outcome, whatever goes wrong (S19)."""

    async def close(self) -> None:
        """Let go of pools and processes."""


def ok(result: Any = None, **parts: Any) -> Outcome:
    """Return the outcome of a tool that did what it was asked to."""
    return {"status": "ok", "result": result, **parts}


def error(
    kind: str, message: str, *, retryable: bool = False, details: dict[str, Any] | None = None, **parts: Any
) -> Outcome:
    """Return the outcome of a tool that failed; `parts` may hold a `result` all the same."""
    told = {"kind": kind, "retryable": retryable, "message": message, "details": details or {}}
    return {"status": "error", "result": None, "error": told, **parts}


def too_much(what: str, limit: int) -> Outcome:
    """Return the outcome of a tool that gave more than a result may hold."""
    message = f"{what} is larger than {limit} bytes; ask for less, or write it to a file or table and pass its name on"
    return error("output", message, details={"limit": limit})
