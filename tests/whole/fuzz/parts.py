"""The code in a program: found, and put back changed. Nothing here is random."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from noetlvm.bytecode.program import ExpressionCode, Instruction, Pipeline, PlaybookCode, Program, Transition
from noetlvm.record import changed

Code: TypeAlias = tuple[Instruction, ...]
Edit: TypeAlias = "Callable[[ExpressionCode], ExpressionCode]"


def expressions(program: Program) -> Iterator[ExpressionCode]:
    """Yield every expression, each as often as it is used."""
    found: list[ExpressionCode] = []

    def note(expression: ExpressionCode) -> ExpressionCode:
        found.append(expression)
        return expression

    each_expression(program, note)
    yield from found


def each_expression(program: Program, edit: Edit) -> Program:
    """Return the program with every expression edited, in a fixed order."""
    return each_step(program, lambda step: _edited(step, edit))


def each_step(program: Program, edit: Callable[[Transition], Transition]) -> Program:
    """Return the program with every step edited, in order."""
    return changed(
        program, playbooks=tuple(changed(p, steps=tuple(edit(step) for step in p.steps)) for p in program.playbooks)
    )


def each_playbook(program: Program, edit: Callable[[PlaybookCode], PlaybookCode]) -> Program:
    """Return the program with every playbook edited, in order."""
    return changed(program, playbooks=tuple(edit(playbook) for playbook in program.playbooks))


def _edited(step: Transition, edit: Edit) -> Transition:
    return changed(
        step,
        admit=step.admit and edit(step.admit),
        loops=tuple(changed(loop, collection=edit(loop.collection)) for loop in step.loops),
        arcs=tuple(changed(a, guard=a.guard and edit(a.guard), args=a.args and edit(a.args)) for a in step.arcs),
        pipeline=step.pipeline and _edited_pipeline(step.pipeline, edit),
    )


def _edited_pipeline(pipeline: Pipeline, edit: Edit) -> Pipeline:
    code = tuple(
        changed(i, operands=tuple(edit(o) if isinstance(o, ExpressionCode) else o for o in i.operands))
        for i in pipeline.code
    )
    return changed(pipeline, code=code)
