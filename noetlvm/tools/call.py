"""A tool call and its outcome. Tools see nothing else of the engine, and the engine nothing of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

from noetlvm.language.tool_kinds import NO_TIME_KIND


class Closable(Protocol):
    """A resource that must be closed."""

    async def close(self) -> None: ...


Resource = TypeVar("Resource", bound=Closable)


class Resources:
    """Resources by key; each is created on first use and closed with the runner."""

    def __init__(self, keychain: tuple[str, ...] = ()) -> None:
        self.keychain = keychain
        """The values of `--keychain`."""
        self._open: dict[Hashable, Closable] = {}

    def get(self, key: Hashable, create: Callable[[], Resource]) -> Resource:
        """Return the resource of that key. Start keys with the kind's name, so that those of two tools differ."""
        if key not in self._open:
            self._open[key] = create()
        return self._open[key]  # type: ignore[return-value]  # the type under a key is that of its `create`

    async def close(self) -> None:
        """Close all of them, even if one fails to close."""
        from asyncio import gather

        resources, self._open = list(self._open.values()), {}
        await gather(*(resource.close() for resource in resources), return_exceptions=True)


Outcome: TypeAlias = dict[str, Any]
"""`{status, result, error}`, and the tool's own part: `http`, `pg` or `py`. The engine adds `meta`."""

_NOTHING: Mapping[str, Any] = MappingProxyType({})


class ToolCall(NamedTuple):
    """One attempt of a task, its inputs rendered."""

    kind: str
    inputs: dict[str, Any]
    spec: dict[str, Any]
    """Settings, all layers merged (S38)."""
    key: str
    """Idempotency key: the same for all attempts of a task run, and after a crash."""
    auth: Any = None
    """The keychain entry that the input `auth` names; set when inputs are checked."""
    label: str = ""
    """The task's label, for messages."""
    attempt: int = 1
    keychain: Mapping[str, Any] = _NOTHING
    """The keychain entries of the execution, by name."""
    context: Callable[[], Mapping[str, Any]] | None = None
    """Returns the names that the task's templates see, without `keychain`."""


Tool: TypeAlias = Callable[[ToolCall, Resources], Awaitable[Outcome]]
"""Runs one kind: `run` in the kind's module. Inputs and settings are checked and have their defaults."""


class Tools(Protocol):
    """Runs tool calls."""

    def at_once(self, call: ToolCall) -> Outcome | None:
        """Return the outcome of a tool that takes no time and has no effect; None: `run` it."""

    async def run(self, call: ToolCall) -> Outcome:
        """Run a tool. It may be cancelled; otherwise it always returns an outcome, whatever fails (S19)."""

    async def close(self) -> None:
        """Close pools and processes."""


class UnavailableTools:
    """Stands for the tools of a pipeline that cannot run here: every call fails, at once and for the same reason."""

    def __init__(self, why: str) -> None:
        self._why = why

    def at_once(self, call: ToolCall) -> Outcome:
        return error("dependency", self._why)

    async def run(self, call: ToolCall) -> Outcome:
        return self.at_once(call)

    async def close(self) -> None:
        """There is nothing to close."""


def ok(result: Any = None, **parts: Any) -> Outcome:
    """Return the outcome of a tool that succeeded."""
    return {"status": "ok", "result": result, **parts}


def outcome_at_once(kind: str) -> Outcome | None:
    """Return the outcome of a kind that takes no time and has no effect; None: it has to run."""
    return ok() if kind == NO_TIME_KIND else None


def error(
    kind: str, message: str, *, retryable: bool = False, details: dict[str, Any] | None = None, **parts: Any
) -> Outcome:
    """Return the outcome of a tool that failed; `parts` may contain a `result`."""
    problem = {"kind": kind, "retryable": retryable, "message": message, "details": details or {}}
    return {"status": "error", "result": None, "error": problem, **parts}


def too_large(what: str, limit: int) -> Outcome:
    """Return the outcome of a tool whose output exceeds the size limit of a result."""
    message = f"{what} is larger than {limit} bytes; request less, or write it to a file or table and pass its name on"
    return error("output", message, details={"limit": limit})
