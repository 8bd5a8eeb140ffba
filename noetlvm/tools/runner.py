"""Finds the tool of a call and runs it: every failure becomes an error outcome (S19)."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Iterable
from importlib import import_module
from typing import Any

from noetlvm.expr.errors import ExpressionError
from noetlvm.expr.operations import require_whole
from noetlvm.language.tool_kinds import PLUGIN_KINDS, ToolKind, find_kind, is_builtin, module_of, why_unusable
from noetlvm.limits import KIND_CHARS_MAX
from noetlvm.tools.call import Outcome, Resources, Tool, ToolCall, error, outcome_at_once
from noetlvm.tools.inputs import InputError, plain, prepared


class ToolRunner:
    """All tools, and the resources they share while an engine runs."""

    def __init__(self, keychain: tuple[str, ...] = ()) -> None:
        """`keychain` is the values of `--keychain`, for secrets that are read while a playbook runs."""
        self._resources = Resources(keychain)

    def at_once(self, call: ToolCall) -> Outcome | None:
        return outcome_at_once(call.kind)

    async def run(self, call: ToolCall) -> Outcome:
        kind, tool = find_kind(call.kind), find_tool(call.kind)
        if kind is None or tool is None:
            return error("tool", f"the tool `{call.kind}` cannot be run: {_why_not(call.kind)}")
        outcome = _empty_parts(kind) | _shaped(call.kind, await self._limited(kind, tool, call))
        return outcome if is_builtin(call.kind) else _with_text_keys(call.kind, outcome)

    async def close(self) -> None:
        await self._resources.close()

    async def _limited(self, kind: ToolKind, tool: Tool, call: ToolCall) -> Outcome:
        """Check the inputs, and run the tool for no longer than its `timeout`; then it is cancelled."""
        limit = seconds = None
        try:
            ready = _ready(kind, call)
            seconds = ready.spec.get("timeout")
            if not isinstance(seconds, int | float):
                return await tool(ready, self._resources)
            async with asyncio.timeout(seconds) as limit:
                return await tool(ready, self._resources)
        except InputError as problem:
            return error("input", str(problem))
        except ExpressionError as lost:
            return error("stored", lost.message)
        except ModuleNotFoundError as missing:
            return error("dependency", _needs(kind, missing.name))
        except TimeoutError as late:
            if limit is not None and limit.expired():
                return error("timeout", f"it took longer than {seconds} s", retryable=True)
            return _raised(late)
        except Exception as raised:  # a tool, above all a plugin, may raise anything; it must not stop the worker
            return _raised(raised)


def _ready(kind: ToolKind, call: ToolCall) -> ToolCall:
    """Return the call with plain, checked inputs. Raises InputError, and ExpressionError for a stored result."""
    try:
        return prepared(kind, call, plain(call.inputs))
    except TypeError as problem:
        raise InputError(str(problem)) from None


def missing_packages(kinds: Iterable[str]) -> list[str]:
    """Return what is not installed of what tool kinds need, in sentences with the remedy."""
    found = [kind for name in sorted(kinds) if (kind := find_kind(name)) is not None and kind.package]
    return [
        _needs(kind, kind.package) for kind in found if kind.package and importlib.util.find_spec(kind.package) is None
    ]


class MissingPackageError(Exception):
    """A playbook needs packages that are not installed. The message names them, and how to install them."""


def require_packages(kinds: Iterable[str]) -> None:
    """Refuse to run tool kinds whose packages are not installed. Raises MissingPackageError."""
    missing = missing_packages(set(kinds))
    if missing:
        raise MissingPackageError("; ".join(missing))


def find_tool(name: str) -> Tool | None:
    """Return the function that runs a kind; None if no worker runs it, but the server or the compiler."""
    module = module_of(name)
    tool: Tool | None = getattr(import_module(module), "run", None) if module else None
    return tool


def _why_not(name: str) -> str:
    needed = f"it needs a plugin for {PLUGIN_KINDS[name]}" if name in PLUGIN_KINDS else "nothing runs it"
    return why_unusable(name) or needed


def _shaped(kind: str, outcome: Any) -> Outcome:
    """Return an outcome with everything that rules may read (S19); a plugin may return anything."""
    status = outcome.get("status") if isinstance(outcome, dict) else None
    if status == "ok":
        return {"result": None, **outcome}
    problem = outcome.get("error") if status == "error" else None
    if not isinstance(problem, dict):
        return error("tool", f"the tool `{kind}` returned no outcome, but a `{type(outcome).__name__}`")
    word = problem.get("kind")
    shaped = {
        **problem,
        "kind": word if isinstance(word, str) and len(word) <= KIND_CHARS_MAX else "tool",
        "retryable": problem.get("retryable") is True,
        "message": str(problem.get("message") or "it failed without a message"),
        "details": problem.get("details") or {},
    }
    return {"result": None, **outcome, "error": shaped}


def _with_text_keys(kind: str, outcome: Outcome) -> Outcome:
    """Return the outcome of a plugin, or an error if it has a key that JSON does not have."""
    try:
        require_whole(outcome, "outcome")
    except ExpressionError as problem:
        return error("tool", f"the tool `{kind}` returned no plain data: {problem.message}")
    return outcome


def _empty_parts(kind: ToolKind) -> Outcome:
    """Return the parts that only this kind sets, empty: a rule may read them even if the tool did not start."""
    return {part: {} for part in kind.helpers}


def _needs(kind: ToolKind, package: str | None) -> str:
    remedy = f"run: pip install 'noetlc[{kind.extra}]'" if kind.extra else "install it where the worker runs"
    return f"`{kind.name}` needs the package `{package}`, which is not installed; {remedy}"


def _raised(raised: Exception) -> Outcome:
    name = type(raised).__name__
    return error("tool", f"{name}: {raised}", details={"exception_type": name})
