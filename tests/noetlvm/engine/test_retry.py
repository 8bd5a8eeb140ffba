"""A failed execution is retried as a new one: what succeeded stays, what failed runs again, and the log shows both."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from noetlvm.data.event import Recorded
from noetlvm.machine.loaded import Bundle
from noetlvm.machine.messages import Retry, from_data, to_data
from noetlvm.machine.retry import RetryPlan
from noetlvm.rounds.active import Ending
from noetlvm.rounds.library import NotFoundError
from noetlvm.rounds.requests import RefusedRetryError
from noetlvm.store.sqlite import SqliteStore
from noetlvm.tools.call import Outcome, ToolCall, error, ok
from tests.noetlvm.engine.runs import Session, bundle_of, labels

HEAD = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: { name: test, path: tests/test }\n"

CHAIN = """
workload: { day: monday }
workflow:
  - step: start
    tool:
      - fetch:
          kind: shell
          command: [fetch]
          spec:
            policy:
              rules:
                - when: "{{ outcome.status == 'error' }}"
                  then: { do: fail }
                - else: { then: { do: continue, set_ctx: { rows: 3 } } }
    next: { arcs: [{ step: load, args: { n: 7 } }, { step: report }], spec: { mode: inclusive } }
  - step: report
    tool: [{ print: { kind: shell, command: [print] } }]
  - step: load
    tool:
      - prepare: { kind: shell, command: [prepare] }
      - load: { kind: shell, command: ["{{ args.n }}", "{{ ctx.rows }}", "{{ start }}", "{{ workload.day }}"] }
    next: { arcs: [{ step: check, when: "{{ event.name == 'step.done' }}" }] }
  - step: check
    tool: [{ check: { kind: shell, command: [check] } }]
"""


class Flaky:
    """Fails the tasks of some labels, until it is repaired."""

    def __init__(self, *broken: str) -> None:
        self.broken = set(broken)

    async def play(self, call: ToolCall) -> Outcome:
        if call.label in self.broken:
            return error("shell", f"{call.label} is broken")
        return ok(call.inputs["command"])


def retried(session: Session, execution_id: str, bundle: Bundle | None = None) -> Ending:
    """Retry an execution to its end, and look at its log as `Session.run` does."""

    async def retry() -> Ending:
        engine = session.engine()
        id = engine.retry(execution_id, bundle)
        await engine.run()
        return engine.ending(id)

    ending = asyncio.run(retry())
    session.check(ending)
    return ending


def log_of(session: Session, execution_id: str) -> list[Recorded]:
    return list(session.store.events(execution_id))


def failed(flaky: Flaky, text: str = CHAIN, session: Session | None = None) -> tuple[Session, Ending]:
    session = session or Session(flaky.play)
    ending = session.run(HEAD + text)
    assert ending.status == "failed"
    session.tools.calls.clear()
    flaky.broken.clear()
    return session, ending


def test_only_what_failed_runs_again_with_its_args_ctx_and_results() -> None:
    session, first = failed(Flaky("load"))
    again = retried(session, first.execution_id)
    assert (again.status, again.failures, again.ctx) == ("success", [], {"rows": 3})
    assert labels(session.tools.calls) == ["prepare", "load", "check"]
    assert session.tools.calls[1].inputs["command"] == [7, 3, ["fetch"], "monday"]


def test_the_new_log_begins_with_the_old_one_and_names_it() -> None:
    session, first = failed(Flaky("load"))
    again = retried(session, first.execution_id)
    old, new = log_of(session, first.execution_id), log_of(session, again.execution_id)
    assert new[: len(old)] == old
    after = new[len(old)].event
    assert (after.name, after.data["retried_from"]) == ("execution.retried", first.execution_id)
    assert [one.seq for one in new] == list(range(1, len(new) + 1))
    row = session.store.execution(again.execution_id)
    assert row is not None
    assert dict(row.counts) == {"ok": 4, "failed": 0, "rejected": 0, "failures": 0}
    assert session.store.execution(first.execution_id).status == "failed"  # type: ignore[union-attr]


def test_observers_get_the_new_events_only() -> None:
    session, first = failed(Flaky("load"))
    session.received.clear()
    retried(session, first.execution_id)
    assert session.received[0].event.name == "execution.retried"


def test_a_retry_that_fails_is_retried_again() -> None:
    flaky = Flaky("load")
    session, first = failed(flaky)
    flaky.broken.add("check")
    second = retried(session, first.execution_id)
    assert [failure["step"] for failure in second.failures] == ["check"]
    session.tools.calls.clear()
    flaky.broken.clear()
    third = retried(session, second.execution_id)
    assert (third.status, labels(session.tools.calls)) == ("success", ["check"])


def test_every_failed_branch_runs_again() -> None:
    session, first = failed(Flaky("load", "print"))
    assert retried(session, first.execution_id).status == "success"
    assert sorted(labels(session.tools.calls)) == ["check", "load", "prepare", "print"]


HANDLED = """
workflow:
  - step: start
    next: { arcs: [{ step: a }, { step: b }], spec: { mode: inclusive } }
  - step: a
    tool: [{ a: { kind: shell, command: [a] } }]
    next: { arcs: [{ step: rescue, when: "{{ event.name == 'step.failed' }}" }] }
  - step: rescue
    tool: [{ rescue: { kind: shell, command: [rescue] } }]
  - step: b
    tool: [{ b: { kind: shell, command: [b] } }]
"""


def test_a_failure_that_an_arc_handled_is_not_retried() -> None:
    session, first = failed(Flaky("a", "b"), HANDLED)
    again = retried(session, first.execution_id)
    assert (again.status, labels(session.tools.calls)) == ("success", ["b"])
    row = session.store.execution(again.execution_id)
    assert row is not None
    assert row.counts["failed"] == 1  # the one that was handled


GATED = """
workload: { big: "" }
workflow:
  - step: start
    tool: [{ big: { kind: shell, command: ["{{ workload.big }}"] } }]
    next: { arcs: [{ step: gated }, { step: opens }], spec: { mode: inclusive } }
  - step: gated
    spec:
      policy:
        admit:
          rules:
            - when: "{{ ctx.open is defined and event.result | length == 1 }}"
              then: { allow: true }
            - else: { then: { allow: false } }
    tool: [{ inside: { kind: shell, command: [inside] } }]
  - step: opens
    tool:
      - open:
          kind: shell
          command: [open]
          spec:
            policy:
              rules:
                - when: "{{ outcome.status == 'error' }}"
                  then: { do: fail }
                - else: { then: { do: continue, set_ctx: { open: true } } }
"""


@pytest.mark.parametrize("size", [1, 200_000])
def test_a_token_that_still_waited_comes_back_with_the_event_that_made_it(size: int) -> None:
    session, flaky = Session(), Flaky("open")
    session.tools.play = flaky.play
    first = session.run(HEAD + GATED, payload={"big": "x" * size})
    assert first.status == "failed"
    session.tools.calls.clear()
    flaky.broken.clear()
    assert retried(session, first.execution_id).status == "success"
    assert labels(session.tools.calls) == ["open", "inside"]


FINAL = """
executor: { spec: { final_step: last } }
workflow:
  - step: start
    tool: [{ work: { kind: shell, command: [work] } }]
  - step: last
    tool: [{ tidy: { kind: shell, command: ["{{ args.counts.unhandled }}"] } }]
"""


@pytest.mark.parametrize("broken", [("work",), ("work", "tidy"), ("tidy",)])
def test_the_final_step_runs_once_more_at_the_end_with_the_new_summary(broken: tuple[str, ...]) -> None:
    session, first = failed(Flaky(*broken), FINAL)
    assert retried(session, first.execution_id).status == "success"
    work = [("work", ["work"])] if "work" in broken else []
    assert [(call.label, call.inputs["command"]) for call in session.tools.calls] == [*work, ("tidy", [0])]


LOOP = """
workflow:
  - step: start
    loop: { in: "{{ [1, 2, 3] }}", iterator: n, spec: { mode: parallel } }
    tool: [{ item: { kind: shell, command: ["{{ iter.n }}"] } }]
"""


def test_a_loop_that_failed_runs_all_its_iterations_again() -> None:
    session, first = failed(Flaky("item"), LOOP)
    assert retried(session, first.execution_id).result == [[1], [2], [3]]


def test_an_edited_playbook_continues_if_it_decides_the_same_so_far() -> None:
    session, first = failed(Flaky("load"))
    edited = bundle_of(HEAD + CHAIN.replace("command: [check]", "command: [thoroughly]").replace("[prepare]", "[anew]"))
    again = retried(session, first.execution_id, edited)
    assert [call.inputs["command"] for call in session.tools.calls] == [
        ["anew"],
        [7, 3, ["fetch"], "monday"],
        ["thoroughly"],
    ]
    row = session.store.execution(again.execution_id)
    assert row is not None
    assert row.bundle == edited.id


def test_an_edit_that_changes_what_happened_is_refused_with_its_place() -> None:
    session, first = failed(Flaky("load"))
    edited = bundle_of(HEAD + CHAIN.replace("args: { n: 7 }", "args: { n: 8 }"))
    with pytest.raises(RefusedRetryError, match=r"decides event \d+ differently at playbook_0.yaml:\d+"):
        retried(session, first.execution_id, edited)


def test_only_a_failed_execution_is_retried() -> None:
    session = Session()
    ending = session.run(HEAD + CHAIN)
    with pytest.raises(RefusedRetryError, match="has succeeded; only a failed execution can be retried"):
        retried(session, ending.execution_id)
    with pytest.raises(NotFoundError):
        retried(session, "unknown")


def test_an_execution_that_never_began_is_to_be_started_again() -> None:
    declared = "keychain: [{ name: db, kind: postgres }]\nworkflow: [{ step: start, tool: { kind: noop } }]"
    session = Session()
    ending = session.run(HEAD + declared)
    assert ending.status == "failed"
    with pytest.raises(RefusedRetryError, match="start it again"):
        retried(session, ending.execution_id)


def test_a_retry_survives_in_a_database(tmp_path: Path) -> None:
    flaky = Flaky("load")
    store = SqliteStore(tmp_path / "executions.db")
    session, first = failed(flaky, session=Session(flaky.play, store))
    again = retried(session, first.execution_id)
    assert again.status == "success"
    assert not list(store.damage())
    store.delete([first.execution_id])
    session.check(again)
    store.close()


def test_a_retry_as_an_input_is_plain_data() -> None:
    session, first = failed(Flaky("load"))
    retry = RetryPlan(log_of(session, first.execution_id)).retry("new", "bundle")
    read: Retry = from_data(to_data(retry))
    assert read == retry
    assert read.tokens[0].step == "load"
