"""What can be wrong with the records: metadata, net, keychain, workload."""

from __future__ import annotations

from noetlvm.bytecode.codec.malformed import MalformedCode
from tests.noetlvm.bytecode.malformed.pieces import (
    DONE,
    EMPTY,
    NIL,
    PAYLOADS,
    TRUE,
    Case,
    Cases,
    arc,
    array,
    binary,
    bundle,
    credential,
    loop,
    mapping,
    net,
    playbook,
    step,
    text,
    u,
)


def metadata(fault: MalformedCode, data: bytes) -> Case:
    return Case(fault, bundle(metadata=data), "metadata")


def in_net(fault: MalformedCode, data: bytes) -> Case:
    return Case(fault, bundle(net=data), "net")


def in_step(fault: MalformedCode, data: bytes) -> Case:
    return in_net(fault, net(data))


def in_loop(fault: MalformedCode, data: bytes) -> Case:
    return in_step(fault, step(loops=array(data)))


def in_arc(fault: MalformedCode, data: bytes) -> Case:
    return in_step(fault, step(arcs=array(data)))


TYPE, LENGTH, RANGE = MalformedCode.WRONG_TYPE, MalformedCode.WRONG_LENGTH, MalformedCode.OUT_OF_RANGE

METADATA: Cases = {
    "a playbook is a mapping": metadata(TYPE, mapping(text("name"), text("p"))),
    "a playbook of six fields": metadata(LENGTH, array(*[NIL] * 6)),
    "a playbook of eight fields": metadata(LENGTH, array(*[NIL] * 8)),
    "a playbook less than there are nets": Case(MalformedCode.TRUNCATED, bundle(net=net() + array()), "metadata"),
    "a playbook more than there are nets": metadata(MalformedCode.LEFT_OVER, playbook() + playbook()),
    "something after the playbooks": metadata(MalformedCode.LEFT_OVER, playbook() + NIL),
    "metadata without a payload": metadata(MalformedCode.TRUNCATED, b""),
    "a playbook's name is a boolean": metadata(TYPE, playbook(name=TRUE)),
    "a playbook's usual name is spelled out": metadata(MalformedCode.PADDED_VALUE, playbook(name=text("p"))),
    "a path of one part is spelled out as the name": metadata(
        MalformedCode.PADDED_VALUE, playbook(name=text("p"), path=text("p"))
    ),
    "no name for a path of none": metadata(MalformedCode.PADDED_VALUE, playbook(name=text(""), path=text(""))),
    "a playbook's name is a number": metadata(TYPE, playbook(name=u(4))),
    "a playbook's path is null": metadata(TYPE, playbook(path=NIL)),
    "a playbook's path is a list": metadata(TYPE, playbook(path=array(text("x")))),
    "a playbook's metadata are a list": metadata(TYPE, playbook(metadata=array())),
    "a playbook's metadata are null": metadata(TYPE, playbook(metadata=NIL)),
    "a playbook's executor is a text": metadata(TYPE, playbook(executor=text("local"))),
    "a playbook's executor has a key twice": metadata(
        MalformedCode.DUPLICATE_KEY, playbook(executor=mapping(text("a"), NIL, text("a"), NIL))
    ),
    "the entry step is written out": metadata(TYPE, playbook(entry=text("start"))),
    "the entry step is null": metadata(TYPE, playbook(entry=NIL)),
    "the entry step is a mapping of the pool": metadata(MalformedCode.CONSTANT_TYPE, playbook(entry=u(0))),
    "the entry step does not exist": metadata(MalformedCode.NO_SUCH_CONSTANT, playbook(entry=u(9))),
    "the final step is false": metadata(TYPE, playbook(final=b"\xc2")),
    "the final step is null": metadata(TYPE, playbook(final=NIL)),
    "the final step is written out": metadata(TYPE, playbook(final=text("done"))),
    "the final step is a mapping of the pool": metadata(MalformedCode.CONSTANT_TYPE, playbook(final=u(1))),
    "the final step does not exist": metadata(MalformedCode.NO_SUCH_CONSTANT, playbook(final=u(10))),
    "strictness is a number": metadata(TYPE, playbook(strict=u(1))),
    "strictness is null": metadata(TYPE, playbook(strict=NIL)),
}

NET: Cases = {
    "no playbooks": in_net(MalformedCode.NO_PLAYBOOK, b""),
    "steps are a mapping": in_net(TYPE, EMPTY),
    "steps are null": in_net(TYPE, NIL),
    "something after the nets": in_net(TYPE, net() + u(0)),
    "a step less than announced": in_net(MalformedCode.TRUNCATED, b"\x93" + step() + DONE),
    "a step more than announced": in_net(TYPE, b"\x91" + step() + DONE[1:]),
    "a step is a text": in_step(TYPE, text("start")),
    "a step of five fields": in_step(LENGTH, array(*[u(0)] * 5)),
    "a step of seven fields": in_step(LENGTH, array(*[u(0)] * 7)),
    "a step's name is written out": in_step(TYPE, step(name=text("start"))),
    "a step's name is null": in_step(TYPE, step(name=NIL)),
    "a step's name is negative": in_step(TYPE, step(name=b"\xff")),
    "a step's name is past 32 bits": in_step(RANGE, step(name=b"\xcf\x00\x00\x00\x01\x00\x00\x00\x00")),
    "a step's bits are 16": in_step(RANGE, step(bits=u(16))),
    "a step's bits are 127": in_step(RANGE, step(bits=u(127))),
    "a step's bits are a boolean": in_step(TYPE, step(bits=TRUE)),
    "a step's admission is null": in_step(TYPE, step(admit=NIL)),
    "a step's admission is code": in_step(TYPE, step(admit=binary(b"\x00\x3b"))),
    "a step's loops are null": in_step(TYPE, step(loops=NIL)),
    "a step's loops are a mapping": in_step(TYPE, step(loops=EMPTY)),
    "a step's arcs are null": in_step(TYPE, step(arcs=NIL)),
    "a step's arcs are a number": in_step(TYPE, step(arcs=u(0))),
    "a step's settings are written out": in_step(TYPE, step(settings=EMPTY)),
    "a step's settings are null": in_step(TYPE, step(settings=NIL)),
    "a loop is a number": in_loop(TYPE, u(0)),
    "a loop of five fields": in_loop(LENGTH, array(*[u(0)] * 5)),
    "a loop of seven fields": in_loop(LENGTH, array(*[u(0)] * 7)),
    "a loop's collection is null": in_loop(TYPE, loop(collection=NIL)),
    "a loop's iterator is written out": in_loop(TYPE, loop(iterator=text("item"))),
    "a loop's bits are 4": in_loop(RANGE, loop(bits=u(4))),
    "a loop's bits are a boolean": in_loop(TYPE, loop(bits=TRUE)),
    "a loop's width is null": in_loop(TYPE, loop(width=NIL)),
    "a loop's width is negative": in_loop(TYPE, loop(width=b"\xff")),
    "a loop's width is a float": in_loop(TYPE, loop(width=b"\xcb\x40\x10\x00\x00\x00\x00\x00\x00")),
    "a loop's width is past 32 bits": in_loop(RANGE, loop(width=b"\xcf\x00\x00\x00\x01\x00\x00\x00\x00")),
    "a loop's width is an expression past the end": in_loop(MalformedCode.NO_SUCH_EXPRESSION, loop(width=u(9))),
    "a loop's rate is null": in_loop(TYPE, loop(rate=NIL)),
    "a loop's rate is an expression past the end": in_loop(MalformedCode.NO_SUCH_EXPRESSION, loop(rate=u(9))),
    "reducers are a mapping": in_loop(TYPE, loop(reducers=mapping(text("n"), text("sum")))),
    "reducers without a pair": in_loop(LENGTH, loop(reducers=array(u(6)))),
    "three words of reducers": in_loop(LENGTH, loop(reducers=array(u(6), u(7), u(6)))),
    "a reducer is written out": in_loop(TYPE, loop(reducers=array(u(6), text("sum")))),
    "an arc is a text": in_arc(TYPE, text("done")),
    "an arc of three fields": in_arc(LENGTH, array(*[u(0)] * 3)),
    "an arc of five fields": in_arc(LENGTH, array(*[u(0)] * 5)),
    "an arc's target is written out": in_arc(TYPE, arc(target=text("done"))),
    "an arc's bits are 2": in_arc(RANGE, arc(bits=u(2))),
    "an arc's bits are a boolean": in_arc(TYPE, arc(bits=TRUE)),
    "an arc's guard is null": in_arc(TYPE, arc(guard=NIL)),
    "an arc's args are a mapping": in_arc(TYPE, arc(args=EMPTY)),
    "a padded number in an arc": in_arc(MalformedCode.PADDED_VALUE, arc(guard=b"\xcc\x02")),
}

KEYCHAIN: Cases = {
    name: Case(fault, bundle(keychain=data), "keychain")
    for name, (fault, data) in {
        "keychain without a payload": (MalformedCode.SECTION_EMPTY, b""),
        "a keychain that holds nothing": (MalformedCode.SECTION_EMPTY, array()),
        "a keychain too many": (MalformedCode.LEFT_OVER, array(credential()) + array()),
        "a keychain is a mapping": (TYPE, EMPTY),
        "a keychain is null": (TYPE, NIL),
        "something after the keychains": (MalformedCode.LEFT_OVER, PAYLOADS["keychain"] + NIL),
        "a credential is a text": (TYPE, array(text("token"))),
        "a credential of two fields": (LENGTH, array(array(text("token"), text("secret")))),
        "a credential of four fields": (LENGTH, array(array(NIL, NIL, NIL, NIL))),
        "a credential's name is null": (TYPE, array(credential(name=NIL))),
        "a credential's kind is a number": (TYPE, array(credential(kind=u(1)))),
        "a credential's settings are a list": (TYPE, array(credential(settings=array()))),
        "a credential's settings hold bytes": (TYPE, array(credential(settings=mapping(text("a"), binary(b""))))),
    }.items()
}

WORKLOAD: Cases = {
    name: Case(fault, bundle(workload=data), "workload")
    for name, (fault, data) in {
        "workload without a payload": (MalformedCode.SECTION_EMPTY, b""),
        "a workload that holds nothing": (MalformedCode.SECTION_EMPTY, EMPTY),
        "a workload too many": (MalformedCode.LEFT_OVER, PAYLOADS["workload"] + EMPTY),
        "a workload is a list": (TYPE, array()),
        "a workload is null": (TYPE, NIL),
        "something after the workload": (MalformedCode.LEFT_OVER, PAYLOADS["workload"] + NIL),
    }.items()
}

CHILDREN: Cases = {
    "a keychain less than there are nets": Case(
        MalformedCode.TRUNCATED, bundle(net=net() + array(), metadata=playbook() * 2), "keychain"
    ),
    "keychains that hold nothing": Case(
        MalformedCode.SECTION_EMPTY,
        bundle(net=net() + array(), metadata=playbook() * 2, keychain=array() * 2),
        "keychain",
    ),
    "a workload less than there are nets": Case(
        MalformedCode.TRUNCATED,
        bundle(net=net() + array(), metadata=playbook() * 2, keychain=array(credential()) + array()),
        "workload",
    ),
    "workloads that hold nothing": Case(
        MalformedCode.SECTION_EMPTY,
        bundle(
            net=net() + array(), metadata=playbook() * 2, keychain=array(credential()) + array(), workload=EMPTY * 2
        ),
        "workload",
    ),
}

CASES: Cases = METADATA | NET | KEYCHAIN | WORKLOAD | CHILDREN
