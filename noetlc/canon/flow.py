"""Flow tasks: how the canonical form says `choose`, `while` and `until` in the words of the language itself.

A flow task is a `kind: noop` task with `spec.flow`. It stands for a place in the pipeline and a decision there, and
is never a tool call: it makes no task run, no event and no outcome, burns no task fuel and leaves `_prev` as it is.

    spec.flow               what happens at the place
    ----------------------  --------------------------------------------------------------------------------------
    {}                      nothing: a mark
    {reset: NAME}           the round counter NAME is set to zero
    {round: NAME, max: N}   when control goes on from here (not when it jumps away) a round is counted; the round
                            after the N-th fails with `error.kind: fuel` (S39)

    spec.policy.rules                                             where control goes
    ------------------------------------------------------------  ------------------------------------------------
    (no policy)                                                   on to the next entry
    [{else: {then: {do: jump, to: L}}}]                           to L
    [{when: C, then: {do: continue}}, {else: {…jump, to: L…}}]    on if C holds, else to L

No other key and no other rule may stand there. `C` sees what a task input sees (S11). The code of a flow task with
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

where P is `choose_1`, `while_2` and so on: the how-manieth block of that word in its list, under the prefix of the
list it stands in (`choose_1.when_2.`, `while_1.do.`; in an inlined workbook task also the caller's label). The last
branch needs no `.done`. A flow task that control cannot come to is left out, so generated code is reachable; tasks
that the author wrote are never left out, whether control reaches them or not. A workbook call that stands for a list
begins with a mark of its own label.
"""

from __future__ import annotations

from noetlc.canon.refusal import Refusal
from noetlc.syntax import ast
from noetlc.syntax.nodes import Mapping, Node, Scalar
from noetlvm.bytecode.limits import OPERAND_MAX
from noetlvm.record import Record

FLOW = "flow"
"""The knob that makes a noop a flow task."""

ROUNDS_MAX = 10_000
"""Rounds of a `while` or `until` that does not say `max` (S39)."""

_HELP = "flow tasks are what `noetlc canon` makes of `choose`, `while` and `until`: write one of these instead"


class Flow(Record):
    """What a flow task does."""

    reset: str | None = None
    """The counter to set to zero."""
    round: str | None = None
    """The counter to count a round on, once control goes on from here."""
    max: int = ROUNDS_MAX
    test: Scalar | None = None
    """Control goes on if it holds."""
    to: str | None = None
    """Where control goes if `test` does not hold, or always where there is no test; None: on to the next entry."""


def flow_of(task: ast.Task) -> Flow | None:
    """Read a flow task; None for a task that calls a tool. Refuses what no flow task may say."""
    knob = task.spec.get_extra(FLOW) if task.spec else None
    if knob is None:
        return None
    if not isinstance(knob, Mapping) or not task.kind or task.kind.text != "noop" or task.extra:
        raise Refusal("P320", knob.span, "`spec.flow` belongs to a noop without inputs, and is a mapping", _HELP)
    known = {entry.key.text: entry.value for entry in knob.entries}
    if set(known) not in (set(), {"reset"}, {"round", "max"}):
        raise Refusal("P320", knob.span, "`spec.flow` is `{}`, `{reset: NAME}` or `{round: NAME, max: N}`", _HELP)
    test, to = _decision(task)
    return Flow(
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
        case (first, last) if (to := _jump(last)) is not None and first.when and _goes_on(first.then):
            return first.when, to
    raise Refusal(
        "P320", task.span, "a flow task has no rules, `else: jump`, or `when: … continue` and `else: jump`", _HELP
    )


def _jump(rule: ast.PolicyRule) -> str | None:
    then = rule.else_.then if rule.else_ else None
    is_jump = then is not None and _words(then) == {"do", "to"} and then.do is not None and then.do.text == "jump"
    return then.to.text if is_jump and then and then.to else None


def _goes_on(then: ast.Then | None) -> bool:
    return then is not None and _words(then) == {"do"} and then.do is not None and then.do.text == "continue"


def _words(then: ast.Then) -> set[str]:
    every = ("do", "attempts", "backoff", "delay", "to", "set_iter", "set_ctx")
    return {word for word in every if getattr(then, word) is not None}


def _text(node: Node | None) -> str | None:
    if node is None:
        return None
    if isinstance(node, Scalar) and isinstance(node.value, str):
        return node.value
    raise Refusal("P320", node.span, "a round counter goes by the label of its block", _HELP)


def _scalar(node: Node | None) -> Scalar | None:
    if node is None or isinstance(node, Scalar):
        return node
    raise Refusal("P320", node.span, "`max` is a number of rounds", _HELP)


def rounds_of(node: Scalar | None) -> int:
    """Return how many rounds a `max` allows."""
    if node is None:
        return ROUNDS_MAX
    if type(node.value) is int and 0 <= node.value <= OPERAND_MAX:
        return node.value
    raise Refusal("P319", node.span, f"`max` is a number of rounds, from 0 to {OPERAND_MAX:,}", "write such a number")
