"""Sub-playbooks: started once by the engine, awaited without a slot, cancelled with their parent (S43)."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Sequence

import pytest

from noetlvm.data.event import Recorded
from noetlvm.limits import CHILD_DEPTH_MAX, INLINE_BYTES
from noetlvm.rounds.rounds import Round, Rounds
from noetlvm.store.interface import Execution
from noetlvm.tools.call import Outcome, ToolCall, error, ok
from tests.noetlvm.engine.runs import Session, bundle_of, labels
from tests.waiting import forever, turns

PARENT = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: parent, path: parent }
workflow:
  - step: start
    tool:
      - before: { kind: shell, command: [before] }
      - call: { kind: playbook, path: child, workload: { who: "{{ _prev }}" } }
      - after: { kind: shell, command: ["{{ _prev.status }}", "{{ _prev.result }}"] }
"""

CHILD = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: child, path: child, version: 2 }
workload: { who: nobody }
workflow:
  - step: start
    tool:
      - greet: { kind: shell, command: ["{{ workload.who }}"] }
"""


async def echo(call: ToolCall) -> Outcome:
    await turns()
    return ok("-".join(call.inputs["command"]))


def test_a_child_is_given_a_workload_and_gives_back_its_result() -> None:
    session = Session(echo)
    ending = session.run(PARENT, CHILD)
    assert ending.result == "success-before"
    (child,) = session.store.executions(parent=ending.execution_id)
    assert (child.status, child.path, child.parent) == ("success", "child", ending.execution_id)


def test_a_task_takes_as_long_as_its_child_by_the_time_of_the_log() -> None:
    session = Session()

    async def play(call: ToolCall) -> Outcome:
        await session.clock.sleep(2.5 if call.label == "greet" else 0)
        return ok("x")

    session.tools.play = play
    ending = session.run(PARENT, CHILD)
    log = [recorded for recorded in session.store.events(ending.execution_id) if recorded.event.label == "call"]
    started, finished, done = log
    assert [one.event.name for one in log] == ["task.started", "child.finished", "task.done"]
    assert finished.timestamp - started.timestamp == 2.5
    assert done.event.data["outcome"]["meta"]["duration_ms"] == 2500


def test_a_waiting_parent_holds_no_slot() -> None:
    assert Session(echo).run(PARENT, CHILD, max_parallel=1).status == "success"


def test_a_failed_child_is_an_error_of_the_task() -> None:
    async def play(call: ToolCall) -> Outcome:
        return error("boom", "it broke") if call.label == "greet" else ok("x")

    ending = Session(play).run(PARENT, CHILD)
    assert ending.status == "failed"
    assert ending.failures[0]["error"]["kind"] == "playbook"
    assert "it broke" in ending.failures[0]["error"]["message"]


def test_a_playbook_that_is_not_there_is_an_error_that_names_those_that_are() -> None:
    ending = Session(echo).run(PARENT)
    message = ending.failures[0]["error"]["message"]
    assert message.startswith("no playbook `child` is registered, or in the bundle, which has: parent; name its file")


@pytest.mark.parametrize(
    ("version", "result"), [(None, "second"), (1, "first"), ("2", "second"), (3, None), ("x", None), (10**30, None)]
)
def test_a_playbook_that_is_not_in_the_bundle_comes_from_the_catalogue(version: object, result: str | None) -> None:
    session = Session(echo)
    for number, word in enumerate(("first", "second")):
        bundle = bundle_of(CHILD.replace('["{{ workload.who }}"]', f"[{word}]"))
        session.store.register("child", bundle.id, bundle.data, float(number))
    requested = PARENT if version is None else PARENT.replace("path: child,", f"path: child, version: {version},")
    ending = session.run(requested)
    assert ending.result == (result and f"success-{result}")
    if result is None:
        assert f"no playbook `child` of version {version} is registered" in ending.failures[0]["error"]["message"]


@pytest.mark.parametrize(("version", "status"), [("2", "success"), ("3", "failed")])
def test_another_version_than_requested_is_not_run(version: str, status: str) -> None:
    requested = PARENT.replace("path: child,", f'path: child, version: "{version}",')
    assert Session(echo).run(requested, CHILD).status == status


def test_a_large_workload_reaches_the_child_whole() -> None:
    large = "x" * (INLINE_BYTES + 1)

    async def play(call: ToolCall) -> Outcome:
        return ok(large if call.label == "before" else str(len(call.inputs["command"][-1])))

    ending = Session(play).run(PARENT, CHILD)
    assert ending.result == str(len(str(len(large))))


@pytest.mark.parametrize("at", [1, 2, 3])
def test_after_a_crash_the_same_child_goes_on(at: int) -> None:
    left = at

    async def play(call: ToolCall) -> Outcome:
        nonlocal left
        left -= 1
        if left == 0:
            raise ConnectionAbortedError
        return await echo(call)

    session = Session(play)
    with pytest.raises(ConnectionAbortedError):
        session.run(PARENT, CHILD)
    (parent,) = [row for row in session.store.unfinished() if not row.parent]
    ending = session.resume(parent.execution_id)
    assert ending.result == "success-before"
    assert len(session.store.executions(parent=parent.execution_id)) == 1
    whole = ["before", "greet", "after"]
    assert labels(session.tools.calls) == whole[:at] + whole[at - 1 :]


def test_children_stand_only_so_deep() -> None:
    itself = PARENT.replace("path: child", "path: parent")
    session = Session(echo)
    ending = session.run(itself)
    assert ending.status == "failed"
    assert len(session.store.executions()) == CHILD_DEPTH_MAX + 1


def test_cancelling_a_parent_cancels_its_child() -> None:
    session = Session()

    async def go() -> str:
        engine = session.engine()

        async def play(call: ToolCall) -> Outcome:
            if call.label == "greet":
                engine.control(parent, "cancel")
                await forever()
            return ok("x")

        session.tools.play = play
        parent = engine.start(bundle_of(PARENT, CHILD), {})
        await engine.run()
        return parent

    parent = asyncio.run(go())
    assert {row.status for row in session.store.executions()} == {"cancelled"}
    assert session.names(parent)[-1] == "playbook.processed"


def test_a_child_whose_cancellation_a_crash_prevented_is_cancelled_when_it_is_resumed() -> None:
    session = Session()

    async def go() -> None:
        engine = session.engine()

        async def play(call: ToolCall) -> Outcome:
            if call.label == "greet":
                engine.control(parent, "cancel")
                await forever()
            return ok("x")

        session.tools.play = play
        parent = engine.start(bundle_of(PARENT, CHILD), {})
        await engine.run()

    def crash(_row: Execution, recorded: Sequence[Recorded]) -> None:
        if any(one.event.name == "execution.cancelled" for one in recorded):
            raise ConnectionAbortedError("the power is gone")

    observe, session._receive = session._receive, crash  # type: ignore[method-assign]
    with pytest.raises(ConnectionAbortedError):
        asyncio.run(go())
    session._receive = observe  # type: ignore[method-assign]
    (child,) = session.store.unfinished()
    calls = len(session.tools.calls)
    assert session.resume(child.execution_id).status == "cancelled"
    assert len(session.tools.calls) == calls


def test_a_child_that_takes_too_long_is_given_up() -> None:
    requested = PARENT.replace("path: child,", "path: child, spec: { timeout: 50 },")
    slow = CHILD.replace(
        'command: ["{{ workload.who }}"]',
        """command: [slow], spec: { policy: { rules: [
            { when: "{{ outcome.status == 'error' }}", then: { do: retry, attempts: 9, delay: 1000 } },
            { else: { then: { do: continue } } }] } }""",
    )

    async def play(call: ToolCall) -> Outcome:
        return error("net", "no") if call.label == "greet" else ok("x")

    session = Session(play)
    before = session.clock.now()
    ending = session.run(requested, slow)
    assert ending.failures[0]["error"]["kind"] == "timeout"
    assert session.clock.now() - before == 50
    (child,) = session.store.executions(parent=ending.execution_id)
    assert child.status == "cancelled"


ITSELF = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: itself, path: itself }
executor: { spec: { limits: { max_children: 7 } } }
workflow:
  - step: start
    loop: { in: [1, 2, 3], iterator: n, spec: { mode: parallel } }
    tool:
      - call: { kind: playbook, path: itself }
"""


def fuel_errors(session: Session) -> int:
    kinds = (
        (recorded.event.data.get("outcome") or {}).get("error") or {}
        for row in session.store.executions()
        for recorded in session.store.events(row.execution_id)
        if recorded.event.name == "child.finished"
    )
    return sum(error.get("kind") == "fuel" for error in kinds)


def test_a_playbook_that_runs_itself_gets_as_many_children_as_one_request_may_have() -> None:
    session = Session()
    assert session.run(ITSELF).status == "failed"
    assert len(session.store.executions()) == 1 + 7
    assert fuel_errors(session) > 0


def test_children_that_were_started_before_a_crash_count() -> None:
    """Each child starts the next one; the process dies after every few events."""

    class Crash(BaseException):
        """The process dies."""

    chain = ITSELF.replace("[1, 2, 3]", "[1]")
    session = Session()
    received = 0

    def die(_row: Execution, recorded: Sequence[Recorded]) -> None:
        nonlocal received
        received += len(recorded)
        if received > 25:
            received = 0
            raise Crash

    async def go(execution_id: str | None) -> str | None:
        engine = session.engine(observers=(die,))
        root = engine.start(bundle_of(chain), {}) if execution_id is None else engine.resume(execution_id)
        try:
            await engine.run()
        except Crash:
            return root
        return None

    root: str | None = None
    crashes = 0
    while (left := asyncio.run(go(root))) is not None:
        root, crashes = left, crashes + 1
    assert crashes > 2
    assert len(session.store.executions()) == 1 + 7
    assert {row.status for row in session.store.executions()} == {"failed"}


def test_children_share_the_trace_of_the_execution_at_their_root() -> None:
    session = Session()
    root = session.run(ITSELF).execution_id
    assert {row.trace_id for row in session.store.executions()} == {root}
    assert session.store.descendants(root) == 7


def test_many_children_are_started_over_many_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """A turn decides for some executions, however many wait: signals and other executions come in between."""
    monkeypatch.setattr("noetlvm.rounds.intake.REQUESTS_AT_ONCE", 3)
    decided: list[int] = []
    next_round = Rounds.next

    def count(rounds: Rounds, now: float, is_spent: Callable[[int], bool]) -> Round | None:
        found = next_round(rounds, now, is_spent)
        decided.append(len(found.executions) if found else 0)
        return found

    monkeypatch.setattr(Rounds, "next", count)
    parent = """
- step: start
  loop: { in: "{{ range(20) | list }}", iterator: i, spec: { mode: parallel } }
  tool: { kind: playbook, path: child }
"""
    ending = Session().run(parent, CHILD, monotonic=count_from(0.0))
    assert ending.status == "success"
    assert max(decided) == 1


def count_from(start: float) -> Callable[[], float]:
    """Return a clock by which every turn is spent."""
    seconds = itertools.count(start)
    return lambda: next(seconds)
