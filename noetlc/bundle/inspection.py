"""The content of a bundle, for people and for other tools: steps, tasks, tools, secrets, sizes, instructions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

from noetlvm.bytecode.codec.container import bundle_id, checksum, sections
from noetlvm.bytecode.isa import ISA_VERSION
from noetlvm.bytecode.program import ExpressionCode, Instruction, PlaybookCode, Program, Transition, addresses
from noetlvm.bytecode.verify.operands import count_taken
from noetlvm.record import Record, fields_of


def inspect(program: Program, data: bytes) -> dict[str, Any]:
    """Return the summary of a verified bundle as plain data."""
    return {
        "id": bundle_id(data),
        "instruction_set": ISA_VERSION,
        "bytes": len(data),
        "checksum": checksum(data),
        "sections": {section.id: section.payload[1] - section.payload[0] for section in sections(data)},
        "instructions": sum(len(address.code) for address in addresses(program)),
        "files": list(program.debug.files) if program.debug else None,
        "playbooks": [_playbook(playbook) for playbook in program.playbooks],
    }


def _playbook(playbook: PlaybookCode) -> dict[str, Any]:
    steps = [_step(step) for step in playbook.steps]
    tools = Counter(task["kind"] for step in steps for task in step["tasks"])
    return {
        "name": playbook.name,
        "path": playbook.path,
        "entry_step": playbook.entry_step,
        "final_step": playbook.final_step,
        "steps": steps,
        "tools": dict(sorted(tools.items())),
        "secrets": [
            {"name": c.name, "kind": c.kind, "steps": [s["name"] for s in steps if c.name in s["secrets"]]}
            for c in playbook.keychain
        ],
        "children": sorted({path for step in playbook.steps for path in _children(step)}),
    }


def _step(step: Transition) -> dict[str, Any]:
    code = step.pipeline.code if step.pipeline else ()
    return {
        "name": step.name,
        "gate": step.admit is not None,
        "loops": [loop.iterator for loop in step.loops],
        "tasks": list(_tasks(code)),
        "next": [arc.target for arc in step.arcs],
        "instructions": len(code),
        "secrets": sorted(set(_secrets(code))),
    }


def _tasks(code: Iterable[Instruction]) -> Iterator[dict[str, object]]:
    label: object = ""
    for instruction in code:
        if instruction.opcode.name == "ENTER":
            label = instruction.operands[0]
        elif instruction.opcode.name == "CALL":
            yield {"label": label, "kind": instruction.operands[0]}


def _secrets(code: Iterable[Instruction]) -> Iterator[str]:
    """Yield the keychain entries that a pipeline names: as `keychain.x`, or as a task's `auth: x`."""
    operands = (operand for instruction in code for operand in instruction.operands)
    for expression in (operand for operand in operands if isinstance(operand, ExpressionCode)):
        for before, after in zip(expression.code, expression.code[1:], strict=False):
            if (before.opcode.name, *before.operands) == ("NAME", "keychain") and after.opcode.name == "ATTR":
                yield str(after.operands[0])
    yield from _inputs(code, "auth")


def _children(step: Transition) -> Iterator[str]:
    calls = [i for i in (step.pipeline.code if step.pipeline else ()) if i.opcode.name == "CALL"]
    return _inputs((call for call in calls if call.operands[0] == "playbook"), "path")


def _inputs(code: Iterable[Instruction], name: str) -> Iterator[str]:
    """Yield the constant texts of one input of the calls in a pipeline."""
    for call in code:
        inputs = call.operands[1] if call.opcode.name == "CALL" else None
        if not isinstance(inputs, ExpressionCode):
            continue
        value = _constants(inputs.code).get(name)
        if isinstance(value, str):
            yield value


def _constants(code: Sequence[Instruction]) -> dict[Any, Any]:
    """Return the mapping that verified code makes, as far as its values are constants; others are None.

    One path is followed; the stack is the same on each.
    """
    stack: list[Any] = []
    at = 0
    while code[at].opcode.name != "RETURN":
        opcode, operands = code[at].opcode, code[at].operands
        taken = count_taken(code[at])
        top = stack[len(stack) - taken :]
        del stack[len(stack) - taken :]
        leaves = opcode.name in ("JUMP", "NEXT")  # a for block is left at once
        if opcode.name == "CONST":
            stack.append(operands[0])
        elif opcode.name == "RECORD":
            stack.append(dict(zip(cast("list[str]", operands[0]), top, strict=True)))
        else:
            pushed = cast("int", operands[0]) if opcode.name == "UNPACK" else opcode.pushes
            stack += [None] * ((opcode.target_pushes or 0) if leaves else pushed)
        at = cast("int", operands[0]) if leaves else at + 1
    return stack[-1] if isinstance(stack[-1], dict) else {}


def table(summary: dict[str, Any]) -> str:
    parts = [
        f"bundle        {summary['id'][:16]}, instruction set {summary['instruction_set']}",
        f"size          {summary['bytes']:,} bytes, {summary['instructions']:,} instructions",
        f"checksum      {(summary['checksum'] or 'none: format 4')[:16]}",
        f"debug map     {', '.join(summary['files']) if summary['files'] else 'stripped'}",
        "",
        *_columns([("section", "bytes"), *((name, f"{size:,}") for name, size in summary["sections"].items())]),
    ]
    for playbook in summary["playbooks"]:
        parts += ["", *_playbook_lines(playbook)]
    return "\n".join(parts) + "\n"


def _playbook_lines(playbook: dict[str, Any]) -> Iterator[str]:
    yield f"playbook {playbook['path']} ({playbook['name']})"
    yield f"  begins at   {playbook['entry_step']}"
    if playbook["final_step"]:
        yield f"  ends with   {playbook['final_step']}"
    yield f"  tools       {', '.join(f'{n} {kind}' for kind, n in playbook['tools'].items()) or 'none'}"
    yield f"  secrets     {', '.join(map(_secret, playbook['secrets'])) or 'none'}"
    yield f"  children    {', '.join(playbook['children']) or 'none'}"
    yield ""
    rows = [("step", "loops", "tasks", "next")]
    rows += [
        (s["name"], " / ".join(s["loops"]), _task_list(s["tasks"]), ", ".join(s["next"])) for s in playbook["steps"]
    ]
    yield from (f"  {line}" for line in _columns(rows))


def _secret(secret: dict[str, Any]) -> str:
    used = f", used by {', '.join(secret['steps'])}" if secret["steps"] else ""
    return f"{secret['name']} ({secret['kind']}{used})"


def _task_list(tasks: list[dict[str, str]]) -> str:
    return ", ".join(f"{task['label']}: {task['kind']}" for task in tasks)


def _columns(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        yield "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()


# ---- every instruction, for other tools


def program_data(program: Program) -> dict[str, Any]:
    """Return the program, without its debug map, as mappings and lists."""
    return {"playbooks": [_data(playbook) for playbook in program.playbooks]}


def _data(value: object) -> Any:
    if isinstance(value, Instruction):
        return [value.opcode.name, *(_data(operand) for operand in value.operands)]
    if isinstance(value, ExpressionCode) and not value.slots:
        return _data(value.code)
    if isinstance(value, Record):
        return {field: _data(getattr(value, field)) for field in fields_of(type(value))}
    return [_data(item) for item in value] if isinstance(value, tuple) else value
