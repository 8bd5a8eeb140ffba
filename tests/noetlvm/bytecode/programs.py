"""Programs for tests: builders, a few samples by name, and `programs()`, which generates verified-looking ones.

Builders take rows as an assembler would: `expression(("NAME", "ctx"), ("ATTR", "page"), "RETURN")`. A target is written
as a label, any string that some `("LABEL", "here")` row places; an integer target is taken as it is.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from noetlvm.bytecode.isa import BACKOFFS, COMPARISONS, EXPRESSION, PIPELINE, Opcode, Operand
from noetlvm.bytecode.program import (
    ArcCode,
    DebugEntry,
    DebugMap,
    ExpressionCode,
    Instruction,
    KeychainEntry,
    LoopHeader,
    Mark,
    Pipeline,
    PlaybookCode,
    Program,
    Transition,
    Value,
    addresses,
)
from noetlvm.record import changed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Row = tuple[object, ...] | str
"""`("CONST", 1)`, or only the name where there are no operands."""

SERVER = ("workload", "ctx", "args", "event", "execution_id")
LOOP_IN = ("workload", "ctx", "args", "execution_id")
TASK = ("workload", "keychain", "ctx", "args", "execution_id", "_prev", "_task", "_attempt")


# -- builders ------------------------------------------------------------------------------------------------------


def instructions(table: dict[str, Opcode], rows: Sequence[Row]) -> tuple[Instruction, ...]:
    """Make code of rows, with labels resolved."""
    labels: dict[object, int] = {}
    plain: list[tuple[object, ...]] = []
    for row in rows:
        cells = (row,) if isinstance(row, str) else row
        if cells[0] == "LABEL":
            labels[cells[1]] = len(plain)
        else:
            plain.append(cells)
    return tuple(_instruction(table[str(name)], operands, labels) for name, *operands in plain)


def _instruction(opcode: Opcode, operands: list[object], labels: dict[object, int]) -> Instruction:
    resolved = (
        labels[value] if kind is Operand.TARGET and isinstance(value, str) else value
        for kind, value in zip(opcode.operands, operands, strict=True)
    )
    return Instruction(opcode, tuple(resolved))


def expression(*rows: Row, slots: int = 0) -> ExpressionCode:
    """Make an expression: `expression(("NAME", "ctx"), "RETURN")`."""
    return ExpressionCode(instructions(EXPRESSION, rows), slots)


def pipeline(*rows: Row, counters: int = 0) -> Pipeline:
    """Make a pipeline: `pipeline(("ENTER", "fetch"), ("CALL", "noop", EMPTY, EMPTY), …, "END")`."""
    return Pipeline(instructions(PIPELINE, rows), counters)


def retry(to: object, attempts: object, backoff: object = "none", delay: object = None) -> tuple[object, ...]:
    """Make the row of a RETRY: the only place that has the order of its operands."""
    return ("RETRY", attempts, backoff, delay, to)


def constant(value: Value) -> ExpressionCode:
    """Make the expression of a constant."""
    return expression(("CONST", value), "RETURN")


EMPTY = constant({})
TRUE = expression(("CONST", True), "TRUTH", "RETURN")


def guard(*rows: Row) -> ExpressionCode:
    """Make a guard: these rows, then its truth."""
    return expression(*rows, "TRUTH", "RETURN")


def arc(target: str, when: ExpressionCode | None = None, args: ExpressionCode | None = None) -> ArcCode:
    """Make an arc."""
    return ArcCode(target, when, args, handles_failure=reads_event(when))


def reads_event(when: ExpressionCode | None) -> bool:
    """Return whether a guard reads `event`, as an arc that handles a failure does."""
    return when is not None and any(row.opcode.name == "NAME" and row.operands == ("event",) for row in when.code)


def loop(collection: ExpressionCode, iterator: str = "item") -> LoopHeader:
    """Make a sequential loop."""
    return LoopHeader(collection, iterator, parallel=False, width=1, distributed=False, reducers=())


def step(
    name: str,
    *arcs: ArcCode,
    code: Pipeline | None = None,
    loops: tuple[LoopHeader, ...] = (),
    admit: ExpressionCode | None = None,
) -> Transition:
    """Make a step with the usual settings."""
    return Transition(
        name=name,
        admit=admit,
        drops_denied=False,
        loops=loops,
        best_effort=False,
        pipeline=code,
        inclusive=False,
        arcs=arcs,
        settings={},
    )


def playbook(*steps: Transition, name: str = "sample", path: str = "samples/sample") -> PlaybookCode:
    """Make a playbook that starts at its first step."""
    return PlaybookCode(
        name=name,
        path=path,
        metadata={},
        executor={},
        entry_step=steps[0].name,
        final_step=None,
        no_next_is_error=False,
        workload={},
        keychain=(),
        steps=steps,
    )


def program(*playbooks: PlaybookCode) -> Program:
    """Make a program without a debug map."""
    return Program(playbooks)


def with_debug(bare: Program, files: tuple[str, ...] = ("sample.yaml",)) -> Program:
    """Give a program a debug map that covers it: one line for each address, one column for each instruction."""
    entries = tuple(
        DebugEntry(
            address.name,
            construct=f"part {line % 3}",
            marks=tuple(Mark(line % len(files), line, 1 + 2 * column) for column in range(address.marks)),
        )
        for line, address in enumerate(addresses(bare), 1)
    )
    return changed(bare, debug=DebugMap(files, entries))


# -- samples -------------------------------------------------------------------------------------------------------


def minimal() -> Program:
    """One step that only exists."""
    return program(playbook(step("start")))


def two_steps() -> Program:
    """A small playbook with a bit of everything that a bundle holds: the base of the malformed set."""
    fetch = pipeline(
        ("ENTER", "fetch"),
        (
            "CALL",
            "http",
            expression(("NAME", "workload"), ("ATTR", "url"), ("RECORD", ["url"]), "RETURN"),
            EMPTY,
        ),
        ("UNLESS", guard(("NAME", "outcome"), ("ATTR", "status"), ("CONST", "error"), ("COMPARE", "==")), "ok"),
        retry(1, 3, "linear", constant(0.5)),
        "FAIL",
        ("LABEL", "ok"),
        ("PATCH", None, constant({"page": 1})),
        ("CONTINUE", "end"),
        ("LABEL", "end"),
        "END",
    )
    items = LoopHeader(
        collection=expression(("NAME", "workload"), ("ATTR", "items"), ("REQUIRE", "in"), "RETURN"),
        iterator="item",
        parallel=True,
        width=4,
        distributed=False,
        reducers=(("page", "max"), ("seen", "extend")),
    )
    has_error = guard(("NAME", "event"), ("ATTR", "error"))
    start = changed(
        step(
            "start",
            ArcCode("done", has_error, constant({"from": "start"}), True),
            arc("done"),
            code=fetch,
            loops=(items,),
        ),
        # The filter has two arguments: one by position, one by name.
        admit=guard(("BARE", "ready"), ("CONST", False), ("CONST", True), ("FILTER", "default", 1, ["boolean"], 0)),
        settings={"emit": ["step.done"]},
    )
    main = changed(
        playbook(start, step("done")),
        metadata={"labels": {"team": "data"}, "version": 2},
        executor={"profile": "local"},
        final_step="done",
        workload={"url": "https://example.org", "items": [1, 2.5, None, True, -7, 2**70]},
        keychain=(KeychainEntry("token", "secret", {"provider": "env"}),),
    )
    return program(main)


def every_expression_opcode() -> tuple[ExpressionCode, ...]:
    """Small valid expressions that together use each opcode of the expression machine."""
    return (
        expression(("CONST", 1), ("STORE", 0), ("LOCAL", 0), "RETURN", slots=1),
        expression(("NAME", "ctx"), ("BARE", "page"), "ITEM", "RETURN"),
        expression(("UNDEFINED", "x"), ("CONST", 1), ("CONST", None), ("CONST", None), "SLICE", "RETURN"),
        expression(("LIST", 0), ("CONST", 1), "APPEND", ("CONST", 2), "APPEND", "RETURN"),
        expression(("CONST", 1), ("CONST", 2), ("TUPLE", 2), "RETURN"),
        expression(("CONST", 2), ("RECORD", ["k"]), "RETURN"),
        expression(("CONST", "k"), ("CONST", 2), ("MAP", 1), ("CONST", ["k"]), ("METHOD", "get", 0, [], 1), "RETURN"),
        expression(("CONST", 3), ("CALL", "range", 1, [], 0), ("TEST", "defined", 0, [], 0), "NOT", "RETURN"),
        expression(("CONST", "a"), ("METHOD", "upper", 0, [], 0), ("FILTER", "length", 0, [], 0), "NEG", "RETURN"),
        expression(
            *(("CONST", number) for number in range(8)),
            "ADD",
            "SUB",
            "MUL",
            "DIV",
            "FLOORDIV",
            "MOD",
            "POW",
            "POS",
            "RETURN",
        ),
        expression(("CONST", "a"), ("CONST", 1.5), ("CONCAT", 2), ("REQUIRE", "url"), "RETURN"),
        # 1 < b < 3
        expression(
            ("CONST", 1),
            ("BARE", "b"),
            "DUP",
            "ROT3",
            ("COMPARE", "<"),
            ("JUMP_UNLESS", "no"),
            ("CONST", 3),
            ("COMPARE", "<"),
            ("JUMP", "end"),
            ("LABEL", "no"),
            "POP",
            ("CONST", False),
            ("LABEL", "end"),
            "TRUTH",
            "RETURN",
        ),
        expression(
            ("BARE", "a"),
            ("KEEP_IF", "end"),
            ("BARE", "b"),
            ("KEEP_UNLESS", "end"),
            ("CONST", 1),
            ("CONST", 2),
            "SWAP",
            ("TUPLE", 2),
            ("LABEL", "end"),
            "RETURN",
        ),
        # {% for k, v in pairs %}{{ loop.index }}: {{ v.x }}{% else %}none{% endfor %}
        expression(
            "TEXT_BEGIN",
            ("BARE", "pairs"),
            "ITER",
            ("LABEL", "next"),
            ("NEXT", "over"),
            ("UNPACK", 2),
            ("STORE", 0),
            ("STORE", 1),
            ("LOOP", 0),
            ("ATTR", "index"),
            "EMIT",
            ("EMIT_CONST", ": "),
            ("LOCAL", 1),
            ("ATTR", "x"),
            "EMIT",
            ("JUMP", "next"),
            ("LABEL", "over"),
            ("JUMP_IF", "end"),
            ("EMIT_CONST", "none"),
            ("LABEL", "end"),
            "TEXT_END",
            "RETURN",
            slots=2,
        ),
    )


def every_pipeline_opcode() -> Pipeline:
    """A valid pipeline that uses each opcode of the pipeline machine: a while block round a task with a policy."""
    kind = guard(("NAME", "outcome"), ("ATTR", "error"), ("ATTR", "kind"))
    return pipeline(
        ("MARK", "while_1"),
        ("RESET", 0),
        ("LABEL", "test"),
        ("MARK", "while_1.test"),
        ("UNLESS", guard(("NAME", "ctx"), ("ATTR", "more")), "end"),
        ("ROUND", 0, 1000),
        ("LABEL", "work"),
        ("ENTER", "work"),
        ("UNLESS", guard(("NAME", "ctx"), ("ATTR", "seen")), "call"),
        ("SKIP", "back"),
        ("LABEL", "call"),
        ("CALL", "python", constant({"code": "result = 1"}), constant({"timeout": 3})),
        ("ON_ERROR", "failed"),
        ("UNLESS", guard(("NAME", "outcome"), ("ATTR", "result"), ("ATTR", "again")), "stop"),
        ("JUMP_TO", "work"),
        ("LABEL", "stop"),
        ("UNLESS", guard(("NAME", "outcome"), ("ATTR", "result"), ("ATTR", "last")), "on"),
        ("PATCH", None, expression(("NAME", "_attempt"), ("RECORD", ["n"]), "RETURN")),
        "BREAK",
        ("LABEL", "on"),
        "BIND",
        ("CONTINUE", "back"),
        ("LABEL", "failed"),
        ("UNLESS", kind, "fail"),
        retry("call", 5, "exponential"),
        ("LABEL", "fail"),
        "FAIL",
        ("LABEL", "back"),
        ("MARK", "while_1.back"),
        ("GOTO", "test"),
        ("LABEL", "end"),
        ("MARK", "while_1.end"),
        "END",
        counters=1,
    )


def every_opcode() -> Program:
    """A program that uses every row of the instruction table."""
    steps = [step(f"loop_{number}", loops=(loop(code),)) for number, code in enumerate(every_expression_opcode())]
    return program(playbook(step("start", *(arc(each.name) for each in steps), code=every_pipeline_opcode()), *steps))


def two_playbooks() -> Program:
    """A main playbook and a child, with steps of the same name and equal code."""
    parent = playbook(step("start", arc("end", TRUE)), step("end"), name="parent", path="samples/parent")
    child = playbook(step("start", arc("end", TRUE)), step("end"), name="child", path="samples/child")
    return program(parent, child)


def odd_values() -> Program:
    """Constants that are easy to confuse or to lose: 1, 1.0 and true, signed zero, NaN, huge integers, odd text."""
    values: list[Value] = [
        0,
        False,
        0.0,
        -0.0,
        1,
        True,
        1.0,
        math.nan,
        math.inf,
        -math.inf,
        1e308,
        5e-324,
        None,
        "",
        [],
        {},
    ]
    values += [2**63 - 1, 2**63, 2**64 - 1, 2**64, -(2**63), -(2**63) - 1, 10**100, -1, -32, -33, 127, 128, 255, 256]
    values += ['"', "\n\t\0\x7f", "é", "😀", "\u2028", "\ufeff", "x" * 31, "x" * 32, "x" * 255, "x" * 256, "x" * 70_000]
    values += [{"a": 1, "b": 2}, {"b": 2, "a": 1}, [[]], [{}], [1] * 15, [1] * 16, {str(n): n for n in range(20)}]
    codes = [expression(("CONST", value), ("RECORD", ["value"]), "RETURN") for value in values]
    return program(playbook(step("start", *(arc("start", None, code) for code in codes))))


SAMPLES: dict[str, Callable[[], Program]] = {
    "minimal": minimal,
    "two steps": two_steps,
    "every opcode": every_opcode,
    "two playbooks": two_playbooks,
    "odd values": odd_values,
    "two steps, debug": lambda: with_debug(two_steps()),
    "every opcode, debug": lambda: with_debug(every_opcode()),
    "two playbooks, debug": lambda: with_debug(two_playbooks(), ("parent.yaml", "child.yaml")),
}
"""Programs by name, all of them valid."""


def chain(steps: int) -> Program:
    """A long playbook in the shape of real ones: each step calls a tool with a policy and goes on to the next."""
    return program(playbook(*(_chain_step(number, number + 1 < steps) for number in range(steps))))


def _chain_step(number: int, goes_on: bool) -> Transition:
    inputs = expression(
        ("CONST", "GET"),
        "TEXT_BEGIN",
        ("NAME", "workload"),
        ("ATTR", "base"),
        "EMIT",
        ("EMIT_CONST", f"/things/{number}?page="),
        ("NAME", "ctx"),
        ("ATTR", "page"),
        "EMIT",
        "TEXT_END",
        ("REQUIRE", "url"),
        ("NAME", "workload"),
        ("ATTR", "timeout"),
        ("CONST", 30),
        ("FILTER", "default", 1, [], 0),
        ("REQUIRE", "timeout"),
        ("RECORD", ["method", "url", "timeout"]),
        "RETURN",
    )
    retryable = guard(
        ("NAME", "outcome"),
        ("ATTR", "status"),
        ("CONST", "error"),
        ("COMPARE", "=="),
        ("KEEP_UNLESS", "end"),
        ("NAME", "outcome"),
        ("ATTR", "http"),
        ("ATTR", "status"),
        ("CONST", [429, 500 + number % 7]),
        ("COMPARE", "in"),
        ("LABEL", "end"),
    )
    result = ("NAME", "outcome"), ("ATTR", "result"), ("REQUIRE", f"rows_{number}")
    code = pipeline(
        ("ENTER", f"fetch_{number}"),
        ("LABEL", "call"),
        ("CALL", "http", inputs, constant({"timeout": 30})),
        ("UNLESS", retryable, "ok"),
        retry("call", 3, "exponential"),
        "FAIL",
        ("LABEL", "ok"),
        ("ON_ERROR", "failed"),
        ("PATCH", None, expression(*result, ("RECORD", [f"rows_{number}"]), "RETURN")),
        ("CONTINUE", "save"),
        ("LABEL", "failed"),
        "FAIL",
        ("LABEL", "save"),
        ("ENTER", f"save_{number}"),
        (
            "CALL",
            "python",
            expression(("NAME", "_prev"), ("REQUIRE", "rows"), ("RECORD", ["rows"]), "RETURN"),
            EMPTY,
        ),
        ("ON_ERROR", "broken"),
        ("CONTINUE", "end"),
        ("LABEL", "broken"),
        "FAIL",
        ("LABEL", "end"),
        "END",
    )
    name = f"step_{number}"
    if not goes_on:
        return step(name, code=code)
    more = guard(
        ("NAME", "ctx"), ("ATTR", f"rows_{number}"), ("FILTER", "length", 0, [], 0), ("CONST", number), ("COMPARE", ">")
    )
    args = expression(("NAME", "ctx"), ("ATTR", "page"), ("REQUIRE", "page"), ("RECORD", ["page"]), "RETURN")
    return step(name, arc(f"step_{number + 1}", more, args), code=code)


# -- generated programs --------------------------------------------------------------------------------------------

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
WORDS = st.sampled_from(["a", "page", "items", "total", "url", "next_page", "größe"])
_NUMBERS = st.one_of(
    st.integers(-300, 300),
    st.integers(-(2**80), 2**80),
    st.floats(allow_nan=False),
    # One NaN object, so that values that hold it are equal.
    st.just(math.nan),
)
_SCALARS = st.one_of(st.none(), st.booleans(), _NUMBERS, TEXTS, WORDS)


_FLAT: st.SearchStrategy[Value] = st.one_of(
    st.lists(_SCALARS, max_size=3), st.dictionaries(TEXTS, _SCALARS, max_size=3)
)
_NESTED: st.SearchStrategy[Value] = st.one_of(st.lists(_FLAT, max_size=2), st.dictionaries(WORDS, _FLAT, max_size=2))
# Scalars twice: they are what most constants are.
_VALUES: st.SearchStrategy[Value] = st.one_of(_SCALARS, _SCALARS, _FLAT, _NESTED)


_SETTINGS: st.SearchStrategy[dict[str, Value]] = st.dictionaries(WORDS, _VALUES, max_size=2)


def values() -> st.SearchStrategy[Value]:
    """Generate constants of every kind."""
    return _VALUES


class _Writer:
    """Writes the rows of one generated expression; each method leaves exactly one value on the stack."""

    def __init__(self, draw: st.DrawFn, names: Sequence[str]) -> None:
        self.draw = draw
        self.names = names
        self.rows: list[Row] = []
        self.slots = 0
        self.labels = 0
        self.iterators = 0

    def label(self) -> str:
        self.labels += 1
        return f"L{self.labels}"

    def slot(self) -> int:
        self.slots += 1
        return self.slots - 1

    def value(self, depth: int) -> None:
        shapes = self._LEAVES if depth == 0 else self._LEAVES + self._TREES
        self.draw(st.sampled_from(shapes))(self, depth - 1)

    def constant(self, _depth: int) -> None:
        self.rows.append(("CONST", self.draw(values())))

    def name(self, _depth: int) -> None:
        self.rows.append(("NAME", self.draw(st.sampled_from(list(self.names)))))

    def bare(self, _depth: int) -> None:
        self.rows.append(("BARE", self.draw(WORDS)))

    def undefined(self, _depth: int) -> None:
        self.rows.append(("UNDEFINED", self.draw(WORDS)))

    def local(self, depth: int) -> None:
        if self.slots == 0:
            return self.bare(depth)
        return self.rows.append(("LOCAL", self.draw(st.integers(0, self.slots - 1))))

    def loop(self, depth: int) -> None:
        if self.iterators == 0:
            return self.bare(depth)
        return self.rows.append(("LOOP", self.draw(st.integers(0, self.iterators - 1))))

    def unary(self, depth: int) -> None:
        self.value(depth)
        rows: list[Row] = ["NOT", "NEG", "POS", "TRUTH", ("ATTR", "page"), ("REQUIRE", "url"), ("UNPACK", 1)]
        self.rows.append(self.draw(st.sampled_from(rows)))

    def binary(self, depth: int) -> None:
        self.value(depth)
        self.value(depth)
        rows: list[Row] = ["ADD", "SUB", "MUL", "DIV", "FLOORDIV", "MOD", "POW", "ITEM"]
        rows += [("COMPARE", word) for word in COMPARISONS]
        self.rows.append(self.draw(st.sampled_from(rows)))

    def shuffled(self, depth: int) -> None:
        self.value(depth)
        self.value(depth)
        self.rows += self.draw(st.sampled_from([["SWAP", "POP"], ["DUP", "ROT3", ("LIST", 3)], [("TUPLE", 2)]]))

    def part(self, depth: int) -> None:
        for _ in range(4):
            self.value(min(depth, 0))
        self.rows.append("SLICE")

    def collection(self, depth: int) -> None:
        count = self.draw(st.integers(0, 3))
        for _ in range(count):
            self.value(depth)
        self.rows.append((self.draw(st.sampled_from(["LIST", "TUPLE", "CONCAT"])), count))

    def mapping(self, depth: int) -> None:
        count = self.draw(st.integers(0, 2))
        for _ in range(count):
            self.rows.append(("CONST", self.draw(WORDS)))
            self.value(depth)
        self.rows.append(("MAP", count))

    def record(self, depth: int) -> None:
        keys = self.draw(st.lists(WORDS, min_size=1, max_size=2, unique=True))
        for _ in keys:
            self.value(depth)
        self.rows.append(("RECORD", keys))

    def appended(self, depth: int) -> None:
        self.rows.append(("LIST", 0))
        self.value(depth)
        self.rows.append("APPEND")

    def called(self, depth: int) -> None:
        """Call something; arguments by position, by name, or spread."""
        opcode, callee, counts, words, has_receiver = self.draw(st.sampled_from(_CALLS))
        if has_receiver:
            self.value(depth)
        for _ in range(counts + len(words)):
            self.value(0)
        self.rows.append((opcode, callee, counts, list(words), 0))

    def spread(self, _depth: int) -> None:
        self.value(0)
        bits = self.draw(st.integers(1, 3))
        for _ in range(bits.bit_count()):
            self.value(0)
        self.rows.append(("FILTER", "format", 0, [], bits))

    def either(self, depth: int) -> None:
        end = self.label()
        self.value(depth)
        self.rows.append((self.draw(st.sampled_from(["KEEP_IF", "KEEP_UNLESS"])), end))
        self.value(depth)
        self.rows.append(("LABEL", end))

    def choice(self, depth: int) -> None:
        otherwise, end = self.label(), self.label()
        self.value(depth)
        self.rows.append((self.draw(st.sampled_from(["JUMP_IF", "JUMP_UNLESS"])), otherwise))
        self.value(depth)
        self.rows += [("JUMP", end), ("LABEL", otherwise)]
        self.value(depth)
        self.rows.append(("LABEL", end))

    def text(self, depth: int) -> None:
        self.rows.append("TEXT_BEGIN")
        for _ in range(self.draw(st.integers(0, 2))):
            self.value(depth)
            self.rows += ["EMIT", ("EMIT_CONST", self.draw(TEXTS))]
        if self.draw(st.booleans()):
            self.repeated(depth)
        self.rows.append("TEXT_END")

    def repeated(self, depth: int) -> None:
        """Write a for block; it adds to the text and leaves nothing."""
        again, over, end = self.label(), self.label(), self.label()
        self.value(depth)
        self.rows += ["ITER", ("LABEL", again), ("NEXT", over)]
        if self.draw(st.booleans()):
            self.rows += [("UNPACK", 2), ("STORE", self.slot())]
        self.rows.append(("STORE", self.slot()))
        self.iterators += 1
        self.value(depth)
        self.iterators -= 1
        self.rows += [
            "EMIT",
            ("JUMP", again),
            ("LABEL", over),
            ("JUMP_IF", end),
            ("EMIT_CONST", "none"),
            ("LABEL", end),
        ]

    _LEAVES = [constant, name, bare, undefined, local, loop]
    _TREES = [unary, binary, shuffled, part, collection, mapping, appended, called, spread, either, choice, text]


_CALLS = [
    ("FILTER", "default", 1, (), True),
    ("FILTER", "default", 1, ("boolean",), True),
    ("FILTER", "join", 0, ("d", "attribute"), True),
    ("FILTER", "length", 0, (), True),
    ("TEST", "defined", 0, (), True),
    ("TEST", "divisibleby", 1, (), True),
    ("METHOD", "get", 2, (), True),
    ("METHOD", "split", 0, ("sep",), True),
    ("CALL", "range", 2, (), False),
    ("CALL", "dict", 0, ("a", "b"), False),
]


@st.composite
def expressions(draw: st.DrawFn, names: Sequence[str] = SERVER) -> ExpressionCode:
    """Generate an expression that reads only these namespaces."""
    writer = _Writer(draw, names)
    writer.value(draw(st.integers(0, 2)))
    return expression(*writer.rows, "RETURN", slots=writer.slots)


@st.composite
def guards(draw: st.DrawFn, names: Sequence[str] = SERVER) -> ExpressionCode:
    """Generate an expression that is a guard."""
    writer = _Writer(draw, names)
    writer.value(draw(st.integers(0, 2)))
    return expression(*writer.rows, "TRUTH", "RETURN", slots=writer.slots)


@st.composite
def mappings(draw: st.DrawFn, names: Sequence[str] = SERVER) -> ExpressionCode:
    """Generate an expression that makes a mapping, as inputs, arguments and patches do."""
    if draw(st.booleans()):
        return constant(dict(draw(_SETTINGS)))
    writer = _Writer(draw, names)
    writer.record(draw(st.integers(0, 1)))
    return expression(*writer.rows, "RETURN", slots=writer.slots)


class _Tasks:
    """Writes the rows of one generated pipeline: tasks and sugar blocks in a row."""

    def __init__(self, draw: st.DrawFn, in_loop: bool) -> None:
        self.draw = draw
        self.names = (*TASK, "iter") if in_loop else TASK
        self.in_loop = in_loop
        self.rows: list[Row] = []
        self.labels = 0
        self.counters = 0

    def label(self, word: str) -> str:
        self.labels += 1
        return f"{word}_{self.labels}"

    def guard(self, *more: str) -> ExpressionCode:
        return self.draw(guards((*self.names, *more)))

    def mapping(self, *more: str) -> ExpressionCode:
        return self.draw(mappings((*self.names, *more)))

    def block(self, depth: int) -> None:
        """Write some tasks, each of which goes on to the next."""
        for _ in range(self.draw(st.integers(0, 2))):
            self.draw(st.sampled_from([self.task] if depth == 0 else [self.task, self.repeated, self.choice]))(
                depth - 1
            )

    def repeated(self, depth: int) -> None:
        """Write a while block."""
        label, slot = self.label("while"), self.counters
        self.counters += 1
        self.rows += [("MARK", label), ("RESET", slot), ("LABEL", f"{label}.test"), ("MARK", f"{label}.test")]
        self.rows += [("UNLESS", self.guard(), f"{label}.end"), ("ROUND", slot, self.draw(limits(self.names)))]
        self.block(depth)
        self.rows += [("GOTO", f"{label}.test"), ("LABEL", f"{label}.end"), ("MARK", f"{label}.end")]

    def choice(self, depth: int) -> None:
        """Write a choose block of one branch and an else."""
        label = self.label("choose")
        self.rows += [("MARK", f"{label}.when_1"), ("UNLESS", self.guard(), f"{label}.else")]
        self.block(depth)
        self.rows += [("GOTO", f"{label}.end"), ("LABEL", f"{label}.else"), ("MARK", f"{label}.else")]
        self.block(depth)
        self.rows += [("LABEL", f"{label}.end"), ("MARK", f"{label}.end")]

    def task(self, _depth: int) -> None:
        label = self.label("task")
        self.rows += [("LABEL", label), ("ENTER", label)]
        if self.draw(st.booleans()):
            self.rows += [("UNLESS", self.guard(), f"{label}.call"), ("SKIP", f"{label}.after")]
        kind = self.draw(st.sampled_from(["http", "python", "postgres", "noop"]))
        self.rows += [("LABEL", f"{label}.call"), ("CALL", kind, self.mapping(), constant(dict(self.draw(_SETTINGS))))]
        if self.draw(st.booleans()):
            self.policy(label)
        self.rows += [("ON_ERROR", f"{label}.fail"), ("CONTINUE", f"{label}.after")]
        self.rows += [("LABEL", f"{label}.fail"), "FAIL", ("LABEL", f"{label}.after")]

    def policy(self, label: str) -> None:
        """Write rules before the task's usual end."""
        for number in range(self.draw(st.integers(1, 2))):
            otherwise = f"{label}.rule_{number}"
            self.rows.append(("UNLESS", self.guard("outcome"), otherwise))
            if self.draw(st.booleans()):
                self.rows.append(self.patch())
            self.rows += self.draw(st.sampled_from(self.directives(label)))
            self.rows.append(("LABEL", otherwise))

    def patch(self) -> Row:
        """Write to `ctx`, in a loop to `iter`, or to both."""
        iter_patch = self.mapping("outcome") if self.in_loop and self.draw(st.booleans()) else None
        ctx_patch = self.mapping("outcome") if iter_patch is None or self.draw(st.booleans()) else None
        return ("PATCH", iter_patch, ctx_patch)

    def directives(self, label: str) -> list[list[Row]]:
        backoff = self.draw(st.sampled_from(BACKOFFS))
        delay = self.draw(expressions((*self.names, "outcome"))) if self.draw(st.booleans()) else None
        return [
            [retry(f"{label}.call", self.draw(limits((*self.names, "outcome"))), backoff, delay), "FAIL"],
            [("CONTINUE", f"{label}.after")],
            [("JUMP_TO", label)],
            [("SKIP", f"{label}.after")],
            ["BREAK"],
            ["FAIL"],
        ]


def limits(names: Sequence[str]) -> st.SearchStrategy[int | ExpressionCode]:
    """Generate a number, or an expression that gives one."""
    return st.integers(1, 500) | expressions(names)


@st.composite
def pipelines(draw: st.DrawFn, in_loop: bool = False) -> Pipeline:
    """Generate a pipeline of at least one task."""
    tasks = _Tasks(draw, in_loop)
    tasks.task(0)
    tasks.block(draw(st.integers(0, 1)))
    return pipeline(*tasks.rows, "END", counters=tasks.counters)


@st.composite
def loop_headers(draw: st.DrawFn, names: Sequence[str], iterator: str) -> LoopHeader:
    """Generate one level of a loop."""
    parallel = draw(st.booleans())
    keys = sorted(draw(st.sets(WORDS, max_size=2)))
    return LoopHeader(
        collection=draw(expressions(names)),
        iterator=iterator,
        parallel=parallel,
        width=draw(limits(names)) if parallel else 1,
        rate=draw(st.none() | mappings(names)),
        distributed=draw(st.booleans()),
        reducers=tuple((key, draw(st.sampled_from(["sum", "max", "append"]))) for key in keys),
    )


@st.composite
def steps(draw: st.DrawFn, name: str, targets: Sequence[str]) -> Transition:
    """Generate a step with arcs to some of these."""
    levels = [(LOOP_IN, "item"), ((*LOOP_IN, "iter"), "row")][: draw(st.integers(0, 2))]
    loops = tuple(draw(loop_headers(visible, iterator)) for visible, iterator in levels)
    some_guard, some_args = st.one_of(st.none(), guards()), st.one_of(st.none(), mappings())
    arcs = draw(st.lists(st.builds(arc, st.sampled_from(list(targets)), some_guard, some_args), max_size=2))
    return Transition(
        name=name,
        admit=draw(some_guard),
        drops_denied=draw(st.booleans()),
        loops=loops,
        best_effort=draw(st.booleans()),
        pipeline=draw(pipelines(bool(loops))) if draw(st.booleans()) else None,
        inclusive=draw(st.booleans()),
        arcs=tuple(arcs),
        settings=draw(_SETTINGS),
    )


@st.composite
def playbooks(draw: st.DrawFn, path: str) -> PlaybookCode:
    """Generate a playbook with this path."""
    names = ["start", "fetch", "end"][: draw(st.integers(1, 3))]
    keychain = draw(st.lists(st.sampled_from(["token", "db"]), max_size=2, unique=True))
    return PlaybookCode(
        name=draw(WORDS),
        path=path,
        metadata=draw(_SETTINGS),
        executor=draw(_SETTINGS),
        entry_step="start",
        final_step=draw(st.sampled_from([None, *names])),
        no_next_is_error=draw(st.booleans()),
        workload=draw(_SETTINGS),
        keychain=tuple(KeychainEntry(name, "secret", draw(_SETTINGS)) for name in keychain),
        steps=tuple(draw(steps(name, names)) for name in names),
    )


@st.composite
def debug_maps(draw: st.DrawFn, bare: Program) -> DebugMap:
    """Generate a debug map that covers a program."""
    files = draw(st.lists(st.sampled_from(["a.yaml", "b.yaml", "c.yaml"]), min_size=1, max_size=3, unique=True))
    places = draw(
        st.lists(
            st.builds(Mark, st.integers(0, len(files) - 1), st.integers(1, 100_000), st.integers(1, 300)),
            min_size=1,
            max_size=6,
        )
    )
    constructs = draw(st.lists(st.sampled_from(["arc", "task a", "choose", "while"]), min_size=1, max_size=3))
    entries = []
    at = 0
    for number, address in enumerate(addresses(bare)):
        marks = tuple(places[(at + offset) % len(places)] for offset in range(address.marks))
        at += 1 + number % 3
        entries.append(DebugEntry(address.name, constructs[number % len(constructs)], marks))
    return DebugMap(tuple(files), tuple(entries))


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Generate whole programs: one or two playbooks, with or without a debug map."""
    children = [draw(playbooks("children/child"))] if draw(st.booleans()) else []
    bare = Program((draw(playbooks("main")), *children))
    return changed(bare, debug=draw(debug_maps(bare))) if draw(st.booleans()) else bare
