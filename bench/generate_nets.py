"""Programs of any size for the graph benchmarks: the shapes that playbooks have, one after another."""

from __future__ import annotations

from functools import cache

from noetlc.codegen.expressions import lower_template
from noetlc.syntax.template_parser import parse_template
from noetlvm.bytecode.isa import EXPRESSION, PIPELINE
from noetlvm.bytecode.program import ArcCode, ExpressionCode, Instruction, Pipeline, PlaybookCode, Transition

STEPS_PER_SEGMENT = 10
_DONE = "event.name == 'step.done'"
_FAILED = "event.name == 'step.failed'"
_FORK_EVERY = 50
"""Segments between two forks; every fork adds a token."""


def generate_net(steps: int) -> PlaybookCode:
    """Return a playbook of about that many steps: a choice, a cycle of retries, now and then a fork, one handler."""
    found: list[Transition] = []
    segments = max(1, steps // STEPS_PER_SEGMENT)
    for number in range(segments):
        onward = f"s{number + 1}_0" if number + 1 < segments else "report"
        found += _segment(f"s{number}_", onward, forks=number % _FORK_EVERY == 0)
    found += [_step("report"), _step("handler")]
    return PlaybookCode("large", "bench/large", {}, {}, "s0_0", None, False, {}, (), tuple(found))


def _segment(prefix: str, onward: str, *, forks: bool) -> list[Transition]:
    name = [f"{prefix}{number}" for number in range(STEPS_PER_SEGMENT)]
    return [
        _step(name[0], (name[1], "ctx.kind == 'new'"), (name[2], "ctx.kind == 'old'"), (name[3], None)),
        _step(name[1], (name[4], _DONE), ("handler", _FAILED)),
        _step(name[2], (name[4], _DONE), ("handler", _FAILED)),
        _step(name[3], (name[4], _DONE), ("handler", _FAILED)),
        _step(name[4], (name[5], f"{_DONE} and ctx.more"), (name[6], _DONE), ("handler", _FAILED)),
        _step(name[5], (name[4], _DONE), ("handler", _FAILED)),
        _step(name[6], (name[7], _DONE), (name[8], _DONE if forks else "ctx.audit"), inclusive=forks),
        _step(name[7], (onward, _DONE), ("handler", _FAILED)),
        _step(name[8], (name[9], _DONE)),
        _step(name[9]),
    ]


def _step(name: str, *arcs: tuple[str, str | None], inclusive: bool = False) -> Transition:
    ways = tuple(ArcCode(target, _guard(guard) if guard else None, None, guard is not None) for target, guard in arcs)
    return Transition(name, None, False, (), False, _pipeline(), inclusive, ways, {})


@cache
def _guard(text: str) -> ExpressionCode:
    return lower_template(parse_template("{{ " + text + " }}"), guard=True).expression


@cache
def _pipeline() -> Pipeline:
    nothing = ExpressionCode((Instruction(EXPRESSION["CONST"], ({},)), Instruction(EXPRESSION["RETURN"])))
    return Pipeline(
        (
            Instruction(PIPELINE["ENTER"], ("get",)),
            Instruction(PIPELINE["CALL"], ("http", nothing, nothing)),
            Instruction(PIPELINE["ON_ERROR"], (4,)),
            Instruction(PIPELINE["CONTINUE"], (5,)),
            Instruction(PIPELINE["FAIL"]),
            Instruction(PIPELINE["END"]),
        )
    )
