"""`choose`, `while` and `until` as flow tasks (S39, S40); the tables in `flow.py` show what each becomes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from noetlc.canon.flow import FLOW, rounds_of
from noetlc.canon.synthesis import entry, keys, scalar
from noetlc.syntax import ast
from noetlc.syntax.nodes import Scalar
from noetlc.syntax.span import Span
from noetlvm.record import Record, changed


class Body(Record):
    """A list of the author's entries, and its part of the labels that are generated in it."""

    entries: tuple[ast.PipelineEntry, ...]
    name: str


Expanded: TypeAlias = ast.Task | Body


def expand(block: ast.Choose | ast.Repeat, label: str) -> Iterator[Expanded]:
    """Yield the flow tasks of a block, and its bodies between them. Their labels begin with `label`."""
    yield from _EXPANSIONS[block.word](block, label)


def mark(span: Span, label: str) -> ast.Task:
    """Make a flow task without an effect: a position that can be jumped to."""
    return _flow_task(span, label, {})


def _choose(block: ast.Choose, label: str) -> Iterator[Expanded]:
    end = f"{label}.end"
    bodies = list(ast.named_bodies(block))
    labels = [f"{label}.{name}" for name, _ in bodies]
    for branch, (name, body), own, otherwise in zip(block.choose, bodies, labels, (*labels, end)[1:], strict=True):
        test = None if branch.else_ else branch.when
        yield _flow_task(branch.span, own, {}, test=test, to=otherwise if test else None)
        yield Body(body, name)
        if otherwise != end:
            yield _flow_task(branch.span, f"{own}.done", {}, to=end)
    yield _flow_task(block.span, end, {})


def _while(block: ast.Repeat, label: str) -> Iterator[Expanded]:
    test, end = f"{label}.test", f"{label}.end"
    yield _flow_task(block.span, label, {"reset": label})
    yield _flow_task(block.span, test, _round(block, label), test=block.when, to=end)
    yield Body(block.do or (), "do")
    yield _flow_task(block.span, f"{label}.again", {}, to=test)
    yield _flow_task(block.span, end, {})


def _until(block: ast.Repeat, label: str) -> Iterator[Expanded]:
    again = f"{label}.do"
    yield _flow_task(block.span, label, {"reset": label})
    yield _flow_task(block.span, again, _round(block, label))
    yield Body(block.do or (), "do")
    yield _flow_task(block.span, f"{label}.test", {}, test=block.when, to=again)
    yield _flow_task(block.span, f"{label}.end", {})


_EXPANSIONS: dict[str, Callable[[Any, str], Iterator[Expanded]]] = {
    "choose": _choose,
    "while": _while,
    "until": _until,
}


def _round(block: ast.Repeat, label: str) -> dict[str, object]:
    return {"round": label, "max": rounds_of(block.max)}


def _flow_task(
    span: Span, label: str, flow: dict[str, object], *, test: Scalar | None = None, to: str | None = None
) -> ast.Task:
    policy = _policy(span, test, to) if to is not None else None
    spec = ast.TaskSpec(span=span, keys=keys(span, (FLOW,)), extra=(entry(span, FLOW, flow),))
    return ast.Task(
        span=span,
        keys=keys(span, ("kind", "spec")),
        label=scalar(span, label),
        kind=scalar(span, "noop"),
        spec=spec if policy is None else changed(spec, keys={**spec.keys, **keys(span, ("policy",))}, policy=policy),
    )


def _policy(span: Span, test: Scalar | None, to: str) -> ast.TaskPolicy:
    jump = ast.Then(span=span, keys=keys(span, ("do", "to")), do=scalar(span, "jump"), to=scalar(span, to))
    otherwise = ast.RuleElse(span=span, keys=keys(span, ("then",)), then=jump)
    rules = [ast.PolicyRule(span=span, keys=keys(span, ("else",)), else_=otherwise)]
    if test is not None:
        go_on = ast.Then(span=span, keys=keys(span, ("do",)), do=scalar(span, "continue"))
        rules.insert(0, ast.PolicyRule(span=span, keys=keys(span, ("when", "then")), when=test, then=go_on))
    return ast.TaskPolicy(span=span, keys=keys(span, ("rules",)), rules=tuple(rules))
