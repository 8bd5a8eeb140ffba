"""Deliberate breaks of what runs use beside the machine: compiled code, expressions, credentials, envelopes.

Mutants of `noetlvm/machine` show the same for every line of it; only what a log lacks is broken here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from noetlc.codegen import pipeline as pipeline_code
from noetlc.codegen import program as program_code
from noetlc.syntax import ast, nodes
from noetlc.syntax.span import Span
from noetlvm.data import event as envelopes
from noetlvm.data.event import Event
from noetlvm.data.references import Reference
from noetlvm.expr import calls, translate_writer
from noetlvm.expr.errors import ExpressionError
from noetlvm.language.events import EVENTS
from noetlvm.machine import loaded
from noetlvm.machine.fold import Journal
from noetlvm.record import changed
from noetlvm.rounds.credentials import Credentials
from noetlvm.store.memory import MemoryStore
from tests.whole.conformance.breaks import Break, around, item

# ---- the code of tasks and gates


def rules_from_the_last(policy: Callable[..., None], task: Any, rules: list[Any], call: Any) -> None:
    guarded = [rule for rule in rules if rule.when is not None]
    policy(task, [*reversed(guarded), *(rule for rule in rules if rule.when is None)], call)


def unmatched_fails(policy: Callable[..., None], task: Any, rules: list[Any], call: Any) -> None:
    """A policy in which nothing matches ends the pipeline as failed."""
    span = Span(0, 0)
    fail = ast.Then(span=span, do=nodes.Scalar(span, "fail", "fail", ""))
    policy(task, [*rules, ast.PolicyRule(span=span, else_=ast.RuleElse(span=span, then=fail))], call)


def policies(change: Callable[..., None]) -> Break:
    return around(pipeline_code._TaskCode, "_policy", change)


def one_by_one(then_of: Callable[..., None], task: Any, then: ast.Then, call: Any) -> None:
    """The values of a patch are written one after the other."""
    for entry in then.set_ctx.entries if then.set_ctx else ():
        task._emit("PATCH", None, task._patch(changed(then.set_ctx, entries=(entry,)), "set_ctx"), at=then.span)
    then_of(task, changed(then, set_ctx=None), call)


def admission(change: Callable[[tuple[Any, ...]], tuple[Any, ...]]) -> Break:
    """Break: the rules of a gate are changed: pairs of a guard, or None for `else`, and the verdict."""
    return around(program_code, "lower_verdict", lambda lower, choices, *more: lower(change(tuple(choices)), *more))


# ---- expressions


def expressions_call(name: str, function: Any) -> Break:
    """Break: what expressions call under this name is something else."""
    return item(translate_writer._OPERATIONS, name, function)


def filters_call(name: str, function: Any) -> Break:
    """Break: a filter does something else."""
    return item(calls.implementations()["FILTER"], name, function)


def unbounded_is_empty(compiled: Callable[..., Any], expression: Any, **more: Any) -> Any:
    """An evaluation that costs too much gives an empty mapping."""
    evaluate = compiled(expression, **more)

    def run(names: Any, fuel: Any) -> Any:
        try:
            return evaluate(names, fuel)
        except ExpressionError:
            return {}

    return run


FUEL = around(loaded, "compile_expression", unbounded_is_empty)


# ---- credentials and references


def missing_credentials_are_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    class Everything(dict[str, Any]):
        def __contains__(self, _name: object) -> bool:
            return True

        def __missing__(self, _name: str) -> str:
            return ""

    runs = sys.modules["noetlvm.testing.run_playbook"]
    around(runs, "resolver_of", lambda made, _keychain: made(Everything))(monkeypatch)


SECRETS_OF_ONE_EXECUTION = around(
    Credentials, "__init__", lambda made, self, entries=None, secrets=(), *_: made(self, entries, secrets)
)
"""Break: an execution masks its own secrets only."""


def references_without(name: str) -> Break:
    """Break: a reference does not say where its result is, or what it is."""
    return around(
        Reference, "to_data", lambda made, self: {key: value for key, value in made(self).items() if key != name}
    )


# ---- envelopes


def unrecorded(name: str) -> Break:
    """Break: an event is neither recorded nor applied."""

    def forget(record: Callable[..., None], journal: Journal, event: Event) -> None:
        if event.name != name:
            record(journal, event)

    return around(Journal, "record", forget)


def kind(name: str, **other: Any) -> Break:
    """Break: the catalogue describes an event otherwise."""
    return item(EVENTS, name, changed(EVENTS[name], **other))


def identifiers_without(name: str) -> Break:
    return around(
        envelopes,
        "_identifiers",
        lambda made, *given: {key: value for key, value in made(*given).items() if key != name},
    )


def envelope_without_trace(made: Callable[..., dict[str, Any]], *given: Any, **more: Any) -> dict[str, Any]:
    return {key: value for key, value in made(*given, **more).items() if key != "trace_id"}


WITHOUT_FIRST_EVENT = around(MemoryStore, "events", lambda made, *given: iter(list(made(*given))[1:]))


class Foreign:
    """A value outside the closed sets."""

    value = "foreign"


class Other:
    """An entity of the closed set, and not the right one."""

    value = "next"
