"""The ways in which a run of a step can fail, and what proves each impossible (S81).

Lint and `noetlc graph` say that something never happens, so whatever is not proved here may happen. Source and bundle
follow a pipeline in their own terms, and take their proofs from this module.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from noetlc.analysis.formulas import UNDEFINED


class FailureCause(StrEnum):
    """A way in which a run fails."""

    OUTCOME = "a task ends with an error, or its rules say `fail`, and that is where the pipeline ends"
    GUARD = "a `when` of a rule or of a block cannot be evaluated"
    PATCH = "a value of `set_ctx` or `set_iter` is undefined, cannot be computed or is too large"
    NUMBER = "`attempts`, `delay`, `max`, `max_in_flight` or `rate` gives no number"
    FUEL = "rounds or task runs are used up"
    COLLECTION = "the collection of a loop is undefined, or neither a list nor a mapping"
    CONFLICT = "parallel iterations write different values to one key of `ctx`"
    REDUCER = "a reducer gets values of a wrong type"
    TIME = "a time limit is reached"


PROOFS: Mapping[FailureCause, str] = {
    FailureCause.OUTCOME: "its tool cannot fail, its inputs and settings are constants, and no rule says `fail`",
    FailureCause.GUARD: "it has only reads, `and`, `or`, `not`, `is defined`, and comparisons with constants",
    FailureCause.PATCH: "all its values are constants",
    FailureCause.NUMBER: "it is written as a number",
    FailureCause.FUEL: "control never goes back, and there are no more tasks than `max_transitions`",
    FailureCause.COLLECTION: "it is written out, or constant",
    FailureCause.CONFLICT: "the key has a reducer, all writes of it are the same constant, or there is one iteration",
    FailureCause.REDUCER: "it is `first`, `last`, `any` or `all`, or nothing writes the key",
    FailureCause.TIME: "the step has no `lifecycle`",
}
"""What proves each impossible. In inputs and patches, the names of `ALWAYS_THERE` count as constants."""

ALWAYS_THERE = frozenset({"execution_id", "_task", "_attempt"})

_NEVER_FAIL = frozenset({"any", "all", "first", "last"})


class LoopFacts(NamedTuple):
    """What matters of one level of a loop."""

    size: int | None
    """Iterations; None if they depend on data."""
    is_parallel: bool
    has_computed_number: bool
    """`max_in_flight` or a number of `rate` is a template."""
    reducers: Mapping[str, str]


Write = tuple[str, object]
"""A key of `ctx` that a task writes, and its value: `UNDEFINED` if it is not constant."""


def loop_failures(loops: Sequence[LoopFacts], writes: Iterable[Write]) -> frozenset[FailureCause]:
    """Return how the loops around a pipeline can fail, outermost first, apart from the pipeline itself."""
    found: set[FailureCause] = set()
    written: dict[str, list[object]] = {}
    if all(loop.size != 0 for loop in loops):
        for key, value in writes:
            written.setdefault(key, []).append(value)
    for level, loop in enumerate(loops):
        if loop.size is None:
            found.add(FailureCause.COLLECTION)
        if loop.has_computed_number:
            found.add(FailureCause.NUMBER)
        for key, values in written.items() if loop.is_parallel else ():
            reducer = loop.reducers.get(key)
            inner_reduce = any(key in inner.reducers for inner in loops[level + 1 :])
            if reducer is not None and reducer not in _NEVER_FAIL:
                found.add(FailureCause.REDUCER)
            if reducer is None and loop.size != 1 and (inner_reduce or not _are_equal(values)):
                found.add(FailureCause.CONFLICT)
    return frozenset(found)


def _are_equal(values: Sequence[object]) -> bool:
    return all(value is not UNDEFINED and repr(value) == repr(values[0]) for value in values)
