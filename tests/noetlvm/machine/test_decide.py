"""Decisions: pure, without memory, one input at a time; inputs, effects and work are plain data."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

import noetlvm.machine
from noetlc.rules.catalogue import whole_playbook
from noetlvm.data.encoding import decode, encode
from noetlvm.data.event import Event, Recorded
from noetlvm.limits import Limits
from noetlvm.machine import messages
from noetlvm.machine.decide import decide, work_for
from noetlvm.machine.fold import apply
from noetlvm.machine.frame import frame_for
from noetlvm.machine.loaded import LoadedPlaybook
from noetlvm.machine.messages import Request, Work, from_data, to_data
from noetlvm.machine.payload import Offload
from noetlvm.machine.state import Child, FrameState, State, Token
from noetlvm.record import changed
from noetlvm.replay.exact import replay_exactly
from noetlvm.testing import run_playbook
from noetlvm.tools.call import ok as tool_ok
from tests.noetlvm.machine.control.drive import Drive, Hand, loaded, ok

REQUEST = Request("x", "b", {"a": 1}, "p", 2, "t", {"c": 3})
EVENTS = [Event("task.done", {"outcome": {"status": "ok"}}, 1, "0", 1, "a", 1), Event("step.done", {"result": 1})]
FRAME = FrameState.from_data([3, "prev", {"page": 2}, [1], 2, "fetch", 1, 5.0, False, {}])
MESSAGES: list[Any] = [
    messages.Start(REQUEST),
    messages.Refuse(REQUEST, {"kind": "keychain"}),
    messages.Retry("y", "b", "x", [Token("start", {"a": 1}, {"name": "step.done"}, False)], [0, 1, 0]),
    messages.WorkerReport(1, "0", 2, EVENTS),
    messages.ChildFinished(1, "", "x/1#1.1", {"status": "ok"}),
    messages.LeaseLost(1, "2.1", 3),
    messages.Released(1, "", 1),
    messages.TimerDue(),
    messages.Pause(),
    messages.Resume(),
    messages.Cancel(),
    messages.Continue(),
    messages.OpenWork(1, "0", "", 1, "start", "default", 7.5),
    messages.CloseWork(1, "0", 1),
    messages.StopWork(1, "0", 1),
    messages.StartChild(1, "", Child("k", "p", None, {"n": 1}, None, "call")),
    messages.CancelChild("k"),
    messages.WakeAt(12.5),
    messages.Work("x", "b", "p", "s", 1, "0", 1, {"a": 1}, {}, {"t": 2}, {}, {"n": 1}, FRAME, None, "x", ("token",)),
]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_every_message_comes_back_from_its_encoding(message: Any) -> None:
    back = from_data(decode(encode(to_data(message))))
    assert type(back) is type(message)
    assert to_data(back) == to_data(message)


def test_the_messages_above_are_all_there_are() -> None:
    assert {type(message).__name__ for message in MESSAGES} == set(messages._KINDS)


def test_data_that_is_no_message_is_refused() -> None:
    with pytest.raises(ValueError, match="`Explode` with 0 fields is not a message"):
        from_data(["Explode"])


WRITES = """
- step: start
  loop:
    in: "{{ range(workload.n) }}"
    iterator: i
    spec: { mode: parallel, max_in_flight: 4, policy: { reducers: { seen: append } } }
  tool:
    - write:
        kind: http
        url: https://example.org
        spec: { policy: { rules: [{ else: { then: { do: continue, set_ctx: { seen: "{{ outcome.result }}" } } } }] } }
"""


def test_a_restart_in_a_loop_of_large_writes_is_no_difference_to_its_log() -> None:
    net = loaded(WRITES)

    def play(work: Work) -> list[Event]:
        frame = frame_for(net, work, {}, Offload())
        frame.advance()
        frame.events.append(frame.started(ts=0.0))
        frame.complete(tool_ok("x" * 30_000))
        frame.advance()
        return frame.take_events()

    drive = Drive(WRITES, play, control=Hand).start({"n": 80})
    for _ in range(20):
        drive.perform(drive.ready.pop(0))
    again = drive.restart()
    while again.ready:
        again.perform(again.ready.pop(0))
    log = [Recorded(seq, "id", 0.0, event) for seq, event in enumerate([*drive.events, *again.events], 1)]
    assert any("stored" in one.event.data for one in log)
    fetch = Offload(fetch=lambda reference: drive.blobs[reference.key])
    assert replay_exactly(drive.net, log, fetch) is None


BESIDE = whole_playbook("""
- step: start
  next: { spec: { mode: inclusive }, arcs: [{ step: a }, { step: b }] }
- step: a
  tool:
    - slow: { kind: http, url: https://example.org }
    - see:
        kind: http
        url: https://example.org
        params: { seen: "{{ b | default('nothing') }}", ctx: "{{ ctx.b | default('nothing') }}" }
- step: b
  tool:
    - quick:
        kind: http
        url: https://example.org
        spec: { policy: { rules: [{ else: { then: { do: continue, set_ctx: { b: 1 } } } }] } }
""")


@pytest.mark.parametrize(("slow", "quick"), [(1, 5), (5, 1)])
def test_a_running_step_sees_what_was_there_when_it_was_scheduled(slow: int, quick: int) -> None:
    """S57: which tool is slower does not matter."""
    script = {"slow": {"answer": "ok", "takes": slow}, "quick": {"answer": "ok 2", "takes": quick}, "see": "echo"}
    run = run_playbook(BESIDE, script)
    (call,) = [call for call in run.calls if call.task == "see"]
    assert call.inputs["params"] == {"seen": "nothing", "ctx": "nothing"}


def test_a_crash_of_the_worker_changes_nothing_that_a_step_sees() -> None:
    script = {"slow": ["lost ok", {"answer": "ok", "takes": 5}], "quick": "ok 2", "see": "echo"}
    (call,) = [call for call in run_playbook(BESIDE, script).calls if call.task == "see"]
    assert call.inputs["params"] == {"seen": "nothing", "ctx": "nothing"}


# ---- fuel (S62)

CYCLE = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: cycle, path: tests/cycle }
workflow:
  - step: a
    next:
      arcs:
        - step: b
          when: "{{ args.n | default(0) < 100000 }}"
          args: { n: "{{ args.n | default(0) + 1 }}" }
  - step: b
    next: { arcs: [{ step: a }] }
"""


def cycle() -> LoadedPlaybook:
    return changed(loaded(CYCLE), limits=Limits(max_step_runs=600))


def test_a_routing_cycle_ends_for_want_of_fuel() -> None:
    drive = Drive(cycle(), control=Hand).start()
    assert drive.state.status == "failed"
    assert drive.state.failures[0]["error"]["kind"] == "fuel"
    assert drive.state.last_run == 600


def test_a_long_decision_is_cut_and_goes_on_with_the_same_log() -> None:
    whole = Drive(cycle(), control=Hand).start()
    cut = Drive(cycle(), control=Hand)
    cut.control._decide = lambda *given: decide(*given, lambda _events: True)
    cut.start()
    assert cut.events == whole.events


def test_there_is_no_work_for_a_thread_that_is_not_open() -> None:
    drive = Drive("- { step: start, tool: { kind: noop } }", control=Hand).start()
    assert work_for(drive.net, drive.state, 1, "", Offload()) is not None
    assert work_for(drive.net, drive.state, 1, "0", Offload()) is None
    assert work_for(drive.net, drive.state, 2, "", Offload()) is None


def test_a_state_that_was_read_from_a_log_offers_nothing_by_itself() -> None:
    drive = Drive("- { step: start, tool: { kind: noop } }", control=Hand).start()
    state = State()
    for event in drive.events:
        apply(state, event, 0.0)
    assert decide(drive.net, state, messages.Continue(), 0.0, Offload()).effects == []


def test_a_cancellation_is_taken_between_the_parts_of_a_cut_decision() -> None:
    drive = Drive(cycle(), control=Hand)
    offload = Offload()
    first = decide(drive.net, drive.state, messages.Start(Request("x", "b", {})), 0.0, offload)
    assert first.rest == (messages.Continue(),)
    second = decide(drive.net, drive.state, messages.Cancel(), 0.0, offload)
    assert drive.state.status == "cancelled"
    log = [Recorded(seq, "id", 0.0, event) for seq, event in enumerate([*first.events, *second.events], 1)]
    assert replay_exactly(drive.net, log, offload) is None


HANDLED = """
- step: start
  loop: { in: [1, 2], iterator: n, spec: { mode: parallel } }
  tool: { kind: noop }
  next: { arcs: [{ step: mend, when: "{{ event.name == 'step.failed' }}" }] }
- { step: mend, tool: { kind: noop } }
"""


def test_a_resumed_execution_stops_the_work_that_a_failure_during_the_pause_made_obsolete() -> None:
    drive = Drive(HANDLED, control=Hand).start()
    failed = Event("loop.iteration.failed", {"error": {"kind": "boom", "message": "no"}})
    given = [messages.Pause(), messages.WorkerReport(1, "0", 1, [failed]), messages.Resume()]
    resumed = [decide(drive.net, drive.state, one, 0.0, Offload()) for one in given][-1]
    assert [type(effect) for effect in resumed.effects] == [messages.StopWork, messages.OpenWork]
    assert resumed.effects[0] == messages.StopWork(1, "1", 1)


# ---- loops (S54, S58, S60, S65)


def loop(policy: str, failure: str = "fail_fast") -> str:
    return f"""
- step: start
  spec: {{ policy: {{ failure: {{ mode: {failure} }} }} }}
  loop: {{ in: [1, 2, 3], iterator: n, spec: {{ mode: parallel, policy: {{ reducers: {policy} }} }} }}
  tool: {{ kind: noop }}
"""


def writing(failing: str = "") -> Any:
    def play(work: Any) -> list[Event]:
        value = work.iter["n"]
        events = ok(value, ctx={"total": value, "seen": value, "most": value, "all": value})(work)
        if work.iteration == failing:
            error = {"kind": "boom", "retryable": False, "message": "no", "details": {}}
            events[-1] = Event("loop.iteration.failed", {"error": error})
        return events

    return play


REDUCERS = "{ total: sum, seen: append, most: max, all: count }"


def test_reducers_continue_from_what_ctx_held() -> None:
    drive = Drive(loop(REDUCERS), writing(), control=Hand)
    drive.start({}, ctx={"total": 100, "seen": [0], "most": 50, "all": 4})
    while drive.ready:
        drive.perform(drive.ready.pop())
    assert drive.state.ctx == {"total": 106, "seen": [0, 1, 2, 3], "most": 50, "all": 7}


def test_what_a_failed_iteration_wrote_does_not_count_and_its_error_is_listed() -> None:
    drive = Drive(loop(REDUCERS, "best_effort"), writing("1")).run(seed=4)
    assert drive.state.ctx == {"total": 4, "seen": [1, 3], "most": 3, "all": 2}
    done = drive.last("loop.done").data["loop"]
    assert [(failed["index"], failed["error"]["kind"]) for failed in done["failures"]] == [(1, "boom")]


GATE = """
- step: start
  spec:
    policy:
      admit: { rules: [{ when: "{{ false }}", then: { allow: true } }, { else: { then: { allow: false } } }] }
  tool: { kind: noop }
"""


def test_an_entry_token_that_is_never_let_in_fails_the_execution() -> None:
    drive = Drive(GATE).run()
    assert drive.state.status == "failed"
    assert drive.state.failures[0]["error"]["kind"] == "admission"


# ---- purity

IMPURE = frozenset({"asyncio", "os", "random", "socket", "subprocess", "time", "pathlib", "datetime", "io", "sqlite3"})


def test_the_machine_does_no_io_and_knows_no_clock_no_environment_and_no_chance() -> None:
    for path in sorted(Path(noetlvm.machine.__path__[0]).glob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            modules = (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else [node.module or ""]
                if isinstance(node, ast.ImportFrom)
                else []
            )
            assert not {module.partition(".")[0] for module in modules} & IMPURE, path.name
            assert not isinstance(node, (ast.AsyncFunctionDef, ast.Await, ast.AsyncFor, ast.AsyncWith)), path.name
            assert not (isinstance(node, ast.Name) and node.id in {"open", "print", "input"}), path.name
