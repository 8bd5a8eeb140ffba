"""Random small playbooks, as programs: routers of both modes, cycles, gates, loops, pure routing, final steps.

A step's flavour says which boundary events it can have, so that what the analyses make of its code is checked too.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from noetlc.codegen.expressions import lower_template
from noetlc.syntax.template_parser import parse_template
from noetlvm.bytecode.isa import EXPRESSION, PIPELINE
from noetlvm.bytecode.program import (
    ArcCode,
    ExpressionCode,
    Instruction,
    LoopHeader,
    Pipeline,
    PlaybookCode,
    Transition,
    Value,
)

if TYPE_CHECKING:
    import random

EVENT_GUARDS = (
    "event.name == 'step.done'",
    "event.name == 'loop.done'",
    "event.name == 'step.failed'",
    "event.name != 'step.failed'",
    "event.status == 'error'",
    "event.error is defined",
    "event.name in ['step.done', 'loop.done']",
)
DATA_GUARDS = (
    "ctx.a == 1",
    "ctx.a != 1",
    "ctx.a == 2",
    "ctx.a > 1",
    "1 >= ctx.a",
    "ctx.a in [1, 2]",
    "ctx.a not in [1, 2]",
    "ctx.a == 1 and ctx.s == 'x'",
    "ctx.a == 1 or ctx.s == 'y'",
    "ctx.s == 'x'",
    "ctx.s != 'x'",
    "ctx.b",
    "not ctx.b",
    "ctx.b and ctx.s == 'x'",
    "ctx.b or ctx.a > 1",
    "ctx.a == 1 if ctx.b else ctx.a == 2",
    "ctx.a == 1 and ctx.a == 2",
    "ctx.b or not ctx.b",
    "ctx.t | length > 3",
)
MIXED_GUARDS = tuple(
    f"{event} {word} {data}"
    for event in ("event.name == 'step.done'", "event.name == 'step.failed'", "event.name != 'step.failed'")
    for data in ("ctx.a == 1", "ctx.b", "not ctx.b")
    for word in ("and", "or")
)
CONSTANTS = ("true", "false")
GUARDS = (*EVENT_GUARDS, *DATA_GUARDS, *MIXED_GUARDS, *CONSTANTS)
GATES = ("ctx.a == 1", "ctx.b", "ctx.b or not ctx.b", "ctx.a == 1 and ctx.a == 2", "false", "true")


@dataclass(frozen=True, slots=True)
class Flavour:
    """What a step does, and the boundary events that this allows."""

    events: frozenset[str]
    tasks: tuple[str, ...] = ()
    """Kinds of the step's tasks; `fail` is a task that always fails."""
    collection: Value | str = None
    """What the step loops over: a list, or a template as text; None if it does not loop."""
    best_effort: bool = False


DONE, FAILED, LOOP = "step.done", "step.failed", "loop.done"
FLAVOURS = (
    Flavour(frozenset({DONE})),
    Flavour(frozenset({DONE})),
    Flavour(frozenset({DONE}), ("noop",)),
    Flavour(frozenset({DONE, FAILED}), ("http",)),
    Flavour(frozenset({DONE, FAILED}), ("noop", "http")),
    Flavour(frozenset({FAILED}), ("fail",)),
    Flavour(frozenset({LOOP}), ("noop",), [1, 2]),
    Flavour(frozenset({LOOP, FAILED}), ("noop",), "ctx.a"),
    Flavour(frozenset({LOOP, FAILED}), ("http",), [1, 2]),
    Flavour(frozenset({LOOP}), ("http",), [1, 2], best_effort=True),
    Flavour(frozenset({FAILED}), ("fail",), [1]),
    Flavour(frozenset({LOOP}), ("fail",), []),
)


@dataclass(frozen=True, slots=True)
class RandomStep:
    """A step as it was drawn."""

    name: str
    flavour: Flavour
    gate: str | None
    drops: bool
    inclusive: bool
    arcs: tuple[tuple[str, str | None], ...]
    """Target and guard."""
    writes: str | None
    """The ctx key that it sets."""


@dataclass(frozen=True, slots=True)
class RandomPlaybook:
    """A playbook as it was drawn; the first step is the entry."""

    steps: tuple[RandomStep, ...]
    final: str | None

    def program(self) -> PlaybookCode:
        steps = tuple(_transition(step) for step in self.steps)
        return PlaybookCode("random", "random", {}, {}, self.steps[0].name, self.final, False, {}, (), steps)


@dataclass(frozen=True, slots=True)
class Taste:
    """What a net has much of, as shares."""

    inclusive: float
    gates: float
    back: float
    """Arcs that may lead backwards."""


def random_playbook(rng: random.Random) -> RandomPlaybook:
    names = [f"s{number}" for number in range(rng.choice((1, 2, 3, 4, 4, 5, 5, 6)))]
    taste = Taste(rng.choice((0.0, 0.4, 1.0)), rng.choice((0.0, 0.3)), rng.choice((0.0, 0.2, 0.5)))
    steps = tuple(_step(rng, name, names, taste) for name in names)
    return RandomPlaybook(steps, rng.choice(names) if rng.random() < 0.2 else None)


def _step(rng: random.Random, name: str, names: list[str], taste: Taste) -> RandomStep:
    ahead = names[names.index(name) + 1 :]
    arcs = []
    for _ in range(rng.choice((0, 1, 1, 2, 2, 3))):
        targets = names if rng.random() < taste.back else ahead
        pool = rng.choice(((None,), EVENT_GUARDS, DATA_GUARDS, MIXED_GUARDS, GUARDS))
        if ahead and not arcs and rng.random() < 0.5:
            targets = ahead[:1]  # so that most steps can be reached
        if targets:
            arcs.append((rng.choice(targets), rng.choice(pool)))
    return RandomStep(
        name,
        rng.choice(FLAVOURS),
        rng.choice(GATES) if rng.random() < taste.gates else None,
        rng.random() < 0.5,
        rng.random() < taste.inclusive,
        tuple(arcs),
        rng.choice("abs") if rng.random() < 0.3 else None,
    )


@lru_cache(maxsize=1024)
def guard_code(text: str) -> ExpressionCode:
    return lower_template(parse_template("{{ " + text + " }}"), guard=True).expression


def _constant(value: Value) -> ExpressionCode:
    return ExpressionCode((Instruction(EXPRESSION["CONST"], (value,)), Instruction(EXPRESSION["RETURN"])))


def _transition(step: RandomStep) -> Transition:
    looped = step.flavour.collection
    collection = guard_code(looped) if isinstance(looped, str) else _constant(looped)
    loops = () if looped is None else (LoopHeader(collection, "item", False, 1, False, ()),)
    tasks = step.flavour.tasks or (("noop",) if step.writes else ())
    return Transition(
        step.name,
        guard_code(step.gate) if step.gate else None,
        step.drops,
        loops,
        step.flavour.best_effort,
        _pipeline(tasks, step.writes) if tasks else None,
        step.inclusive,
        tuple(
            ArcCode(target, guard_code(guard) if guard else None, None, guard is not None and "event" in guard)
            for target, guard in step.arcs
        ),
        {},
    )


def _pipeline(tasks: tuple[str, ...], writes: str | None) -> Pipeline:
    code: list[Instruction] = []
    nothing = _constant({})
    for number, kind in enumerate(tasks):
        code += [
            Instruction(PIPELINE["ENTER"], (f"task_{number}",)),
            Instruction(PIPELINE["CALL"], ("noop" if kind == "fail" else kind, nothing, nothing)),
        ]
        if kind == "fail":
            code.append(Instruction(PIPELINE["FAIL"]))
            return Pipeline(tuple(code))
        at = len(code)
        code += [
            Instruction(PIPELINE["ON_ERROR"], (at + 2,)),
            Instruction(PIPELINE["CONTINUE"], (at + 3,)),
            Instruction(PIPELINE["FAIL"]),
        ]
    if writes:
        code.append(Instruction(PIPELINE["PATCH"], (None, _constant({writes: 1}))))
    code.append(Instruction(PIPELINE["END"]))
    return Pipeline(tuple(code))
