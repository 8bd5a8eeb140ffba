"""Flow tasks: how the canonical form writes `choose`, `while` and `until` as tasks of the language itself.

A flow task is a `kind: noop` task with `spec.flow`. It is a position in the pipeline and a decision there, never a
tool call: it makes no outcome, uses no task fuel and leaves `_prev`, `_task` and `_attempt` unchanged.

    spec.flow               effect
    ----------------------  --------------------------------------------------------------------------------------
    {}                      none: a mark
    {reset: NAME}           the round counter NAME is set to zero
    {round: NAME, max: N}   counts a round if control continues here (not if it jumps away); the round after the
                            N-th fails with `error.kind: fuel` (S39)
    {wait: SECONDS}         waits; the only one with a task run and events of its own, so that a wait survives a crash
                            and a long one holds no worker. It has no policy

    spec.policy.rules                                             where control goes
    ------------------------------------------------------------  ------------------------------------------------
    (no policy)                                                   to the next entry
    [{else: {then: {do: jump, to: L}}}]                           to L
    [{when: C, then: {do: continue}}, {else: {…jump, to: L…}}]    to the next entry if C holds, else to L

No other key and no other rule is allowed. `C` sees what a task input sees (S11). The code of a flow task with
the label K is, in this order and each line only where it applies:

    MARK K
    RESET slot(NAME)
    UNLESS C -> L
    ROUND slot(NAME) N
    GOTO L                  (instead of UNLESS, where there is no C)

A counter's NAME is the label of its block; slots are numbered in the order in which names appear. Blocks expand to

    choose                       while                        until
    ---------------------------  ---------------------------  ------------------------------
    P.when_1       C1 else jump  P         reset P            P         reset P
      …tasks                     P.test    C else jump P.end  P.do      round P
    P.when_1.done  jump P.end              round P              …tasks
    P.when_2       C2 else jump    …tasks                     P.test    C else jump P.do
      …tasks                     P.again   jump P.test        P.end
    P.when_2.done  jump P.end    P.end
    P.else
      …tasks
    P.end

where P is `choose_1`, `while_2` and so on: the number of the block among those of its word in the list, after the
prefix of that list (`choose_1.when_2.`, `while_1.do.`; in an inlined workbook task also the caller's label). The last
branch needs no `.done`. A `delay` (S53) adds `P.wait`. It runs between two rounds only:

    while                                   until
    --------------------------------------  --------------------------------------
      …tasks                                  …tasks
    P.again   C else jump P.end             P.test    C else jump P.wait
    P.wait    waits                         P.done    jump P.end
    P.back    jump P.test                   P.wait    waits
    P.end                                   P.back    jump P.do
                                            P.end

An unreachable flow task is left out, so generated code is reachable; tasks that the author
wrote are never left out. A workbook call that is replaced by a list begins with a mark of its own label.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from noetlc.analysis.model import thens
from noetlc.canon.errors import ExpansionError
from noetlc.syntax import ast, nodes
from noetlc.syntax.nodes import MappingEntry, Node, Scalar, ScalarValue
from noetlc.syntax.span import Span
from noetlc.syntax.tree import AnyStruct, attributes
from noetlvm.bytecode.limits import LIMIT_MAX
from noetlvm.record import Record, changed

FLOW = "flow"
"""The setting that makes a noop a flow task."""

ROUNDS_MAX = 10_000
"""Rounds of a `while` or `until` that does not specify `max` (S39)."""

_CONTINUES = frozenset({"continue", "skip"})

_HELP = "flow tasks are what `noetlc canon` makes of `choose`, `while` and `until`: write one of these instead"


class FlowTask(Record):
    reset: str | None = None
    """The round counter to set to zero."""
    round: str | None = None
    """The round counter to increment when control continues to the next entry."""
    max: int | Scalar = ROUNDS_MAX
    """How many rounds it may count; a template where one gives the number."""
    test: Scalar | None = None
    """Control continues to the next entry if it holds."""
    wait: Scalar | None = None
    """Seconds to wait."""
    to: str | None = None
    """Label that control goes to if `test` does not hold, or always if there is no test; None: the next entry."""


def flow_of(task: ast.Task) -> FlowTask | None:
    """Parse a flow task; None for a task that calls a tool. Raises ExpansionError for a malformed one."""
    setting = task.spec.get_extra(FLOW) if task.spec else None
    if setting is None:
        return None
    if not isinstance(setting, nodes.Mapping) or not task.kind or task.kind.text != "noop" or task.extra:
        raise ExpansionError(
            "P320", setting.span, "`spec.flow` belongs to a noop without inputs, and is a mapping", _HELP
        )
    known = {entry.key.text: entry.value for entry in setting.entries}
    if set(known) not in (set(), {"reset"}, {"round", "max"}, {"wait"}):
        shapes = "`{}`, `{reset: NAME}`, `{round: NAME, max: N}` or `{wait: SECONDS}`"
        raise ExpansionError("P320", setting.span, f"`spec.flow` is {shapes}", _HELP)
    test, to = _decision(task)
    if "wait" in known and task.rules:
        raise ExpansionError("P320", task.span, "a wait between rounds has no rules", _HELP)
    return FlowTask(
        reset=_text(known.get("reset")),
        round=_text(known.get("round")),
        max=rounds_of(_scalar(known.get("max"))),
        wait=_scalar(known.get("wait")),
        test=test,
        to=to,
    )


def _decision(task: ast.Task) -> tuple[Scalar | None, str | None]:
    match task.rules:
        case ():
            return None, None
        case (last,) if (to := _jump(last)) is not None:
            return None, to
        case (first, last) if (to := _jump(last)) is not None and first.when and _continues(first.then):
            return first.when, to
    raise ExpansionError(
        "P320", task.span, "a flow task has no rules, `else: jump`, or `when: … continue` and `else: jump`", _HELP
    )


def _jump(rule: ast.PolicyRule) -> str | None:
    then = rule.else_.then if rule.else_ else None
    is_jump = then is not None and _words(then) == {"do", "to"} and then.do is not None and then.do.text == "jump"
    return then.to.text if is_jump and then and then.to else None


def _continues(then: ast.Then | None) -> bool:
    return then is not None and _words(then) == {"do"} and then.do is not None and then.do.text == "continue"


def _words(then: ast.Then) -> set[str]:
    return {word for word in attributes(ast.Then) if getattr(then, word) is not None}


def _text(node: Node | None) -> str | None:
    if node is None:
        return None
    if isinstance(node, Scalar) and isinstance(node.value, str):
        return node.value
    raise ExpansionError("P320", node.span, "a round counter goes by the label of its block", _HELP)


def _scalar(node: Node | None) -> Scalar | None:
    if node is None or isinstance(node, Scalar):
        return node
    raise ExpansionError("P320", node.span, "`max` and `wait` are numbers", _HELP)


def rounds_of(node: Scalar | None) -> int | Scalar:
    """Return the number of rounds that a `max` allows, or the template that gives it."""
    if node is None:
        return ROUNDS_MAX
    if node.is_template:
        return node
    if type(node.value) is int and 0 <= node.value <= LIMIT_MAX:
        return node.value
    raise ExpansionError(
        "P319", node.span, f"`max` is a number of rounds, from 0 to {LIMIT_MAX:,}", "write such a number"
    )


# ---- reachability, as the verifier sees it


def without_dead_flow(tasks: Sequence[ast.Task]) -> tuple[ast.Task, ...]:
    """Return the tasks without unreachable flow tasks. The author's tasks remain, and whatever they jump to."""
    written = [position for position, task in enumerate(tasks) if not task.is_flow]
    positions = _positions(tasks)
    targets = [positions[to] for source in written for to in _jumps(tasks[source]) if to in positions]
    live = closure(tasks, [0, *targets]).union(written)
    return tuple(task for position, task in enumerate(tasks) if position in live)


def closure(tasks: Sequence[ast.Task], start: Iterable[int]) -> frozenset[int]:
    positions = _positions(tasks)
    seen: set[int] = set()
    waiting = list(start)
    while waiting:
        position = waiting.pop()
        if position in seen or position >= len(tasks):
            continue
        seen.add(position)
        waiting.extend(positions[to] for to in _jumps(tasks[position]) if to in positions)
        if _can_continue(tasks[position]):
            waiting.append(position + 1)
    return frozenset(seen)


def _positions(tasks: Sequence[ast.Task]) -> dict[str, int]:
    return {task.label.text: position for position, task in enumerate(tasks) if task.label}


def _jumps(task: ast.Task) -> Iterator[str]:
    for _, then in thens(task):
        if then.do and then.do.text == "jump" and then.to:
            yield then.to.text


def _can_continue(task: ast.Task) -> bool:
    """True if some rule continues, or if no rule needs to match: then the default is to continue."""
    if not any(rule.else_ for rule in task.rules):
        return True
    return any(then.do is not None and then.do.text in _CONTINUES for _, then in thens(task))


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
    if block.delay:
        yield _flow_task(block.span, f"{label}.again", {}, test=block.when, to=end)
        yield _flow_task(block.delay.span, f"{label}.wait", {"wait": block.delay})
        yield _flow_task(block.span, f"{label}.back", {}, to=test)
    else:
        yield _flow_task(block.span, f"{label}.again", {}, to=test)
    yield _flow_task(block.span, end, {})


def _until(block: ast.Repeat, label: str) -> Iterator[Expanded]:
    again = f"{label}.do"
    yield _flow_task(block.span, label, {"reset": label})
    yield _flow_task(block.span, again, _round(block, label))
    yield Body(block.do or (), "do")
    if block.delay:
        yield _flow_task(block.span, f"{label}.test", {}, test=block.when, to=f"{label}.wait")
        yield _flow_task(block.span, f"{label}.done", {}, to=f"{label}.end")
        yield _flow_task(block.delay.span, f"{label}.wait", {"wait": block.delay})
        yield _flow_task(block.span, f"{label}.back", {}, to=again)
    else:
        yield _flow_task(block.span, f"{label}.test", {}, test=block.when, to=again)
    yield _flow_task(block.span, f"{label}.end", {})


_EXPANSIONS: dict[str, Callable[[Any, str], Iterator[Expanded]]] = {"choose": _choose, "while": _while, "until": _until}


def _round(block: ast.Repeat, label: str) -> dict[str, object]:
    return {"round": label, "max": rounds_of(block.max)}


def _flow_task(
    span: Span, label: str, flow: dict[str, object], *, test: Scalar | None = None, to: str | None = None
) -> ast.Task:
    spec = ast.TaskSpec(span=span, keys={FLOW: span}, extra=(entry(span, FLOW, flow),))
    task = _noop(label, spec)
    if to is None:
        return task
    go_on = [(test, made(ast.Then, span, do="continue"))] if test is not None else []
    return with_policy(task, policy_of(span, *go_on, (None, made(ast.Then, span, do="jump", to=to))))


def _noop(label: str, spec: ast.TaskSpec) -> ast.Task:
    return changed(made(ast.Task, spec.span, kind="noop", spec=spec), label=scalar(spec.span, label))


# ---- objects of the tree that no author wrote


def made(cls: type[AnyStruct], span: Span, **fields: Any) -> AnyStruct:
    """Make an object whose keys are the fields that are not None, in this order; a plain value becomes a scalar."""
    given: dict[str, Any] = {
        name: scalar(span, value) if isinstance(value, str | int) else value
        for name, value in fields.items()
        if value is not None
    }
    return cls(span=span, keys=keys(span, map(ast.yaml_key, given)), **given)


def policy_of(span: Span, *choices: tuple[Scalar | str | None, ast.Then]) -> ast.TaskPolicy:
    """Make a policy of guards and what they lead to; None is `else`."""
    rules = [
        made(ast.PolicyRule, span, else_=made(ast.RuleElse, span, then=then))
        if when is None
        else made(ast.PolicyRule, span, when=when, then=then)
        for when, then in choices
    ]
    return made(ast.TaskPolicy, span, rules=tuple(rules))


_BLOCK_WORDS = frozenset({"choose", "while", "until"})
"""Labels that cannot be a task's key, because they would begin a block there."""

_INPUTS = 3
_RANKS = {"name": 0, "kind": 1, "desc": 2, "spec": 4}
"""The order of a task's keys; its inputs stand in the author's order, before `spec`."""


def scalar(span: Span, value: ScalarValue) -> Scalar:
    text = value if isinstance(value, str) else "null" if value is None else str(value)
    return Scalar(span, value, text.lower() if isinstance(value, bool) else text, "")


def value_node(span: Span, value: object) -> Node:
    """Make the node of plain data; a node in it stays as it is."""
    if isinstance(value, Scalar | nodes.Sequence | nodes.Mapping):
        return value
    if isinstance(value, Mapping):
        return nodes.Mapping(span, tuple(entry(span, str(key), item) for key, item in value.items()))
    if isinstance(value, list | tuple):
        return nodes.Sequence(span, tuple(value_node(span, item) for item in value))
    assert value is None or isinstance(value, str | int | float | bool)
    return scalar(span, value)


def entry(span: Span, key: str, value: object) -> MappingEntry:
    return MappingEntry(scalar(span, key), value_node(span, value))


def keys(span: Span, names: Iterable[str]) -> dict[str, Span]:
    """Make the places of keys, in the order in which they are to be printed."""
    return dict.fromkeys(names, span)


def labelled_task(task: ast.Task, label: str, spec: ast.TaskSpec | None) -> ast.Task:
    """Return a task under a label and with another spec, its keys in one order: kind, desc, inputs, spec."""
    inputs = {item.key.text for item in task.extra}
    names = [key for key in task.keys if key in inputs or key not in ("name", "spec")]
    names += ["name"] if label in _BLOCK_WORDS else []
    names += ["spec"] if spec else []
    names.sort(key=lambda key: _INPUTS if key in inputs else _RANKS.get(key, _INPUTS))
    return changed(
        task,
        keys={key: task.key_span(key) for key in names},
        label=scalar(task.label.span if task.label else task.key_span("kind"), label),
        spec=spec,
    )


def with_settings(spec: ast.TaskSpec | None, span: Span, settings: tuple[MappingEntry, ...]) -> ast.TaskSpec | None:
    """Return a task's spec with these open fields; None where it would be empty."""
    spec = spec or ast.TaskSpec(span=span)
    replaced = {item.key.text for item in spec.extra}
    rest = {key: place for key, place in spec.keys.items() if key not in replaced}
    if not settings and not rest:
        return None
    return changed(spec, keys={**keys(spec.span, (setting.key.text for setting in settings)), **rest}, extra=settings)


def with_policy(task: ast.Task, policy: ast.TaskPolicy) -> ast.Task:
    spec = task.spec or ast.TaskSpec(span=policy.span)
    return changed(task, spec=changed(spec, keys={**spec.keys, "policy": policy.span}, policy=policy))
