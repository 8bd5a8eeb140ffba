"""Makes programs of the shared builders fit the verifier, which requires more than the container does.

Wherever a mapping is needed, an expression that gives something else becomes the one value of a mapping.
"""

from __future__ import annotations

from noetlvm.bytecode.isa import EXPRESSION
from noetlvm.bytecode.program import ArcCode, ExpressionCode, Instruction, Pipeline, Program, Transition, addresses
from noetlvm.record import changed

_RECORD = Instruction(EXPRESSION["RECORD"], (["value"],))
_PATCH = ExpressionCode((Instruction(EXPRESSION["CONST"], ({"value": 1},)), Instruction(EXPRESSION["RETURN"])))


def fitted(program: Program) -> Program:
    """Return the program with what the verifier would refuse put right. Its debug map keeps its first marks only."""
    playbooks = tuple(
        changed(playbook, steps=tuple(_step(step) for step in playbook.steps)) for playbook in program.playbooks
    )
    bare = Program(playbooks)
    if program.debug is None:
        return bare
    pairs = zip(program.debug.entries, addresses(bare), strict=False)
    entries = tuple(
        changed(entry, address=address.name, marks=(entry.marks * address.marks)[: address.marks])
        for entry, address in pairs
    )
    return changed(bare, debug=changed(program.debug, entries=entries))


def _step(step: Transition) -> Transition:
    loops = tuple(changed(loop, iterator=f"item_{level}") for level, loop in enumerate(step.loops))
    return changed(
        step,
        loops=loops,
        arcs=tuple(_arc(arc) for arc in step.arcs),
        pipeline=step.pipeline and _pipeline(step.pipeline),
    )


def _arc(arc: ArcCode) -> ArcCode:
    reads = arc.guard is not None and any(i.operands == ("event",) for i in arc.guard.code if i.opcode.name == "NAME")
    return changed(arc, args=arc.args and _mapping(arc.args), handles_failure=reads)


def _pipeline(pipeline: Pipeline) -> Pipeline:
    return changed(pipeline, code=tuple(_task_instruction(instruction) for instruction in pipeline.code))


def _task_instruction(instruction: Instruction) -> Instruction:
    if instruction.opcode.name not in ("CALL", "PATCH"):
        return instruction
    operands = tuple(_mapping(o) if isinstance(o, ExpressionCode) else o for o in instruction.operands)
    return changed(instruction, operands=(None, _PATCH) if operands == (None, None) else operands)


def _mapping(expression: ExpressionCode) -> ExpressionCode:
    """Wrap code that ends in its only RETURN."""
    *body, end = expression.code
    return changed(expression, code=(*body, _RECORD, end))
