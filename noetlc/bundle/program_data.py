"""A program as plain data for JSON: every instruction as its name and operands. For other tools to read."""

from __future__ import annotations

from typing import Any

from noetlvm.bytecode.program import Expression, Instruction, Program
from noetlvm.record import Record, fields_of


def program_data(program: Program) -> dict[str, Any]:
    """Return the program, without its debug map, as mappings and lists."""
    return {"playbooks": [_data(playbook) for playbook in program.playbooks]}


def _data(value: object) -> Any:
    if isinstance(value, Instruction):
        return [value.opcode.name, *(_data(operand) for operand in value.operands)]
    if isinstance(value, Expression) and not value.slots:
        return _data(value.code)
    if isinstance(value, Record):
        return {field: _data(getattr(value, field)) for field in fields_of(type(value))}
    return [_data(item) for item in value] if isinstance(value, tuple) else value
