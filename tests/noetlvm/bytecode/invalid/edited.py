"""Invalid programs that no assembly can say: wrong operands, limits, and debug maps that belong to something else."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from noetlvm.bytecode.isa import EXPRESSION, PIPELINE
from noetlvm.bytecode.limits import CODE_MAX, FOR_DEPTH_MAX, STACK_MAX, TEXT_DEPTH_MAX
from noetlvm.bytecode.program import (
    DebugEntry,
    DebugMap,
    ExpressionCode,
    Instruction,
    LoopHeader,
    Mark,
    Pipeline,
    Program,
)
from noetlvm.record import changed
from tests.noetlvm.bytecode.invalid.case import Case, in_place, with_pipeline
from tests.noetlvm.bytecode.programs import (
    EMPTY,
    TRUE,
    playbook,
    program,
    retry,
    step,
    two_playbooks,
    two_steps,
    with_debug,
)

_RETURN = Instruction(EXPRESSION["RETURN"])
_END = Instruction(PIPELINE["END"])


def _expression(*code: Instruction, slots: int = 0) -> Program:
    loop = LoopHeader(ExpressionCode(code, slots), "item", parallel=False, width=1, distributed=False, reducers=())
    return program(playbook(step("start", loops=(loop,))))


def _first(name: str, *operands: object, slots: int = 0) -> Program:
    """Return a program whose expression begins with an instruction."""
    return _expression(Instruction(EXPRESSION[name], operands), _RETURN, slots=slots)


def _first_of_pipeline(name: str, *operands: object, counters: int = 0) -> Program:
    code = (Instruction(PIPELINE[name], operands), _END)
    return program(playbook(step("start", code=Pipeline(code, counters))))


OPERANDS: list[Case] = [
    Case(code, what, "expressions", partial(_first, *row), 0)
    for code, what, *row in (
        ("V002", "CONST of nothing", "CONST"),
        ("V002", "CONST of two", "CONST", 1, 2),
        ("V002", "RETURN of a constant", "RETURN", 1),
        ("V002", "FILTER with a name only", "FILTER", "length"),
        ("V002", "JUMP to nowhere", "JUMP"),
        ("V003", "ATTR of a number", "ATTR", 1),
        ("V003", "ATTR of null", "ATTR", None),
        ("V003", "BARE of a list", "BARE", ["a"]),
        ("V003", "EMIT_CONST of a number", "EMIT_CONST", 1),
        ("V003", "UNDEFINED of true", "UNDEFINED", True),
        ("V003", "REQUIRE of a mapping", "REQUIRE", {}),
        ("V003", "LIST of a negative number", "LIST", -1),
        ("V003", "LIST of true", "LIST", True),
        ("V003", "LIST of half", "LIST", 0.5),
        ("V003", "LIST of more than fits", "LIST", 2**32),
        ("V003", "JUMP to a label", "JUMP", "end"),
        ("V003", "JUMP to true", "JUMP", True),
        ("V003", "LOCAL of a name", "LOCAL", "x"),
        ("V003", "NAME by number", "NAME", 2),
        ("V003", "COMPARE by number", "COMPARE", 0),
        ("V003", "FILTER by number", "FILTER", 1, 0, [], 0),
        ("V003", "FILTER with words that are one text", "FILTER", "default", 0, "ab", 0),
        ("V003", "FILTER with words that are numbers", "FILTER", "default", 0, [1], 0),
        ("V003", "FILTER with a spread of true", "FILTER", "format", 0, [], True),
        ("V003", "TEST of a list", "TEST", ["defined"], 0, [], 0),
        ("V003", "CALL of null", "CALL", None, 0, [], 0),
        ("V003", "METHOD of a number", "METHOD", 1, 0, [], 0),
        ("V004", "JUMP beyond the end", "JUMP", 2),
        ("V004", "JUMP far beyond the end", "JUMP", 2**32 - 1),
        ("V004", "JUMP before the beginning", "JUMP", -1),
        ("V005", "LOCAL of a negative slot", "LOCAL", -1),
        ("V006", "a name that nobody has", "NAME", "secrets"),
        ("V006", "a Python name", "NAME", "__builtins__"),
        ("V006", "a name without letters", "NAME", ""),
        ("V006", "a comparison of identity", "COMPARE", "is"),
        ("V006", "a comparison with a space too many", "COMPARE", "not  in"),
        ("V006", "a spread of a negative number", "FILTER", "format", 0, [], -1),
    )
]

PIPELINE_OPERANDS: list[Case] = [
    Case(code, what, "pipelines", partial(_first_of_pipeline, *row), 0)
    for code, what, *row in (
        ("V002", "END with a target", "END", 0),
        ("V002", "ENTER without a label", "ENTER"),
        ("V002", "CALL without a spec", "CALL", "noop", EMPTY),
        ("V003", "ENTER of a number", "ENTER", 1),
        ("V003", "MARK of null", "MARK", None),
        ("V003", "CALL with no inputs", "CALL", "noop", None, EMPTY),
        ("V003", "CALL with plain inputs", "CALL", "noop", {}, EMPTY),
        ("V003", "UNLESS of a boolean", "UNLESS", True, 1),
        ("V003", "PATCH of a mapping", "PATCH", None, {"a": 1}),
        ("V003", "RETRY of true", *retry(0, True)),
        ("V003", "RETRY with a backoff by number", *retry(0, 2, 0)),
        ("V003", "RETRY with a plain delay", *retry(0, 2, "none", 1.5)),
        ("V003", "GOTO a label", "GOTO", "end"),
        ("V004", "GOTO beyond the end", "GOTO", 2),
        ("V004", "GOTO before the beginning", "GOTO", -2),
        ("V004", "UNLESS beyond the end", "UNLESS", TRUE, 9),
        ("V006", "a backoff that nobody has", *retry(0, 2, "random")),
        ("V006", "a backoff without a name", *retry(0, 2, "")),
    )
]


def _of_other_machine() -> Program:
    return _expression(Instruction(PIPELINE["END"]))


def _call_of_other_machine() -> Program:
    """Both machines have a CALL."""
    return _expression(Instruction(PIPELINE["CALL"], ("noop", EMPTY, EMPTY)), _RETURN)


def _pipeline_of_other_machine() -> Program:
    return program(playbook(step("start", code=Pipeline((Instruction(EXPRESSION["JUMP"], (1,)), _END)))))


MACHINES: list[Case] = [
    Case("V001", "END in an expression", "expressions", _of_other_machine, 0),
    Case("V001", "the tool's CALL in an expression", "expressions", _call_of_other_machine, 0),
    Case("V001", "JUMP in a pipeline", "pipelines", _pipeline_of_other_machine, 0),
]


def _repeated(name: str, count: int, *operands: object) -> Program:
    return _expression(*[Instruction(EXPRESSION[name], operands)] * count, _RETURN)


def _nested_for(depth: int) -> Program:
    return in_place("loop", "CONST []; ITER; " * depth + "CONST 1; RETURN")


LIMITS: list[Case] = [
    Case("V008", "an expression that is too long", "expressions", partial(_repeated, "CONST", CODE_MAX, 1), CODE_MAX),
    Case(
        "V008",
        "a pipeline that is too long",
        "pipelines",
        lambda: program(playbook(step("start", code=Pipeline((_END,) * (CODE_MAX + 1))))),
        CODE_MAX,
    ),
    Case("V023", "too many values", "expressions", partial(_repeated, "CONST", STACK_MAX + 1, 1), STACK_MAX),
    Case("V023", "too many texts", "expressions", partial(_repeated, "TEXT_BEGIN", TEXT_DEPTH_MAX + 1), TEXT_DEPTH_MAX),
    Case(
        "V023",
        "too many values taken apart",
        "expressions",
        lambda: in_place("loop", "CONST []; UNPACK 4294967295; RETURN"),
        1,
    ),
    Case("V024", "for blocks that are too deep", "expressions", partial(_nested_for, FOR_DEPTH_MAX + 1), 257),
    Case("V009", "a negative number of slots", "expressions", lambda: _expression(_RETURN, slots=-1), 0),
    Case(
        "V009",
        "a negative number of counters",
        "pipelines",
        lambda: program(playbook(step("start", code=Pipeline((_END,), counters=-1)))),
        0,
    ),
]


def _debug(edit: Callable[[DebugMap], DebugMap], make: Callable[[], Program] = two_steps) -> Program:
    good = with_debug(make())
    assert good.debug is not None
    return changed(good, debug=edit(good.debug))


def _entry(index: int, edit: Callable[[DebugEntry], DebugEntry]) -> Callable[[DebugMap], DebugMap]:
    def edited(debug: DebugMap) -> DebugMap:
        entries = list(debug.entries)
        entries[index] = edit(entries[index])
        return changed(debug, entries=tuple(entries))

    return edited


def _first_mark(mark: Mark) -> Callable[[DebugMap], DebugMap]:
    return _entry(1, lambda entry: changed(entry, marks=(mark, *entry.marks[1:])))


_OTHER = DebugEntry("nowhere", "arc", (Mark(0, 1, 1),))

DEBUG: list[Case] = [
    Case(code, name, "debug", partial(_debug, edit))
    for code, name, edit in (
        ("V100", "no entry", lambda debug: changed(debug, entries=())),
        ("V100", "the last entry is missing", lambda debug: changed(debug, entries=debug.entries[:-1])),
        ("V101", "an entry too many", lambda debug: changed(debug, entries=(*debug.entries, _OTHER))),
        ("V101", "everything twice", lambda debug: changed(debug, entries=debug.entries * 2)),
        ("V102", "the first entry is missing", lambda debug: changed(debug, entries=debug.entries[1:])),
        ("V102", "an entry of something else", _entry(0, lambda entry: changed(entry, address="nowhere"))),
        ("V102", "an entry without an address", _entry(2, lambda entry: changed(entry, address=""))),
        ("V102", "entries in the wrong order", lambda debug: changed(debug, entries=debug.entries[::-1])),
        ("V103", "a step without a mark", _entry(0, lambda entry: changed(entry, marks=()))),
        ("V103", "a step with two marks", _entry(0, lambda entry: changed(entry, marks=entry.marks * 2))),
        ("V103", "code with a mark too few", _entry(1, lambda entry: changed(entry, marks=entry.marks[1:]))),
        (
            "V103",
            "code with a mark too many",
            _entry(1, lambda entry: changed(entry, marks=(*entry.marks, Mark(0, 1, 1)))),
        ),
        ("V104", "a file that is not listed", _first_mark(Mark(1, 1, 1))),
        ("V104", "a negative file", _first_mark(Mark(-1, 1, 1))),
        ("V104", "no files at all", lambda debug: changed(debug, files=())),
        ("V105", "line 0", _first_mark(Mark(0, 0, 1))),
        ("V105", "column 0", _first_mark(Mark(0, 1, 0))),
        ("V105", "a negative line", _first_mark(Mark(0, -3, 1))),
        ("V106", "a file twice", lambda debug: changed(debug, files=(*debug.files, *debug.files))),
    )
]
DEBUG += [
    Case(
        "V100",
        "the child's entries are missing",
        "debug",
        partial(_debug, lambda debug: changed(debug, entries=debug.entries[:4]), two_playbooks),
    ),
    Case(
        "V102",
        "the child's entries without its path",
        "debug",
        partial(_debug, _entry(4, lambda entry: changed(entry, address="start")), two_playbooks),
    ),
    Case(
        "V101",
        "entries for a program of nothing but a step",
        "debug",
        partial(_debug, lambda debug: changed(debug, entries=(*debug.entries, _OTHER)), lambda: with_pipeline("END")),
    ),
]

CASES = [*OPERANDS, *PIPELINE_OPERANDS, *MACHINES, *LIMITS, *DEBUG]
