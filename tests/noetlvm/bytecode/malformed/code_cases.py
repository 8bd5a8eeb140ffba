"""What can be wrong with code and with the pools that it refers to."""

from __future__ import annotations

from noetlvm.bytecode.codec.malformed import MalformedCode
from noetlvm.bytecode.isa import BACKOFFS, COMPARISONS, NAMES
from noetlvm.bytecode.isa import OPCODES as TABLE
from noetlvm.bytecode.limits import CODE_BYTES_MAX
from tests.noetlvm.bytecode.malformed.pieces import (
    ATTR,
    CALL,
    COMPARE,
    CONST,
    CONSTANTS,
    CONTINUE,
    EMPTY,
    END,
    ENTER,
    EXPRESSION_0,
    EXPRESSION_1,
    FAIL,
    FILTER,
    JUMP,
    NAME,
    NIL,
    NOT,
    ON_ERROR,
    PATCH,
    PAYLOADS,
    PIPELINE,
    RESET,
    RETURN,
    TRUTH,
    UNLESS,
    Case,
    Cases,
    arc,
    array,
    binary,
    bundle,
    instruction,
    loop,
    net,
    step,
    text,
    u,
    with_expression,
    with_pipeline,
)


def expression(fault: MalformedCode, *code: int) -> Case:
    """The first expression is this code, with no slots."""
    return Case(fault, with_expression(bytes((0, *code))), "expressions")


def pipeline(fault: MalformedCode, *code: int) -> Case:
    """The pipeline is this code, with no counters."""
    return Case(fault, with_pipeline(bytes((0, *code))), "pipelines")


def constants(*items: bytes) -> bytes:
    return bundle(constants=b"".join(items))


TASK = (ENTER, 2, *instruction("CALL", text=3))
"""The beginning of a task: its call without inputs and settings."""

NUMBERS = {row.number for row in TABLE}
LAST = max(NUMBERS)
BETWEEN = next(number for number in range(1, LAST) if number not in NUMBERS)
"""A number between two rows of the table."""

OPCODES: Cases = {
    "opcode 0": expression(MalformedCode.UNKNOWN_OPCODE, 0),
    "an opcode between the rows": expression(MalformedCode.UNKNOWN_OPCODE, BETWEEN),
    "opcode 127": expression(MalformedCode.UNKNOWN_OPCODE, 127),
    "opcode 128": expression(MalformedCode.UNKNOWN_OPCODE, 128),
    "opcode 255": expression(MalformedCode.UNKNOWN_OPCODE, CONST, 0, 255, RETURN),
    "an unknown opcode after RETURN": expression(MalformedCode.UNKNOWN_OPCODE, CONST, 0, RETURN, BETWEEN),
    "opcode 0 in a pipeline": pipeline(MalformedCode.UNKNOWN_OPCODE, ENTER, 2, 0),
    "an opcode behind the last in a pipeline": pipeline(MalformedCode.UNKNOWN_OPCODE, LAST + 1),
    "ENTER in an expression": expression(MalformedCode.WRONG_MACHINE, ENTER, 2),
    "END in an expression": expression(MalformedCode.WRONG_MACHINE, CONST, 0, END),
    "pipeline's CALL in an expression": expression(MalformedCode.WRONG_MACHINE, CALL, 3, 0, 0),
    "CONST in a pipeline": pipeline(MalformedCode.WRONG_MACHINE, CONST, 0),
    "RETURN in a pipeline": pipeline(MalformedCode.WRONG_MACHINE, ENTER, 2, RETURN),
    "a filter in a pipeline": pipeline(MalformedCode.WRONG_MACHINE, FILTER, 1, 0, 0, 0),
}

OPERANDS: Cases = {
    "no code at all": Case(MalformedCode.CUT_INSTRUCTION, with_expression(b""), "expressions"),
    "an empty pipeline block": Case(MalformedCode.CUT_INSTRUCTION, with_pipeline(b""), "pipelines"),
    "CONST without its operand": expression(MalformedCode.CUT_INSTRUCTION, CONST),
    "half an operand": expression(MalformedCode.CUT_INSTRUCTION, CONST, 0x80),
    "FILTER without its last operand": expression(MalformedCode.CUT_INSTRUCTION, CONST, 0, FILTER, 1, 0, 0),
    "FILTER without any operand": expression(MalformedCode.CUT_INSTRUCTION, CONST, 0, FILTER),
    "ENTER without its label": pipeline(MalformedCode.CUT_INSTRUCTION, ENTER),
    "CALL without its spec": pipeline(MalformedCode.CUT_INSTRUCTION, ENTER, 2, CALL, 3, 0),
    "RETRY without its target": pipeline(MalformedCode.CUT_INSTRUCTION, *TASK, *instruction("RETRY", limit=6)[:-1]),
    "half a number of slots": Case(MalformedCode.CUT_INSTRUCTION, with_expression(b"\x80"), "expressions"),
    "a padded operand": expression(MalformedCode.PADDED_OPERAND, CONST, 0x80, 0x00, RETURN),
    "a doubly padded operand": expression(MalformedCode.PADDED_OPERAND, CONST, 0x80, 0x80, 0x00, RETURN),
    "a padded operand that is not zero": expression(MalformedCode.PADDED_OPERAND, NAME, 0x82, 0x00, RETURN),
    "a padded operand in the middle": expression(MalformedCode.PADDED_OPERAND, CONST, 0, FILTER, 0x81, 0x00, 0, 0, 0),
    "a padded target": expression(MalformedCode.PADDED_OPERAND, JUMP, 0x81, 0x00),
    "a padded label": pipeline(MalformedCode.PADDED_OPERAND, ENTER, 0x82, 0x00),
    "a padded number of slots": Case(MalformedCode.PADDED_OPERAND, with_expression(b"\x80\x00" + EXPRESSION_0[1:])),
    "a padded number of counters": Case(MalformedCode.PADDED_OPERAND, with_pipeline(b"\x80\x00" + PIPELINE[1:])),
    "an operand of 2**32": expression(MalformedCode.HUGE_OPERAND, JUMP, 0x80, 0x80, 0x80, 0x80, 0x10),
    "an operand of 2**35": expression(MalformedCode.HUGE_OPERAND, JUMP, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01),
    "an operand of ten bytes": expression(MalformedCode.HUGE_OPERAND, JUMP, *[0xFF] * 9, 0x01),
    "an operand without an end": expression(MalformedCode.HUGE_OPERAND, JUMP, *[0x80] * 200),
    "an operand of six bytes in a pipeline": pipeline(MalformedCode.HUGE_OPERAND, RESET, *[0xFF] * 5, 0x01),
    "65,536 slots": Case(
        MalformedCode.OUT_OF_RANGE, with_expression(b"\x80\x80\x04" + EXPRESSION_0[1:]), "expressions"
    ),
    "65,536 counters": Case(MalformedCode.OUT_OF_RANGE, with_pipeline(b"\x80\x80\x04" + PIPELINE[1:]), "pipelines"),
    "2**32 slots": Case(MalformedCode.HUGE_OPERAND, with_expression(b"\x80\x80\x80\x80\x10" + EXPRESSION_0[1:])),
    "code longer than the limit": Case(
        MalformedCode.TOO_LONG,
        lambda: with_expression(bytes((0, CONST, 0)) + bytes((NOT,)) * CODE_BYTES_MAX + bytes((RETURN,))),
    ),
    "a constant that does not exist": expression(MalformedCode.NO_SUCH_CONSTANT, CONST, 9, RETURN),
    "a constant far past the end": expression(
        MalformedCode.NO_SUCH_CONSTANT, CONST, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F, RETURN
    ),
    "a label that does not exist": pipeline(MalformedCode.NO_SUCH_CONSTANT, ENTER, 9),
    "an expression that does not exist": pipeline(MalformedCode.NO_SUCH_EXPRESSION, ENTER, 2, CALL, 3, 2, 0),
    "an optional expression that does not exist": pipeline(
        MalformedCode.NO_SUCH_EXPRESSION, ENTER, 2, CALL, 3, 0, 0, PATCH, 0, 3
    ),
    "a guard that does not exist": pipeline(MalformedCode.NO_SUCH_EXPRESSION, ENTER, 2, UNLESS, 99, 0),
    "a namespace that does not exist": expression(MalformedCode.NO_SUCH_WORD, NAME, len(NAMES), RETURN),
    "a comparison that does not exist": expression(
        MalformedCode.NO_SUCH_WORD, CONST, 0, CONST, 0, COMPARE, len(COMPARISONS), RETURN
    ),
    "a backoff that does not exist": pipeline(
        MalformedCode.NO_SUCH_WORD, *TASK, *instruction("RETRY", limit=6, backoff=len(BACKOFFS), target=1)
    ),
    "attempts by an expression that does not exist": pipeline(
        MalformedCode.NO_SUCH_EXPRESSION, *TASK, *instruction("RETRY", limit=9, target=1)
    ),
    "an attribute that is no text": expression(MalformedCode.CONSTANT_TYPE, NAME, 2, ATTR, 0, RETURN),
    "a filter that is no text": expression(MalformedCode.CONSTANT_TYPE, CONST, 0, FILTER, 0, 0, 0, 0, RETURN),
    "words that are a mapping": expression(MalformedCode.CONSTANT_TYPE, CONST, 0, FILTER, 1, 0, 0, 0, RETURN),
    "words that are a text": expression(MalformedCode.CONSTANT_TYPE, CONST, 0, FILTER, 1, 0, 1, 0, RETURN),
    "words that are numbers": Case(
        MalformedCode.CONSTANT_TYPE,
        bundle(
            constants=b"".join((EMPTY, text("go"), array(u(1)), *CONSTANTS[2:])),
            expressions=binary(bytes((0, CONST, 0, FILTER, 1, 0, 2, 0, RETURN))),
        ),
    ),
    "a spread of 4": Case(
        MalformedCode.NO_SUCH_WORD,
        bundle(
            constants=b"".join((EMPTY, text("go"), array(), *CONSTANTS[2:])),
            expressions=binary(bytes((0, CONST, 0, FILTER, 1, 0, 2, 4, RETURN))),
        ),
    ),
    "a label that is no text": pipeline(MalformedCode.CONSTANT_TYPE, ENTER, 0),
    "a kind that is no text": pipeline(MalformedCode.CONSTANT_TYPE, ENTER, 2, CALL, 0, 0, 0),
}

SECTIONS: Cases = {
    "constants without a payload": Case(MalformedCode.NO_SUCH_CONSTANT, bundle(constants=b""), "expressions"),
    "the last constant is cut off": Case(MalformedCode.TRUNCATED, constants(*CONSTANTS, text("ab")[:-1]), "constants"),
    "a constant less than are used": Case(MalformedCode.NO_SUCH_CONSTANT, constants(*CONSTANTS[:-1]), "net"),
    "a constant is bytes": Case(MalformedCode.WRONG_TYPE, constants(*CONSTANTS, binary(b"")), "constants"),
    "a constant is padded": Case(MalformedCode.PADDED_VALUE, constants(*CONSTANTS, b"\xcc\x01"), "constants"),
    "a constant has a key twice": Case(
        MalformedCode.DUPLICATE_KEY, constants(*CONSTANTS, b"\x82\xa1a\x01\xa1a\x02"), "constants"
    ),
    "expressions without a payload": Case(MalformedCode.SECTION_EMPTY, bundle(expressions=b""), "expressions"),
    "an expression of no bytes": Case(
        MalformedCode.CUT_INSTRUCTION, bundle(expressions=PAYLOADS["expressions"] + binary(b"")), "expressions"
    ),
    "an expression longer than its section": Case(
        MalformedCode.TRUNCATED,
        bundle(expressions=b"\xc4" + bytes((len(EXPRESSION_0) + 1,)) + EXPRESSION_0),
        "expressions",
    ),
    "an expression of 4 GiB": Case(
        MalformedCode.TRUNCATED, bundle(expressions=b"\xc6\xff\xff\xff\xff" + EXPRESSION_0), "expressions"
    ),
    "an expression is a text": Case(MalformedCode.WRONG_TYPE, bundle(expressions=text("ab")), "expressions"),
    "an expression's length is padded": Case(
        MalformedCode.PADDED_VALUE,
        bundle(expressions=b"\xc5\x00\x04" + EXPRESSION_0 + binary(EXPRESSION_1)),
        "expressions",
    ),
    "an expression's length is cut off": Case(
        MalformedCode.TRUNCATED, bundle(expressions=PAYLOADS["expressions"] + b"\xc5\x00"), "expressions"
    ),
    "something after the expressions": Case(
        MalformedCode.WRONG_TYPE, bundle(expressions=PAYLOADS["expressions"] + b"\x01"), "expressions"
    ),
    "pipelines without a payload": Case(MalformedCode.SECTION_EMPTY, bundle(pipelines=b""), "pipelines"),
    "a pipeline longer than its section": Case(
        MalformedCode.TRUNCATED, bundle(pipelines=b"\xc4" + bytes((len(PIPELINE) + 1,)) + PIPELINE), "pipelines"
    ),
    "a pipeline's length is padded": Case(
        MalformedCode.PADDED_VALUE, bundle(pipelines=b"\xc5\x00" + bytes((len(PIPELINE),)) + PIPELINE), "pipelines"
    ),
    "something after the pipelines": Case(
        MalformedCode.WRONG_TYPE, bundle(pipelines=PAYLOADS["pipelines"] + b"\x01"), "pipelines"
    ),
    "a step's pipeline is missing": Case(
        MalformedCode.PIPELINE_COUNT,
        bundle(
            constants=b"".join(CONSTANTS[:3]),
            pipelines=binary(bytes((0, END))),
            net=array(*[step(name=u(2), loops=array(), arcs=array())] * 2),
        ),
        "net",
    ),
    "a pipeline without a step": Case(MalformedCode.PIPELINE_COUNT, bundle(net=net(step(bits=u(0)))), "net"),
    "a second pipeline without a step": Case(
        MalformedCode.PIPELINE_COUNT, bundle(pipelines=binary(PIPELINE) * 2), "net"
    ),
}

POOLS: Cases = {
    "a text in the pool twice": Case(MalformedCode.CONSTANT_TWICE, constants(*CONSTANTS, text("go")), "constants"),
    "a mapping in the pool twice": Case(
        MalformedCode.CONSTANT_TWICE, constants(EMPTY, EMPTY, *CONSTANTS[1:]), "constants"
    ),
    "a number in the pool twice": Case(MalformedCode.CONSTANT_TWICE, constants(*CONSTANTS, u(1), u(1)), "constants"),
    "the first constant used is not the first": expression(MalformedCode.CONSTANT_ORDER, CONST, 1, RETURN),
    "a constant is passed over by an expression": Case(
        MalformedCode.CONSTANT_ORDER, bundle(expressions=binary(EXPRESSION_0) + binary(bytes((0, CONST, 2, RETURN))))
    ),
    "a constant is passed over by a pipeline": pipeline(MalformedCode.CONSTANT_ORDER, ENTER, 3),
    "a constant is passed over by a step": Case(MalformedCode.CONSTANT_ORDER, bundle(net=net(step(name=u(5)))), "net"),
    "a constant is passed over by a loop": Case(
        MalformedCode.CONSTANT_ORDER, bundle(net=net(step(loops=array(loop(iterator=u(6)))))), "net"
    ),
    "a constant is passed over by reducers": Case(
        MalformedCode.CONSTANT_ORDER, bundle(net=net(step(loops=array(loop(reducers=array(u(7), u(6))))))), "net"
    ),
    "a step's name does not exist": Case(MalformedCode.NO_SUCH_CONSTANT, bundle(net=net(step(name=u(99)))), "net"),
    "a step's name is a mapping of the pool": Case(
        MalformedCode.CONSTANT_TYPE, bundle(net=net(step(name=u(0)))), "net"
    ),
    "a step's settings are a text of the pool": Case(
        MalformedCode.CONSTANT_TYPE, bundle(net=net(step(settings=u(1)))), "net"
    ),
    "an arc's target does not exist": Case(
        MalformedCode.NO_SUCH_CONSTANT, bundle(net=net(step(arcs=array(arc(target=u(9)))))), "net"
    ),
    "an arc's guard does not exist": Case(
        MalformedCode.NO_SUCH_EXPRESSION, bundle(net=net(step(arcs=array(arc(guard=u(3)))))), "net"
    ),
    "a loop's collection does not exist": Case(
        MalformedCode.NO_SUCH_EXPRESSION, bundle(net=net(step(loops=array(loop(collection=u(2)))))), "net"
    ),
    "a step's admission does not exist": Case(
        MalformedCode.NO_SUCH_EXPRESSION, bundle(net=net(step(admit=u(3)))), "net"
    ),
    "a constant that nobody uses": Case(MalformedCode.CONSTANT_UNUSED, constants(*CONSTANTS, NIL)),
    "a null constant that nobody uses": Case(MalformedCode.CONSTANT_UNUSED, constants(*CONSTANTS, NIL, u(0))),
    "an expression twice": Case(
        MalformedCode.EXPRESSION_TWICE, bundle(expressions=binary(EXPRESSION_0) * 2), "expressions"
    ),
    "an expression that nobody uses": Case(
        MalformedCode.EXPRESSION_UNUSED, bundle(net=net(step(arcs=array(arc(guard=u(0))))))
    ),
    "an expression too many": Case(
        MalformedCode.EXPRESSION_UNUSED,
        bundle(expressions=PAYLOADS["expressions"] + binary(bytes((1, CONST, 0, RETURN)))),
    ),
    "the first expression used is not the first": pipeline(MalformedCode.EXPRESSION_ORDER, ENTER, 2, CALL, 3, 1, 0),
    "expressions in the order of the net, not of the pipelines": Case(
        MalformedCode.EXPRESSION_ORDER,
        bundle(
            constants=b"".join((text("go"), EMPTY, *CONSTANTS[2:])),
            expressions=binary(bytes((0, NAME, 2, ATTR, 0, TRUTH, RETURN))) + binary(bytes((0, CONST, 1, RETURN))),
            pipelines=binary(bytes((0, ENTER, 2, CALL, 3, 1, 1, ON_ERROR, 4, CONTINUE, 5, FAIL, END))),
        ),
    ),
}

CASES: Cases = OPCODES | OPERANDS | SECTIONS | POOLS
