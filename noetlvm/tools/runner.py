"""Finds a call's tool and runs it: whatever goes wrong there becomes an error outcome (S19)."""

from __future__ import annotations

import asyncio
from functools import cache
from importlib import import_module
from typing import Any

from noetlvm.expr.errors import ExpressionError
from noetlvm.language.scopes import FIELDS
from noetlvm.language.tool_kind import ToolKind
from noetlvm.language.tool_kinds import find_kind, module_of, why_unusable
from noetlvm.limits import KIND_CHARS_MAX
from noetlvm.tools.call import Outcome, Tool, ToolCall, error, ok
from noetlvm.tools.fit import Unfit, fitted
from noetlvm.tools.kept import Kept
from noetlvm.tools.plain import plain


def find_tool(name: str) -> Tool | None:
    """Return what runs the kind of that name; None if no worker does: the server or the compiler carries it out."""
    module = module_of(name)
    tool: Tool | None = getattr(import_module(module), "run", None) if module else None
    return tool


class ToolRunner:
    """All tools, and what they keep while an engine runs."""

    def __init__(self, keychain: tuple[str, ...] = ()) -> None:
        """`keychain` is what `--keychain` says, for secrets that are read while a playbook runs."""
        self._kept = Kept(keychain)

    def at_once(self, call: ToolCall) -> Outcome | None:
        return ok() if call.kind == "noop" else None

    async def run(self, call: ToolCall) -> Outcome:
        kind, tool = find_kind(call.kind), find_tool(call.kind)
        if kind is None or tool is None:
            return error(
                "tool", f"the tool `{call.kind}` cannot be run: {why_unusable(call.kind) or 'nothing runs it'}"
            )
        return _empty_parts(kind) | _shaped(call.kind, await self._fitted(kind, tool, call))

    async def close(self) -> None:
        await self._kept.close()

    async def _fitted(self, kind: ToolKind, tool: Tool, call: ToolCall) -> Outcome:
        try:
            ready = fitted(kind, call._replace(inputs=plain(call.inputs)))
        except (Unfit, TypeError) as unfit:
            return error("input", str(unfit))
        except ExpressionError as lost:
            return error("stored", lost.message)
        return await self._limited(kind, tool, ready)

    async def _limited(self, kind: ToolKind, tool: Tool, call: ToolCall) -> Outcome:
        """Run the tool for no longer than its `timeout`. What a tool does when it is cancelled, it does at this end."""
        seconds = _seconds(call.spec.get("timeout"))
        try:
            async with asyncio.timeout(seconds) as limit:
                return await tool(call, self._kept)
        except Unfit as unfit:
            return error("input", str(unfit))
        except ModuleNotFoundError as missing:
            return _missing(kind, missing)
        except TimeoutError as late:
            if limit.expired():
                return error("timeout", f"it took longer than {seconds} s", retryable=True)
            return _raised(late)
        except Exception as raised:  # a tool, a plugin's above all, may fail in any way; it never takes the worker down
            return _raised(raised)


def _shaped(kind: str, outcome: Any) -> Outcome:
    """Return an outcome in which rules find what they may read (S19); of a plugin's anything may come."""
    status = outcome.get("status") if isinstance(outcome, dict) else None
    if status == "ok":
        return {"result": None, **outcome}
    told = outcome.get("error") if status == "error" else None
    if not isinstance(told, dict):
        return error("tool", f"the tool `{kind}` gave no outcome, but a `{type(outcome).__name__}`")
    word = told.get("kind")
    shaped = {
        **told,
        "kind": word if isinstance(word, str) and len(word) <= KIND_CHARS_MAX else "tool",
        "retryable": told.get("retryable") is True,
        "message": str(told.get("message") or "it failed and did not say why"),
        "details": told.get("details") or {},
    }
    return {"result": None, **outcome, "error": shaped}


def _empty_parts(kind: ToolKind) -> Outcome:
    """Return the parts that only this kind fills, empty: a rule may read them even if the tool got nowhere."""
    return {part: dict.fromkeys(_fields_of(part)) for part in kind.helpers}


@cache
def _fields_of(part: str) -> tuple[str, ...]:
    prefix = f"outcome.{part}."
    return tuple(name.removeprefix(prefix) for name in FIELDS if name.startswith(prefix))


def _seconds(timeout: Any) -> float | None:
    return timeout if isinstance(timeout, int | float) else None


def _missing(kind: ToolKind, missing: ModuleNotFoundError) -> Outcome:
    remedy = f"run: pip install 'noetlc[{kind.extra}]'" if kind.extra else "install it where the worker runs"
    return error("dependency", f"`{kind.name}` needs the package `{missing.name}`, which is not installed; {remedy}")


def _raised(raised: Exception) -> Outcome:
    name = type(raised).__name__
    return error("tool", f"{name}: {raised}", details={"exception_type": name})
