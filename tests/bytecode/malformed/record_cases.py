"""What can be wrong with the records: metadata, net, keychain, workload."""

from __future__ import annotations

from noetlvm.bytecode.malformed import Fault
from tests.bytecode.malformed.pieces import (
    DONE,
    EMPTY,
    NIL,
    PAYLOADS,
    TRUE,
    Case,
    Cases,
    arc,
    array,
    block,
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


def metadata(fault: Fault, data: bytes) -> Case:
    return Case(fault, bundle(metadata=data), "metadata")


def in_net(fault: Fault, data: bytes) -> Case:
    return Case(fault, bundle(net=data), "net")


def in_step(fault: Fault, data: bytes) -> Case:
    return in_net(fault, net(data))


def in_loop(fault: Fault, data: bytes) -> Case:
    return in_step(fault, step(loops=array(data)))


def in_arc(fault: Fault, data: bytes) -> Case:
    return in_step(fault, step(arcs=array(data)))


TYPE, LENGTH, RANGE = Fault.WRONG_TYPE, Fault.WRONG_LENGTH, Fault.OUT_OF_RANGE

METADATA: Cases = {
    "no playbooks": metadata(Fault.NO_PLAYBOOK, array()),
    "playbooks are a mapping": metadata(TYPE, EMPTY),
    "a playbook is a mapping": metadata(TYPE, array(mapping(text("name"), text("p")))),
    "a playbook of six fields": metadata(LENGTH, array(array(*[NIL] * 6))),
    "a playbook of eight fields": metadata(LENGTH, array(array(*[NIL] * 8))),
    "two playbooks announced": metadata(Fault.TRUNCATED, b"\x92" + playbook()),
    "something after the playbooks": metadata(Fault.LEFT_OVER, array(playbook()) + NIL),
    "metadata without a payload": metadata(Fault.TRUNCATED, b""),
    "a playbook's name is null": metadata(TYPE, array(playbook(name=NIL))),
    "a playbook's name is a number": metadata(TYPE, array(playbook(name=u(4)))),
    "a playbook's path is null": metadata(TYPE, array(playbook(path=NIL))),
    "a playbook's path is a list": metadata(TYPE, array(playbook(path=array(text("x"))))),
    "a playbook's metadata are a list": metadata(TYPE, array(playbook(metadata=array()))),
    "a playbook's metadata are null": metadata(TYPE, array(playbook(metadata=NIL))),
    "a playbook's executor is a text": metadata(TYPE, array(playbook(executor=text("local")))),
    "a playbook's executor has a key twice": metadata(
        Fault.DUPLICATE_KEY, array(playbook(executor=mapping(text("a"), NIL, text("a"), NIL)))
    ),
    "the entry step is a number": metadata(TYPE, array(playbook(entry=u(4)))),
    "the entry step is null": metadata(TYPE, array(playbook(entry=NIL))),
    "the final step is false": metadata(TYPE, array(playbook(final=b"\xc2"))),
    "the final step is a number": metadata(TYPE, array(playbook(final=u(4)))),
    "strictness is a number": metadata(TYPE, array(playbook(strict=u(1)))),
    "strictness is null": metadata(TYPE, array(playbook(strict=NIL))),
}

NET: Cases = {
    "nets are a mapping": in_net(TYPE, EMPTY),
    "net without a payload": in_net(Fault.TRUNCATED, b""),
    "no net for the playbook": in_net(LENGTH, array()),
    "a net too many": in_net(LENGTH, array(array(step(), DONE), array())),
    "something after the nets": in_net(Fault.LEFT_OVER, net() + u(0)),
    "steps are a mapping": in_net(TYPE, array(EMPTY)),
    "a step less than announced": in_net(Fault.TRUNCATED, b"\x91\x93" + step() + DONE),
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
    "a step's admission is code": in_step(TYPE, step(admit=block(b"\x00\x3b"))),
    "a step's loops are null": in_step(TYPE, step(loops=NIL)),
    "a step's loops are a mapping": in_step(TYPE, step(loops=EMPTY)),
    "a step's arcs are null": in_step(TYPE, step(arcs=NIL)),
    "a step's arcs are a number": in_step(TYPE, step(arcs=u(0))),
    "a step's settings are written out": in_step(TYPE, step(settings=EMPTY)),
    "a step's settings are null": in_step(TYPE, step(settings=NIL)),
    "a loop is a number": in_loop(TYPE, u(0)),
    "a loop of four fields": in_loop(LENGTH, array(*[u(0)] * 4)),
    "a loop of six fields": in_loop(LENGTH, array(*[u(0)] * 6)),
    "a loop's collection is null": in_loop(TYPE, loop(collection=NIL)),
    "a loop's iterator is written out": in_loop(TYPE, loop(iterator=text("item"))),
    "a loop's bits are 4": in_loop(RANGE, loop(bits=u(4))),
    "a loop's bits are a boolean": in_loop(TYPE, loop(bits=TRUE)),
    "a loop's width is null": in_loop(TYPE, loop(width=NIL)),
    "a loop's width is negative": in_loop(TYPE, loop(width=b"\xff")),
    "a loop's width is a float": in_loop(TYPE, loop(width=b"\xcb\x40\x10\x00\x00\x00\x00\x00\x00")),
    "a loop's width is past 32 bits": in_loop(RANGE, loop(width=b"\xcf\x00\x00\x00\x01\x00\x00\x00\x00")),
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
    "a padded number in an arc": in_arc(Fault.PADDED_VALUE, arc(guard=b"\xcc\x02")),
}

KEYCHAIN: Cases = {
    name: Case(fault, bundle(keychain=data), "keychain")
    for name, (fault, data) in {
        "keychains are a mapping": (TYPE, EMPTY),
        "keychain without a payload": (Fault.TRUNCATED, b""),
        "no keychain for the playbook": (LENGTH, array()),
        "a keychain too many": (LENGTH, array(array(), array())),
        "a keychain is a mapping": (TYPE, array(EMPTY)),
        "a keychain is null": (TYPE, array(NIL)),
        "something after the keychains": (Fault.LEFT_OVER, PAYLOADS["keychain"] + NIL),
        "a credential is a text": (TYPE, array(array(text("token")))),
        "a credential of two fields": (LENGTH, array(array(array(text("token"), text("secret"))))),
        "a credential of four fields": (LENGTH, array(array(array(NIL, NIL, NIL, NIL)))),
        "a credential's name is null": (TYPE, array(array(credential(name=NIL)))),
        "a credential's kind is a number": (TYPE, array(array(credential(kind=u(1))))),
        "a credential's settings are a list": (TYPE, array(array(credential(settings=array())))),
        "a credential's settings hold bytes": (TYPE, array(array(credential(settings=mapping(text("a"), block(b"")))))),
    }.items()
}

WORKLOAD: Cases = {
    name: Case(fault, bundle(workload=data), "workload")
    for name, (fault, data) in {
        "workloads are a mapping": (TYPE, EMPTY),
        "workload without a payload": (Fault.TRUNCATED, b""),
        "no workload for the playbook": (LENGTH, array()),
        "a workload too many": (LENGTH, array(EMPTY, EMPTY)),
        "a workload is a list": (TYPE, array(array())),
        "a workload is null": (TYPE, array(NIL)),
        "something after the workloads": (Fault.LEFT_OVER, array(EMPTY) + EMPTY),
    }.items()
}

CASES: Cases = METADATA | NET | KEYCHAIN | WORKLOAD
