"""The instruction set, in one table. Encoder, decoder, verifier, assembler, disassembler and the reference page read it.

Two machines share it. An **expression** is stack code that ends in `RETURN`; it reads names and makes a value. A
**pipeline** is the code of one step's tasks: it calls tools, tests rules, writes state and decides where to continue. Its
operands are expressions. Targets are instruction indices of the same code, so a jump can only land on an instruction.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal, TypeAlias

from noetlvm.record import Record

ISA_VERSION = 3


class Area(StrEnum):
    """Which of the two machines runs an instruction."""

    EXPRESSION = "expression"
    PIPELINE = "pipeline"


class Operand(StrEnum):
    """What an operand is. In a bundle each is one unsigned integer."""

    CONST = "const"
    """Any constant, by its place in the pool."""
    TEXT = "text"
    """A constant that is a string."""
    WORDS = "words"
    """A constant that is a list of strings: names of keyword arguments, or keys."""
    EXPR = "expr"
    """An expression, by its place in the pool."""
    OPTIONAL_EXPR = "expr?"
    """An expression or none: 0 is none, n is the expression n - 1."""
    TARGET = "target"
    """An instruction of the same code."""
    COUNT = "count"
    """A number."""
    LIMIT = "limit"
    """A number, or an expression that gives one: 2n is the number n, 2n + 1 is the expression n."""
    SLOT = "slot"
    """A local variable of the expression, or a round counter of the pipeline."""
    NAME = "name"
    """A namespace: its place in `NAMES`."""
    COMPARISON = "comparison"
    """A comparison operator: its place in `COMPARISONS`."""
    BACKOFF = "backoff"
    """A backoff: its place in `BACKOFFS`."""
    SPREAD = "spread"
    """Whether a list (1), a mapping (2) or both (3) of further arguments lie on top of the stack."""
    FILTER = "filter"
    """A string constant that names an allowed filter."""
    TEST = "test"
    """A string constant that names an allowed test."""
    FUNCTION = "function"
    """A string constant that names an allowed function."""
    METHOD = "method"
    """A string constant that names an allowed method."""


EXPRESSIONS = frozenset({Operand.EXPR, Operand.OPTIONAL_EXPR, Operand.LIMIT})
"""Operands that are expressions, or may be."""
NAMES = (
    "workload",
    "keychain",
    "ctx",
    "iter",
    "args",
    "execution_id",
    "_prev",
    "_task",
    "_attempt",
    "outcome",
    "event",
)
COMPARISONS = ("==", "!=", "<", "<=", ">", ">=", "in", "not in")
BACKOFFS = ("none", "linear", "exponential")
REDUCERS = ("sum", "min", "max", "count", "any", "all", "first", "last", "append", "extend", "merge")


class ControlFlow(StrEnum):
    """Where control goes after an instruction."""

    NEXT = "next"
    """To the instruction that follows."""
    JUMP = "jump"
    """To the target, always."""
    BRANCH = "branch"
    """To the target or to the instruction that follows."""
    END = "end"
    """Nowhere: the code is done."""


# fmt: off
OpcodeName: TypeAlias = Literal[
    "CONST", "NAME", "BARE", "LOCAL", "STORE", "LOOP", "UNDEFINED", "ATTR", "ITEM", "SLICE", "LIST", "TUPLE",
    "MAP", "RECORD", "APPEND", "FILTER", "TEST", "CALL", "METHOD", "NOT", "NEG", "POS", "ADD", "SUB", "MUL",
    "DIV", "FLOORDIV", "MOD", "POW", "CONCAT", "COMPARE", "TRUTH", "REQUIRE", "DUP", "ROT3", "SWAP", "POP",
    "JUMP", "JUMP_IF", "JUMP_UNLESS", "KEEP_IF", "KEEP_UNLESS", "RETURN", "TEXT_BEGIN", "EMIT", "EMIT_CONST",
    "TEXT_END", "ITER", "NEXT", "UNPACK", "ENTER", "MARK", "UNLESS", "ON_ERROR", "PATCH", "RETRY", "GOTO",
    "CONTINUE", "JUMP_TO", "SKIP", "BREAK", "FAIL", "END", "RESET", "ROUND", "BIND",
]
# fmt: on
"""The name of an opcode. A literal type: the type checker refuses a comparison with a name that does not exist."""


class Opcode(Record):
    """One row of the table."""

    number: int
    name: OpcodeName
    area: Area
    operands: tuple[Operand, ...]
    pops: int
    """Values taken off the stack; operands that count values add to it (see `counts`)."""
    pushes: int
    flow: ControlFlow
    doc: str
    formula: str
    """What it does, in one line: stack before → stack after, or the effect."""
    counts: tuple[tuple[int, int], ...] = ()
    """(operand index, factor): this many more values are popped for each unit of that operand. For a WORDS operand the
    unit is one word, for a SPREAD operand one bit."""
    target_pushes: int | None = None
    """Stack change at the target where it differs from the one of falling through (pops are the same)."""


def _table() -> tuple[Opcode, ...]:
    e, p = Area.EXPRESSION, Area.PIPELINE
    o = Operand
    n, j, b, end = ControlFlow.NEXT, ControlFlow.JUMP, ControlFlow.BRANCH, ControlFlow.END
    call = (o.COUNT, o.WORDS, o.SPREAD)
    call_counts = ((1, 1), (2, 1), (3, 1))
    # fmt: off
    rows: tuple[Opcode, ...] = (
        # -- expressions: values
        Opcode(1, "CONST", e, (o.CONST,), 0, 1, n, "Push a constant.", "→ k"),
        Opcode(2, "NAME", e, (o.NAME,), 0, 1, n, "Push a namespace.", "→ namespace"),
        Opcode(3, "BARE", e, (o.TEXT,), 0, 1, n, "Push what a bare name stands for (S11).", "→ k"),
        Opcode(4, "LOCAL", e, (o.SLOT,), 0, 1, n, "Push a local variable; undefined before it is stored.", "→ slot"),
        Opcode(5, "STORE", e, (o.SLOT,), 1, 0, n, "Pop into a local variable.", "v →"),
        Opcode(6, "LOOP", e, (o.COUNT,), 0, 1, n, "Push the `loop` of the n-th enclosing for block, 0 being the nearest.", "→ loop"),
        Opcode(7, "UNDEFINED", e, (o.TEXT,), 0, 1, n, "Push an undefined value with its description.", "→ undefined"),
        Opcode(8, "ATTR", e, (o.TEXT,), 1, 1, n, "Read a field of data; undefined where there is none.", "v → v.k"),
        Opcode(9, "ITEM", e, (), 2, 1, n, "Read an element of data by key or index.", "v i → v[i]"),
        Opcode(10, "SLICE", e, (), 4, 1, n, "Cut a list or text; an absent bound is null.", "v a b c → v[a:b:c]"),
        Opcode(11, "LIST", e, (o.COUNT,), 0, 1, n, "Make a list.", "v… → [v…]", ((0, 1),)),
        Opcode(12, "TUPLE", e, (o.COUNT,), 0, 1, n, "Make a tuple.", "v… → (v…)", ((0, 1),)),
        Opcode(13, "MAP", e, (o.COUNT,), 0, 1, n, "Make a mapping of n pairs.", "k v … → {k: v, …}", ((0, 2),)),
        Opcode(15, "RECORD", e, (o.WORDS,), 0, 1, n, "Make a mapping with these keys, which are texts.", "v… → {v…}", ((0, 1),)),
        Opcode(14, "APPEND", e, (), 2, 1, n, "Add a value to a list that this code made.", "list v → list"),
        # -- expressions: calls
        Opcode(20, "FILTER", e, (o.FILTER, *call), 1, 1, n, "Call a filter with positional and named arguments.", "v a… → filter(v, a…)", call_counts),
        Opcode(21, "TEST", e, (o.TEST, *call), 1, 1, n, "Call a test.", "v a… → v is test(a…)", call_counts),
        Opcode(22, "CALL", e, (o.FUNCTION, *call), 0, 1, n, "Call a function.", "a… → f(a…)", call_counts),
        Opcode(23, "METHOD", e, (o.METHOD, *call), 1, 1, n, "Call a pure method of text, lists or mappings.", "v a… → v.m(a…)", call_counts),
        # -- expressions: operators
        Opcode(30, "NOT", e, (), 1, 1, n, "Negate the truth.", "v → not v"),
        Opcode(31, "NEG", e, (), 1, 1, n, "Negate a number.", "v → -v"),
        Opcode(32, "POS", e, (), 1, 1, n, "Leave a number as it is.", "v → +v"),
        Opcode(33, "ADD", e, (), 2, 1, n, "Add numbers; join texts or lists.", "a b → a + b"),
        Opcode(34, "SUB", e, (), 2, 1, n, "Subtract.", "a b → a - b"),
        Opcode(35, "MUL", e, (), 2, 1, n, "Multiply; repeat a text or list.", "a b → a * b"),
        Opcode(36, "DIV", e, (), 2, 1, n, "Divide.", "a b → a / b"),
        Opcode(37, "FLOORDIV", e, (), 2, 1, n, "Divide and round down.", "a b → a // b"),
        Opcode(38, "MOD", e, (), 2, 1, n, "Remainder; or fill a `%` text.", "a b → a % b"),
        Opcode(39, "POW", e, (), 2, 1, n, "Power.", "a b → a ** b"),
        Opcode(40, "CONCAT", e, (o.COUNT,), 0, 1, n, "Join values as text.", "v… → text", ((0, 1),)),
        Opcode(41, "COMPARE", e, (o.COMPARISON,), 2, 1, n, "Compare.", "a b → a comparison b"),
        Opcode(42, "TRUTH", e, (), 1, 1, n, "Make the truth of a guard (S9).", "v → truth(v)"),
        Opcode(43, "REQUIRE", e, (o.TEXT,), 1, 1, n, "Fail with a template error where the value is undefined (S10).", "v → v"),
        # -- expressions: stack and flow
        Opcode(50, "DUP", e, (), 1, 2, n, "Push the top again.", "a → a a"),
        Opcode(51, "ROT3", e, (), 3, 3, n, "Move the top below the two under it.", "a b c → c a b"),
        Opcode(52, "SWAP", e, (), 2, 2, n, "Exchange the two at the top.", "a b → b a"),
        Opcode(53, "POP", e, (), 1, 0, n, "Drop the top.", "a →"),
        Opcode(54, "JUMP", e, (o.TARGET,), 0, 0, j, "Continue at the target.", "→"),
        Opcode(55, "JUMP_IF", e, (o.TARGET,), 1, 0, b, "Pop; go to the target if true.", "v →"),
        Opcode(56, "JUMP_UNLESS", e, (o.TARGET,), 1, 0, b, "Pop; go to the target if false.", "v →"),
        Opcode(57, "KEEP_IF", e, (o.TARGET,), 1, 0, b, "If true go to the target and keep the value, else pop it.", "v → | v", (), 1),
        Opcode(58, "KEEP_UNLESS", e, (o.TARGET,), 1, 0, b, "If false go to the target and keep the value, else pop it.", "v → | v", (), 1),
        Opcode(59, "RETURN", e, (), 1, 0, end, "The top is the expression's value.", "v ∎"),
        # -- expressions: text and for blocks
        Opcode(60, "TEXT_BEGIN", e, (), 0, 0, n, "Begin to collect text.", "→"),
        Opcode(61, "EMIT", e, (), 1, 0, n, "Pop and add it to the text.", "v →"),
        Opcode(62, "EMIT_CONST", e, (o.TEXT,), 0, 0, n, "Add a constant to the text.", "→"),
        Opcode(63, "TEXT_END", e, (), 0, 1, n, "Push the text collected since the matching begin.", "→ text"),
        Opcode(64, "ITER", e, (), 1, 1, n, "Begin a for block over a value.", "v → iterator"),
        Opcode(65, "NEXT", e, (o.TARGET,), 1, 2, b, "Push the next element; at the end drop the iterator, push whether there was any, and go to the target.", "iterator → iterator item | ran", (), 1),
        Opcode(66, "UNPACK", e, (o.COUNT,), 1, 0, n, "Take a sequence of exactly n apart; its first element ends on top.", "v → vₙ … v₁"),
        # -- pipelines
        Opcode(100, "ENTER", p, (o.TEXT,), 0, 0, n, "Begin a task run under its label: a new run id, attempt 1.", "task := k, attempt := 1"),
        Opcode(101, "MARK", p, (o.TEXT,), 0, 0, n, "A place with a generated label; does nothing.", ""),
        Opcode(102, "CALL", p, (o.TEXT, o.EXPR, o.EXPR), 0, 0, n, "Run a tool of this kind with these inputs and this spec.", "outcome := kind(inputs, spec)"),
        Opcode(103, "UNLESS", p, (o.EXPR, o.TARGET), 0, 0, b, "Test a rule's guard; go to the target if it does not hold.", "guard ? next : target"),
        Opcode(104, "ON_ERROR", p, (o.TARGET,), 0, 0, b, "Go to the target if the outcome is an error.", "error ? target : next"),
        Opcode(105, "PATCH", p, (o.OPTIONAL_EXPR, o.OPTIONAL_EXPR), 0, 0, n, "Write to iter and to ctx; both, and what a RETRY that follows needs, are computed before either is written (S18).", "iter ∪= i, ctx ∪= c"),
        Opcode(106, "RETRY", p, (o.LIMIT, o.BACKOFF, o.OPTIONAL_EXPR, o.TARGET), 0, 0, b, "If attempts are left, wait and go to the task's CALL, or to the rules before it; else to the instruction that follows.", "attempt < n ? wait, target : next"),
        Opcode(107, "GOTO", p, (o.TARGET,), 0, 0, j, "Continue at the target; nothing else changes.", "→ target"),
        Opcode(108, "CONTINUE", p, (o.TARGET,), 0, 0, j, "Hand the result on and go to the next task.", "_prev := outcome.result, → target"),
        Opcode(109, "JUMP_TO", p, (o.TARGET,), 0, 0, j, "Hand the result on and go to a task by its label.", "_prev := outcome.result, → target"),
        Opcode(110, "SKIP", p, (o.TARGET,), 0, 0, j, "Forget the outcome and go to the next task; `_prev` stays.", "→ target"),
        Opcode(111, "BREAK", p, (), 0, 0, end, "End the pipeline as done; the result is handed on.", "_prev := outcome.result ∎"),
        Opcode(112, "FAIL", p, (), 0, 0, end, "End the pipeline as failed.", "∎ failed"),
        Opcode(113, "END", p, (), 0, 0, end, "The end of the list: the pipeline is done.", "∎ done"),
        Opcode(114, "RESET", p, (o.SLOT,), 0, 0, n, "Set a round counter to zero.", "slot := 0"),
        Opcode(115, "ROUND", p, (o.SLOT, o.LIMIT), 0, 0, n, "Count a round; past the limit fail with `fuel` (S39).", "slot += 1, slot > n ? failed"),
        Opcode(116, "BIND", p, (), 0, 0, n, "Make the task's result readable under its label in later tasks, once a directive hands it on (S48).", "labels[task] := outcome.result"),
    )
    # fmt: on
    return rows


OPCODES: tuple[Opcode, ...] = _table()
BY_NUMBER: dict[int, Opcode] = {opcode.number: opcode for opcode in OPCODES}
EXPRESSION: dict[OpcodeName, Opcode] = {opcode.name: opcode for opcode in OPCODES if opcode.area is Area.EXPRESSION}
PIPELINE: dict[OpcodeName, Opcode] = {opcode.name: opcode for opcode in OPCODES if opcode.area is Area.PIPELINE}
LABELLED: frozenset[OpcodeName] = frozenset({"ENTER", "MARK"})
"""What begins a task or a round of sugar, and has its label as first operand."""
