"""`choose`, `while` and `until` as flow tasks (S39, S40); `flow.py` shows what each becomes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from noetlc.canon.flow import FLOW, rounds_of
from noetlc.canon.synthesis import entry, keys, scalar, task_spec
from noetlc.syntax import ast
from noetlc.syntax.nodes import Scalar
from noetlc.syntax.span import Span
from noetlvm.record import Record


class Body(Record):
    """Where a list of the author's entries belongs, and the prefix of the labels that are generated in it."""

    entries: tuple[ast.PipelineEntry, ...]
    prefix: str


Piece: TypeAlias = ast.Task | Body


def word_of(block: ast.Choose | ast.Repeat) -> str:
    """Return the word that a block begins with."""
    return "choose" if isinstance(block, ast.Choose) else block.word


def expand(block: ast.Choose | ast.Repeat, label: str) -> Iterator[Piece]:
    """Yield the flow tasks of a block, and its bodies between them. Their labels begin with `label`."""
    if isinstance(block, ast.Choose):
        yield from _choose(block, label)
    elif block.word == "while":
        yield from _while(block, label)
    else:
        yield from _until(block, label)


def mark(span: Span, label: str) -> ast.Task:
    """Make a flow task that is only a place."""
    return _flow_task(span, label, {})


def _choose(block: ast.Choose, label: str) -> Iterator[Piece]:
    end = f"{label}.end"
    names = [f"{label}.{branch_name(branch, number)}" for number, branch in enumerate(block.choose, 1)]
    for branch, name, otherwise in zip(block.choose, names, (*names, end)[1:], strict=True):
        if branch.else_:
            yield _flow_task(branch.span, name, {})
        else:
            yield _flow_task(branch.span, name, {}, test=branch.when, to=otherwise)
        yield Body((branch.else_.then if branch.else_ else branch.then) or (), f"{name}.")
        if otherwise != end:
            yield _flow_task(branch.span, f"{name}.done", {}, to=end)
    yield _flow_task(block.span, end, {})


def branch_name(branch: ast.Branch, number: int) -> str:
    """Return the last part of a branch's label."""
    return "else" if branch.else_ else f"when_{number}"


def _while(block: ast.Repeat, label: str) -> Iterator[Piece]:
    test, end = f"{label}.test", f"{label}.end"
    yield _flow_task(block.span, label, {"reset": label})
    yield _flow_task(block.span, test, _round(block, label), test=block.when, to=end)
    yield Body(block.do or (), f"{label}.do.")
    yield _flow_task(block.span, f"{label}.again", {}, to=test)
    yield _flow_task(block.span, end, {})


def _until(block: ast.Repeat, label: str) -> Iterator[Piece]:
    again = f"{label}.do"
    yield _flow_task(block.span, label, {"reset": label})
    yield _flow_task(block.span, again, _round(block, label))
    yield Body(block.do or (), f"{label}.do.")
    yield _flow_task(block.span, f"{label}.test", {}, test=block.when, to=again)
    yield _flow_task(block.span, f"{label}.end", {})


def _round(block: ast.Repeat, label: str) -> dict[str, object]:
    return {"round": label, "max": rounds_of(block.max)}


def _flow_task(
    span: Span, label: str, flow: dict[str, object], *, test: Scalar | None = None, to: str | None = None
) -> ast.Task:
    policy = _policy(span, test, to) if to is not None else None
    return ast.Task(
        span=span,
        keys=keys(span, ("kind", "spec")),
        label=scalar(span, label),
        kind=scalar(span, "noop"),
        spec=task_spec(span, (entry(span, FLOW, flow),), policy),
    )


def _policy(span: Span, test: Scalar | None, to: str) -> ast.TaskPolicy:
    jump = ast.Then(span=span, keys=keys(span, ("do", "to")), do=scalar(span, "jump"), to=scalar(span, to))
    otherwise = ast.RuleElse(span=span, keys=keys(span, ("then",)), then=jump)
    rules = [ast.PolicyRule(span=span, keys=keys(span, ("else",)), else_=otherwise)]
    if test is not None:
        go_on = ast.Then(span=span, keys=keys(span, ("do",)), do=scalar(span, "continue"))
        rules.insert(0, ast.PolicyRule(span=span, keys=keys(span, ("when", "then")), when=test, then=go_on))
    return ast.TaskPolicy(span=span, keys=keys(span, ("rules",)), rules=tuple(rules))
