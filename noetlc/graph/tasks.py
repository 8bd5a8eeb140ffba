"""The inside of a step: its pipeline as a graph of tasks and decisions. Reads code, decides nothing about it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum

from noetlvm.bytecode.isa import LABELLED, ControlFlow
from noetlvm.bytecode.program import Instruction, Pipeline
from noetlvm.record import Record

_DIRECTIVES = {"JUMP_TO": "jump", "SKIP": "skip", "BREAK": "break"}
"""The label of an edge where the task does something else than continue."""


class NodeKind(StrEnum):
    """What a node of the graph stands for."""

    BEGIN = "begin"
    TASK = "task"
    DECISION = "decision"
    DONE = "done"
    FAILED = "failed"


class TaskNode(Record):
    """A task, a decision of `choose`, `while` or `until`, or a way in or out."""

    kind: NodeKind
    label: str
    tool: str = ""
    """The kind of tool that the task calls."""


class TaskEdge(Record):
    """From a node to the next, both by their place."""

    source: int
    target: int
    label: str = ""
    is_failure: bool = False


class TaskGraph(Record):
    """A pipeline's control flow."""

    nodes: tuple[TaskNode, ...]
    edges: tuple[TaskEdge, ...]


_DONE, _FAILED = -1, -2


class _Exit(Record):
    """A way out of a block: to the block at an instruction, or to an end."""

    target: int
    label: str = ""


def task_graph(pipeline: Pipeline) -> TaskGraph:
    """Return the graph of a pipeline's tasks. Marks that decide nothing are left out."""
    code = pipeline.code
    heads = [at for at, instruction in enumerate(code) if instruction.opcode.name in LABELLED]
    exits = {head: _exits(code, head) for head in heads}
    passed = {
        head: ways[0].target for head, ways in exits.items() if code[head].opcode.name == "MARK" and len(ways) == 1
    }
    return _Builder(code, exits, passed).graph(heads[0] if heads else _DONE)


def _exits(code: Sequence[Instruction], head: int) -> list[_Exit]:
    """Follow a block from its head to every place where it leaves it."""
    decides = code[head].opcode.name == "MARK"
    found: dict[_Exit, None] = {}
    seen = set()
    ahead = [(head + 1, "")]
    while ahead:
        at, label = ahead.pop()
        if at in seen:
            continue
        if code[at].opcode.name in LABELLED:
            found[_Exit(at, label)] = None
            continue
        seen.add(at)
        for way in _ways(code, at, label, decides, head):
            if isinstance(way, _Exit):
                found[way] = None
            else:
                ahead.append(way)
    return list(found)


def _ways(
    code: Sequence[Instruction], at: int, label: str, decides: bool, head: int
) -> Iterator[_Exit | tuple[int, str]]:
    """Yield where control goes after an instruction: out, or on within the block."""
    instruction = code[at]
    name, flow = instruction.opcode.name, instruction.opcode.flow
    if name == "RETRY":
        yield _Exit(head, f"retry, {_limit(instruction.operands[0])} in all")
        yield at + 1, label
        return
    if name == "ROUND":
        yield _Exit(_FAILED, f"after {_limit(instruction.operands[1])} rounds")
    if flow is ControlFlow.END:
        yield _Exit(_FAILED if name == "FAIL" else _DONE, _DIRECTIVES.get(name, label))
        return
    yes, no = ("yes", "no") if decides and name == "UNLESS" else (label, label)
    if flow is not ControlFlow.NEXT:
        yield instruction.target, _DIRECTIVES.get(name, no)
    if flow is not ControlFlow.JUMP:
        yield at + 1, yes


def _limit(operand: object) -> str:
    """Return a number for people; one that a template gives is not known here."""
    return str(operand) if isinstance(operand, int) else "n"


class _Builder:
    def __init__(self, code: Sequence[Instruction], exits: dict[int, list[_Exit]], passed: dict[int, int]) -> None:
        self.code = code
        self.exits = exits
        self.passed = passed
        self.nodes = [TaskNode(NodeKind.BEGIN, "begin")]
        self.places: dict[int, int] = {}

    def graph(self, first: int) -> TaskGraph:
        """Build nodes and edges from the first block on; what is never entered is not drawn."""
        edges: dict[TaskEdge, None] = {}
        ahead = [self._beyond(first)]
        edges[TaskEdge(0, self._place(ahead[0]))] = None
        done = set()
        while ahead:
            head = ahead.pop(0)
            if head in done or head < 0:
                continue
            done.add(head)
            for way in self.exits[head]:
                target = self._beyond(way.target)
                edge = TaskEdge(self._place(head), self._place(target), way.label, target == _FAILED)
                edges[edge] = None
                ahead.append(target)
        return TaskGraph(tuple(self.nodes), tuple(edges))

    def _beyond(self, head: int) -> int:
        """Return the block that control comes to at a mark that decides nothing."""
        seen = set()
        while head in self.passed and head not in seen:
            seen.add(head)
            head = self.passed[head]
        return head

    def _place(self, head: int) -> int:
        if head not in self.places:
            self.places[head] = len(self.nodes)
            self.nodes.append(self._node(head))
        return self.places[head]

    def _node(self, head: int) -> TaskNode:
        if head < 0:
            return TaskNode(NodeKind.DONE, "done") if head == _DONE else TaskNode(NodeKind.FAILED, "failed")
        label = str(self.code[head].operands[0])
        if self.code[head].opcode.name == "MARK":
            return TaskNode(NodeKind.DECISION, label)
        call = next((one for one in self.code[head + 1 :] if one.opcode.name in {"CALL", *LABELLED}), None)
        return TaskNode(NodeKind.TASK, label, str(call.operands[0]) if call and call.opcode.name == "CALL" else "")
