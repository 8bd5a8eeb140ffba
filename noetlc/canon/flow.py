"""Flow tasks: how the canonical form writes `choose`, `while` and `until` as tasks of the language itself.

A flow task is a `kind: noop` task with `spec.flow`. It is a position in the pipeline and a decision there, never a
tool call: it makes no task run, no event and no outcome, uses no task fuel and leaves `_prev` unchanged.

    spec.flow               effect
    ----------------------  --------------------------------------------------------------------------------------
    {}                      none: a mark
    {reset: NAME}           the round counter NAME is set to zero
    {round: NAME, max: N}   counts a round if control continues here (not if it jumps away); the round after the
                            N-th fails with `error.kind: fuel` (S39)

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
branch needs no `.done`. An unreachable flow task is left out, so generated code is reachable; tasks that the author
wrote are never left out. A workbook call that is replaced by a list begins with a mark of its own label.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from noetlc.canon.errors import ExpansionError
from noetlc.syntax import ast
from noetlc.syntax.nodes import Mapping, Node, Scalar
from noetlvm.bytecode.limits import OPERAND_MAX
from noetlvm.record import Record

FLOW = "flow"
"""The knob that makes a noop a flow task."""

ROUNDS_MAX = 10_000
"""Rounds of a `while` or `until` that does not say `max` (S39)."""

_CONTINUES = frozenset({"continue", "skip"})

_HELP = "flow tasks are what `noetlc canon` makes of `choose`, `while` and `until`: write one of these instead"


class FlowTask(Record):
    """A flow task, parsed."""

    reset: str | None = None
    """The round counter to set to zero."""
    round: str | None = None
    """The round counter to increment when control continues to the next entry."""
    max: int = ROUNDS_MAX
    test: Scalar | None = None
    """Control continues to the next entry if it holds."""
    to: str | None = None
    """Label that control goes to if `test` does not hold, or always if there is no test; None: the next entry."""


def flow_of(task: ast.Task) -> FlowTask | None:
    """Parse a flow task; None for a task that calls a tool. Raises ExpansionError for a malformed one."""
    knob = task.spec.get_extra(FLOW) if task.spec else None
    if knob is None:
        return None
    if not isinstance(knob, Mapping) or not task.kind or task.kind.text != "noop" or task.extra:
        raise ExpansionError("P320", knob.span, "`spec.flow` belongs to a noop without inputs, and is a mapping", _HELP)
    known = {entry.key.text: entry.value for entry in knob.entries}
    if set(known) not in (set(), {"reset"}, {"round", "max"}):
        raise ExpansionError(
            "P320", knob.span, "`spec.flow` is `{}`, `{reset: NAME}` or `{round: NAME, max: N}`", _HELP
        )
    test, to = _decision(task)
    return FlowTask(
        reset=_text(known.get("reset")),
        round=_text(known.get("round")),
        max=rounds_of(_scalar(known.get("max"))),
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
    every = ("do", "attempts", "backoff", "delay", "to", "set_iter", "set_ctx")
    return {word for word in every if getattr(then, word) is not None}


def _text(node: Node | None) -> str | None:
    if node is None:
        return None
    if isinstance(node, Scalar) and isinstance(node.value, str):
        return node.value
    raise ExpansionError("P320", node.span, "a round counter goes by the label of its block", _HELP)


def _scalar(node: Node | None) -> Scalar | None:
    if node is None or isinstance(node, Scalar):
        return node
    raise ExpansionError("P320", node.span, "`max` is a number of rounds", _HELP)


def rounds_of(node: Scalar | None) -> int:
    """Return the number of rounds that a `max` allows."""
    if node is None:
        return ROUNDS_MAX
    if type(node.value) is int and 0 <= node.value <= OPERAND_MAX:
        return node.value
    raise ExpansionError(
        "P319", node.span, f"`max` is a number of rounds, from 0 to {OPERAND_MAX:,}", "write such a number"
    )


# ---- reachability, as the verifier sees it


def reachable(tasks: Sequence[ast.Task]) -> frozenset[int]:
    """Return the positions of the tasks that control can reach if any guard may hold or not."""
    return _closure(tasks, [0])


def without_dead_flow(tasks: Sequence[ast.Task]) -> tuple[ast.Task, ...]:
    """Return the tasks without unreachable flow tasks. The author's tasks remain, and whatever they jump to."""
    written = [position for position, task in enumerate(tasks) if not _is_flow(task)]
    positions = _positions(tasks)
    targets = [positions[to] for source in written for to in _jumps(tasks[source]) if to in positions]
    live = _closure(tasks, [0, *targets]).union(written)
    return tuple(task for position, task in enumerate(tasks) if position in live)


def _is_flow(task: ast.Task) -> bool:
    return task.spec is not None and task.spec.get_extra(FLOW) is not None


def _closure(tasks: Sequence[ast.Task], start: Iterable[int]) -> frozenset[int]:
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


def _thens(task: ast.Task) -> Iterator[ast.Then]:
    for rule in task.rules:
        then = rule.else_.then if rule.else_ else rule.then
        if then:
            yield then


def _jumps(task: ast.Task) -> Iterator[str]:
    for then in _thens(task):
        if then.do and then.do.text == "jump" and then.to:
            yield then.to.text


def _can_continue(task: ast.Task) -> bool:
    """True if some rule continues, or if no rule needs to match: then the default is to continue."""
    if not any(rule.else_ for rule in task.rules):
        return True
    return any(then.do is not None and then.do.text in _CONTINUES for then in _thens(task))
