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
from noetlvm.machine.decide import decide, invalid_playbook, refused, requested, work_for
from noetlvm.machine.fold import apply
from noetlvm.machine.frame import frame_for
from noetlvm.machine.loaded import LoadedPlaybook
from noetlvm.machine.messages import Request, Work, from_data, to_data
from noetlvm.machine.payload import Offload
from noetlvm.machine.settling import MOVES_UNCUT
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
    messages.StartChild(1, "", Child("k", "p", None, {"n": 1}, None, "last")),
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
        frame = frame_for(net, work, {}, Offload(), lambda: 0.0)
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


def test_a_parallel_loop_may_run_one_iteration_at_a_time() -> None:
    narrow = loop(REDUCERS).replace("mode: parallel", "mode: parallel, max_in_flight: '{{ workload.n }}'")
    assert len(Drive(narrow, control=Hand).start({"n": 1}).ready) == 1
    assert Drive(narrow, control=Hand).start({"n": 0}).state.failures[0]["error"]["kind"] == "template"


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


# ---- requests


def test_a_request_is_recorded_with_what_it_has() -> None:
    least = {"execution": "x", "bundle": "b", "path": "p", "payload": {"a": 1}}
    assert requested(Request("x", "b", {"a": 1}), "p", Offload()).data == least
    more: dict[str, Any] = {"ctx": {"c": 3}, "returns": "end", "parent": "q", "depth": 2, "trace": "t"}
    assert requested(Request("x", "b", {"a": 1}, **more), "p", Offload()).data == least | more


def test_a_request_that_is_refused_fails_once_and_shows_no_payload() -> None:
    _, *rest = events = [*refused(REQUEST, "p", {"kind": "keychain"})]
    assert events[0].data["payload"] == {}
    assert [event.data for event in rest] == [{"error": {"kind": "keychain"}}, {"status": "failed", "failures": 1}]


def finding(severity: str, line: int) -> dict[str, Any]:
    return {"code": "P1", "severity": severity, "path": "p.yaml", "line": line, "column": 2, "message": "no", "more": 1}


@pytest.mark.parametrize(
    ("given", "errors", "message"),
    [
        ("", [], ""),
        ("", [1], "p.yaml:1:2: P1: no"),
        ("", [1, 2], "p.yaml:1:2: P1: no (2 errors)"),
        ("said", [], "said"),
        ("said", [1, 2], "said"),
    ],
)
def test_a_playbook_that_does_not_compile_is_refused_with_its_errors(
    given: str, errors: list[int], message: str
) -> None:
    found = [finding("warning", 9), *(finding("error", line) for line in errors)]
    made = invalid_playbook(given, found)
    assert (made["message"], made["details"]["count"]) == (message, len(errors))
    assert [one["line"] for one in made["details"]["findings"]] == errors


# ---- leases and reports


def test_a_lost_lease_is_followed_by_the_next_of_its_own_unit() -> None:
    distributed = "- { step: start, tool: { kind: noop }, loop: { in: [1, 2], iterator: n, spec: { mode: parallel } } }"
    drive = Drive(distributed, control=Hand).start()
    leases = [drive.control.expire(1, "0", lease)[0].data["lease"] for lease in (1, 2, 3)]
    assert leases == [2, 3, 4]
    assert [(one.iteration, one.data) for one in drive.control.expire(1, "1", 1)] == [("1", {"lease": 2})]


GATES = """
- step: start
  next: { spec: { mode: inclusive }, arcs: [STEPS { step: opens }] }
- { step: opens, tool: { kind: noop } }
"""
GATED = """
- step: gated_NUMBER
  spec: { policy: { admit: { rules: [{ when: "{{ ctx.go is defined }}", then: { allow: true } }] } } }
  tool: { kind: noop }
"""


def test_the_rest_of_a_report_whose_decision_is_cut_follows_later() -> None:
    numbers = range(MOVES_UNCUT)
    text = GATES.replace("STEPS", " ".join(f"{{ step: gated_{number} }}," for number in numbers))
    drive = Drive(text + "".join(GATED.replace("NUMBER", str(number)) for number in numbers), control=Hand).start()
    (command,) = drive.ready
    events = ok(1, ctx={"go": 1})(drive.control.work(command))
    given = messages.WorkerReport(*command[:3], events)
    made = decide(drive.net, drive.state, given, 0.0, Offload(), lambda _made: True)
    assert made.rest == (messages.Continue(), given._replace(events=events[1:]))
    assert made.events[-1].name == "step.scheduled"


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
