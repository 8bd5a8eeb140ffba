"""A log is decided again from its inputs alone; what was changed, cut off or added is found, with its place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from noetlc.rules.catalogue import whole_playbook
from noetlvm.data.encoding import decode, encode
from noetlvm.data.event import Event, Recorded
from noetlvm.machine.decide import decide
from noetlvm.machine.messages import Cancel, Continue, Input, LeaseLost, Pause, Request, Resume, WorkerReport
from noetlvm.machine.payload import Offload
from noetlvm.machine.replay import Difference, replay
from noetlvm.machine.settling import MOVES_UNCUT
from tests.noetlvm.machine.control.drive import Drive, Hand, bad, loaded, ok
from tests.noetlvm.machine.control.test_retry import WITH_FINAL, retried

FAN = """
- step: start
  next:
    spec: { mode: inclusive }
    arcs:
      - { step: a, when: "{{ workload.n > 1 }}", args: { n: 1 } }
      - { step: b, when: "{{ workload.n > 2 }}", args: { n: "{{ (1, 2) }}" } }
- { step: a, tool: { kind: noop } }
- { step: b, tool: { kind: noop } }
"""
LOOP = """
- step: start
  loop: { in: "{{ workload.items }}", iterator: i, spec: { mode: parallel, policy: { exec: WHERE } } }
  tool: { kind: noop }
"""


def log_of(events: list[Event]) -> list[Recorded]:
    """Return events as a store returns them."""
    encoded = (event._replace(data=decode(encode(event.data))) for event in events)
    return [
        Recorded(seq, f"id-{seq}", 5.0 if "cancelled" in event.data else 0.0, event)
        for seq, event in enumerate(encoded, 1)
    ]


def difference(drive: Drive, events: list[Event]) -> Difference | None:
    return replay(drive.net, log_of(events), Offload(fetch=lambda reference: drive.blobs[reference.key]))


def fan() -> Drive:
    return Drive(FAN, ok(ctx={"seen": 1}), control=Hand).run({"n": 3})


def refused() -> Drive:
    drive = Drive(FAN, control=Hand)
    drive.take(drive.control.refuse(Request("x", "b", {}), {"kind": "keychain", "message": "no"}))
    return drive


def child() -> Drive:
    drive = Drive(FAN, control=Hand).start({"n": 1}, parent="p", depth=2, trace="t", ctx={"a": 1}, returns="start")
    assert drive.events[0].data | {"depth": 2, "trace": "t"} == drive.events[0].data
    return drive


def in_batches() -> Drive:
    """Each event is a report of its own, the beginnings too."""
    drive = Drive(LOOP.replace("WHERE", "local"), control=Hand).start({"items": [1, 2]})
    for command in drive.ready:
        for event in (Event("loop.iteration.started", {}), *ok(ctx={"a": 1})(drive.control.work(command))):
            drive.take(drive.control.report(*command[:3], [event]))
    return drive


def begun_alone() -> Drive:
    """Both runs begin before either does more, and one of them is lost right then."""
    drive = Drive(FAN, control=Hand).start({"n": 3})
    a, b = drive.ready
    for command in (a, b):
        drive.take(drive.control.report(*command[:3], [Event("step.started", {})]))
    drive.take(drive.control.expire(*b[:3]))
    drive.perform(a)
    return drive


def begun_together() -> Drive:
    drive = Drive(LOOP.replace("WHERE", "local"), control=Hand).start({"items": [1, 2]})
    for command in drive.ready:
        drive.take(drive.control.report(*command[:3], [Event("loop.iteration.started", {})]))
    for command in drive.ready[::-1]:
        drive.perform(command)
    return drive


def timed_out() -> Drive:
    limited = "- { step: start, tool: { kind: noop }, spec: { policy: { lifecycle: { timeout_s: 5 } } } }"
    drive = Drive(limited, control=Hand).start()
    drive.take(drive.control.report(*drive.ready[0][:3], [Event("step.started", {})]))
    drive.control.set_time(5.0)
    drive.take(drive.control.timer())
    assert "cancelled" in drive.last("step.failed").data
    return drive


def large_results() -> Drive:
    drive = Drive(LOOP.replace("WHERE", "local"), ok("x" * 30_000), control=Hand).run({"items": [*range(60)]})
    assert any("stored" in event.data for event in drive.events)
    return drive


def lost_iteration() -> Drive:
    drive = Drive(LOOP.replace("WHERE", "distributed"), control=Hand).start({"items": [1, 2]})
    drive.take(drive.control.give(LeaseLost(1, "1", 1)))
    return drive


def lost_after_another() -> Drive:
    """The second thread of a unit is one lease ahead of the first, because it waited for a child."""
    drive = Drive(LOOP.replace("WHERE", "local"), control=Hand).start({"items": [1, 2]})
    wanted: dict[str, Any] = {"path": "other", "version": None, "workload": {}}
    drive.take(drive.control.report(1, "1", 1, [Event("task.started", {"child": wanted}, task=1, attempt=1)]))
    drive.take(drive.control.child_finished(1, "1", "x/1/1#1.1", {"status": "ok", "result": 1}))
    drive.take(drive.control.expire(1, "1", 2))
    assert drive.events[-1].data == {"lease": 3}
    return drive


def retried_twice() -> Drive:
    drive = Drive(FAN, bad(), control=Hand).run({"n": 3})
    again, _ = retried(retried(drive, "y")[0], "z")
    return again


def retried_final_step() -> Drive:
    """The token of the final step is not put back but enqueued again."""
    return retried(Drive(WITH_FINAL, {"start": ok(), "last": bad()}, control=Hand).run(), "y")[0]


DRIVES: list[Callable[[], Drive]] = [
    fan,
    refused,
    child,
    in_batches,
    begun_alone,
    begun_together,
    timed_out,
    large_results,
    lost_iteration,
    lost_after_another,
    retried_twice,
    retried_final_step,
]


@pytest.mark.parametrize("made", DRIVES, ids=lambda made: made.__name__)
def test_a_log_is_decided_again_as_it_was(made: Callable[[], Drive]) -> None:
    drive = made()
    assert difference(drive, drive.events) is None


@pytest.mark.parametrize("made", DRIVES, ids=lambda made: made.__name__)
def test_where_a_log_ends_early_or_lacks_an_event_is_the_first_difference(made: Callable[[], Drive]) -> None:
    drive = made()
    for at in range(1, min(len(drive.events), 40)):
        ended = difference(drive, drive.events[:at])
        assert ended is None or at - 1 <= ended.seq <= at + 1  # a retry is read with its two tokens
        missing = difference(drive, drive.events[:at] + drive.events[at + 1 :])
        assert missing is None or missing.seq >= at - 1


# ---- places


def place_of(word: str, text: str = FAN) -> str:
    """Return where the line with a word is, without the column."""
    lines = whole_playbook(text).splitlines()
    return f"playbook.yaml:{next(at for at, line in enumerate(lines, 1) if word in line)}:"


def first(drive: Drive, name: str) -> int:
    return next(at for at, event in enumerate(drive.events) if event.name == name)


@pytest.mark.parametrize(
    ("n", "name", "after", "word"),
    [
        (3, "step.scheduled", 0, "- step: start"),
        (3, "next.evaluated", 0, "workload.n > 1"),
        (3, "next.evaluated", 1, "workload.n > 1"),
        (3, "next.evaluated", 2, "workload.n > 2"),
        (1, "next.evaluated", 0, "workload.n > 1"),
    ],
)
def test_the_place_of_a_decision_that_the_log_lacks(n: int, name: str, after: int, word: str) -> None:
    drive = Drive(FAN, control=Hand).start({"n": n})
    at = first(drive, name) + after
    found = difference(drive, drive.events[:at])
    assert found is not None
    assert found[:3] == (at + 1, None, drive.events[at])
    assert found.place.startswith(place_of(word))


@pytest.mark.parametrize(("n", "word"), [(1, "workload.n > 1"), (2, "workload.n > 1"), (3, "workload.n > 2")])
def test_the_place_of_a_token_that_nothing_decided(n: int, word: str) -> None:
    drive = Drive(FAN, control=Hand).start({"n": n})
    added = Event("token.enqueued", {"token": 9, "step": "a", "args": {}}, 1)
    found = difference(drive, [*drive.events, added])
    assert found is not None
    assert found[:3] == (len(drive.events) + 1, added, None)
    assert found.place.startswith(place_of(word))


@pytest.mark.parametrize(
    ("edited", "name", "word"),
    [
        (FAN.replace("n > 2", "n > 5"), "next.evaluated", "workload.n > 5"),
        (FAN.replace("args: { n: 1 }", "args: { n: 9 }"), "token.enqueued", "n: 9"),
        (FAN.replace("(1, 2)", "(1, 3)"), "token.enqueued", "(1, 3)"),
    ],
)
def test_the_place_of_an_edit(edited: str, name: str, word: str) -> None:
    found = replay(loaded(edited), log_of(fan().events), Offload())
    assert found is not None
    assert found.found is not None
    assert found.found.name == name
    assert found.place.startswith(place_of(word, edited))


def test_the_place_of_an_edited_collection_is_that_of_its_level() -> None:
    nested = """
- step: start
  loop:
    in: [[1], [2]]
    iterator: i
    loop:
      in: "{{ iter.i }}"
      iterator: j
  tool: { kind: noop }
"""
    events = Drive(nested, control=Hand).run().events
    for old, new in (("[[1], [2]]", "[[1], [3]]"), ('"{{ iter.i }}"', '"{{ iter.i + [3] }}"')):
        edited = nested.replace(old, new)
        found = replay(loaded(edited), log_of(events), Offload())
        assert found is not None
        assert found.place.startswith(place_of(new, edited))


# ---- what never happens by itself


@pytest.mark.parametrize(
    "added",
    [
        Event("step.scheduled", {"lease": 2}, 9),
        Event("step.scheduled", {"token": 1, "step": "a"}, 2),
        Event("step.started", {}, 9),
        Event("task.done", {}, 9, task=1),
    ],
    ids=lambda event: event.name,
)
def test_an_event_that_nothing_leads_to_is_found(added: Event) -> None:
    drive = Drive(FAN, control=Hand).start({"n": 3})
    found = difference(drive, [*drive.events, added])
    assert found is not None
    assert found[:3] == (len(drive.events) + 1, added, None)


# ---- decisions that were cut (S62)

MANY = (
    """
- step: start
  next: { spec: { mode: inclusive }, arcs: [STEPS { step: loop }] }
- step: loop
  loop: { in: [1, 2], iterator: i, spec: { mode: parallel } }
  tool: { kind: noop }
""".replace("STEPS", " ".join(f"{{ step: s{n} }}," for n in range(MOVES_UNCUT)))
    + "".join(f"- {{ step: s{n}, tool: {{ kind: noop }} }}\n" for n in range(MOVES_UNCUT))
)


LOOP_RUN = MOVES_UNCUT + 2
"""Number of the run of the loop: after the first step and all others."""


def resumed(*after: Input) -> tuple[Drive, int]:
    """Return an execution that is resumed after as many runs as moves are uncut, and a loop, have ended.

    Its decision is cut after the moves of these runs, where other inputs come first; also return how long the log is.
    """
    drive = Drive(MANY, control=Hand).start()
    drive.take(drive.control.pause())
    for command in drive.ready:
        if command.iteration != "1":
            play = bad() if command.iteration else ok()
            drive.take(drive.control.report(*command[:3], play(drive.control.work(command))))
    first, *rest = (
        decide(drive.net, drive.state, given, 0.0, Offload(), lambda _made: True) for given in (Resume(), *after)
    )
    assert first.rest == (Continue(),)
    cut = [*drive.events, *first.events]
    drive.events = [*cut, *(event for one in rest for event in one.events)]
    return drive, len(cut)


LAST = [Event("task.started", {}, task=1, label="task_1", attempt=1)]


@pytest.mark.parametrize(
    "after",
    [
        [Continue()],
        [Cancel()],
        [Pause()],
        [WorkerReport(LOOP_RUN, "1", 1, LAST)],
        [WorkerReport(LOOP_RUN, "1", 1, [Event("loop.iteration.started", {})]), WorkerReport(LOOP_RUN, "1", 1, LAST)],
    ],
    ids=str,
)
def test_a_cut_decision_is_cut_again_where_an_input_came_between(after: list[Input]) -> None:
    drive, cut = resumed(*after)
    assert cut < len(drive.events)
    assert difference(drive, drive.events) is None


def test_a_log_that_ends_where_a_decision_was_cut_lacks_the_next_event() -> None:
    drive, cut = resumed(Continue())
    found = difference(drive, drive.events[:cut])
    assert found is not None
    assert found[:3] == (cut + 1, None, drive.events[cut])
    assert found.found is not None
    assert (found.found.name, "cancelled" in found.found.data) == ("loop.iteration.failed", True)
