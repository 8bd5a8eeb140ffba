"""An edited playbook is decided again on the outcomes of the log: rules, writes, attempts, labels, and what follows."""

from __future__ import annotations

from typing import Any

import pytest

from noetlvm.bridge import compile_texts
from noetlvm.data.event import Recorded
from noetlvm.machine.loaded import load_program
from noetlvm.machine.payload import Offload
from noetlvm.replay.course import Course
from noetlvm.replay.exact import Divergence, replay_exactly
from noetlvm.testing.__main__ import run_given

HEAD = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: { name: test, path: tests/test }\n"

FETCH = """
workflow:
  - step: start
    tool:
      - get:
          kind: http
          url: https://example.org
          spec:
            policy:
              rules:
                - when: "{{ outcome.status == 'error' }}"
                  then: { do: retry, attempts: 3, delay: 2 }
                - else:
                    then: { do: continue, set_ctx: { n: "{{ outcome.result.data.n }}" } }
      - double:
          kind: python
          args: { n: "{{ get.data.n }}" }
          code: result = n * 2
    next:
      arcs:
        - { step: good, when: "{{ event.name == 'step.done' }}" }
        - { step: bad, when: "{{ event.name == 'step.failed' }}" }
  - step: good
    tool: { kind: noop }
  - step: bad
    tool: { kind: noop }
"""
ANSWERS = {"tools": {"get": ["http 503", 'http 200 {"n": 21}'], "double": "ok 42"}}


def edited(
    steps: str, old: str, new: str, given: dict[str, Any] = ANSWERS, others: tuple[str, ...] = ()
) -> Divergence | None:
    """Run steps, and decide their log again with an edit."""
    assert steps.count(old) == 1, old
    texts = [HEAD + steps, *others]
    ran = run_given(texts, given)
    changed = load_program(compile_texts([HEAD + steps.replace(old, new), *others]))
    log = [
        Recorded(seq, str(seq), time, event)
        for seq, (event, time) in enumerate(zip(ran.events, ran.times, strict=True), 1)
    ]
    offload = Offload(fetch=lambda reference: ran.stored[reference.key])
    return replay_exactly(changed.main, log, offload, recorded_with=load_program(compile_texts(texts)).main)


def course_of(found: Divergence | None) -> Course:
    assert found is not None
    assert found.course is not None
    return found.course


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("attempts: 3", "attempts: 4"),
        ("outcome.status == 'error'", "outcome.http.status == 503"),
        ("\nworkflow:", "\n# a comment\n\nworkflow:"),
        ("attempts: 3, delay: 2", "attempts: 3, delay: '{{ 1 + 1 }}'"),
        ("- double:", "- set: { kind: noop }\n        if: false\n      - double:"),
    ][:4],
)
def test_an_edit_that_decides_the_same_is_no_difference(old: str, new: str) -> None:
    assert edited(FETCH, old, new) is None


def test_an_edited_write_to_ctx_is_found_and_the_execution_ends_with_it() -> None:
    found = edited(FETCH, 'n: "{{ outcome.result.data.n }}"', 'n: "{{ outcome.result.data.n + 1 }}"')
    assert found is not None
    assert found.difference.expected is not None
    assert (found.difference.expected.name, found.difference.expected.data["patch"]) == ("ctx.patched", {"n": 21})
    assert found.difference.found is not None
    assert found.difference.found.data["patch"] == {"n": 22}
    course = course_of(found)
    assert (course.status, course.ctx, course.missing) == ("success", {"n": 22}, None)


def test_fewer_attempts_end_the_task_where_the_log_tries_again() -> None:
    found = edited(FETCH, "attempts: 3", "attempts: 1")
    assert found is not None
    assert found.difference.expected is not None
    assert found.difference.found is not None
    assert (found.difference.expected.data["do"], found.difference.found.data["do"]) == ("retry", "fail")
    course = course_of(found)
    assert (course.status, course.steps, course.missing) == ("success", ["bad"], None)


def test_another_delay_is_found() -> None:
    found = edited(FETCH, "delay: 2", "delay: 3")
    assert found is not None
    assert found.difference.found is not None
    assert found.difference.found.data["wait_s"] == 3
    assert course_of(found).status == "success"


def test_a_rule_that_stops_earlier_skips_tasks_of_the_log() -> None:
    found = edited(FETCH, "do: continue, set_ctx", "do: break, set_ctx")
    assert found is not None
    course = course_of(found)
    assert (course.status, course.steps) == ("success", ["good"])


def test_a_rule_that_cannot_be_evaluated_fails_the_task() -> None:
    found = edited(FETCH, "outcome.status == 'error'", "outcome.nowhere.at_all")
    assert found is not None
    assert found.difference.found is not None
    assert found.difference.found.data["outcome"]["error"]["kind"] == "template"
    assert course_of(found).steps == ["bad"]


def test_a_rule_that_is_mended_gets_the_outcome_that_its_tool_returned() -> None:
    broken = FETCH.replace("outcome.status == 'error'", "1 / (outcome.http.status - 200)")
    given = {"tools": {"get": 'http 200 {"n": 21}'}}
    found = edited(broken, "1 / (outcome.http.status - 200)", "outcome.status == 'error'", given)
    assert found is not None
    assert found.difference.found is not None
    assert (found.difference.found.data["do"], found.difference.found.data["outcome"]["status"]) == ("continue", "ok")
    missing = course_of(found).missing
    assert missing is not None
    assert (missing.task, missing.kind, missing.reason) == ("double", "python", "the log has no such call")


def test_a_result_that_was_skipped_is_still_known() -> None:
    skipped = FETCH.replace("do: continue, set_ctx", "do: skip, set_ctx").replace("get.data.n", "ctx.n")
    given = {"tools": {"get": 'http 200 {"n": 21}', "double": "ok 42"}}
    found = edited(skipped, "do: skip, set_ctx", "do: break, set_ctx", given)
    assert found is not None
    assert found.difference.found is not None
    assert found.difference.found.data["outcome"]["result"]["data"] == {"n": 21}


def test_more_attempts_stop_where_the_log_has_no_further_outcome() -> None:
    given = {"tools": {"get": "http 503"}}
    found = edited(FETCH, "attempts: 3", "attempts: 4", given)
    missing = course_of(found).missing
    assert missing is not None
    assert (missing.step, missing.task, missing.attempt) == ("start", "get", 4)


def test_a_new_task_stops_where_it_is_called() -> None:
    found = edited(FETCH, "      - double:", "      - more: { kind: shell, command: [date] }\n      - double:")
    assert found is not None
    assert found.difference.found is not None
    assert (found.difference.found.name, found.difference.found.label) == ("task.started", "more")
    missing = course_of(found).missing
    assert missing is not None
    assert (missing.task, missing.kind) == ("more", "shell")


def test_a_new_task_that_does_nothing_needs_no_outcome() -> None:
    found = edited(FETCH, "      - double:", "      - more: { kind: noop }\n      - double:")
    course = course_of(found)
    assert (course.status, course.missing) == ("success", None)


def test_a_task_of_another_kind_has_no_outcome() -> None:
    old = "kind: http\n          url: https://example.org"
    found = edited(FETCH, old, "kind: shell\n          command: [date]")
    assert found is not None
    assert found.missing is not None
    assert found.missing.reason == "the log has a call of `http` there"


def test_a_renamed_label_is_found() -> None:
    found = edited(FETCH, "- double:", "- twice:")
    assert found is not None
    assert found.difference.found is not None
    assert (found.difference.found.name, found.difference.found.label) == ("task.started", "twice")


def test_a_read_of_a_label_that_breaks_is_found() -> None:
    found = edited(FETCH, 'get.data.n }}" }', 'get.data.m }}" }')
    assert found is not None
    assert found.difference.found is not None
    assert found.difference.found.name == "task.done"
    assert found.difference.found.data["outcome"]["error"]["kind"] == "template"


def test_a_new_arc_leads_to_tools_that_the_log_does_not_know() -> None:
    requesting = FETCH.replace(
        "  - step: bad\n    tool: { kind: noop }", "  - step: bad\n    tool: { kind: shell, command: [date] }"
    )
    found = edited(requesting, "step: good, when: \"{{ event.name == 'step.done' }}\"", 'step: bad, when: "{{ true }}"')
    assert found is not None
    assert found.difference.found is not None
    assert found.difference.found.name in ("next.evaluated", "token.enqueued")
    missing = course_of(found).missing
    assert missing is not None
    assert (missing.step, missing.kind) == ("bad", "shell")


LOOP = """
workflow:
  - step: start
    loop:
      in: "{{ range(4) }}"
      iterator: i
      spec: { mode: parallel, max_in_flight: 2, policy: { reducers: { n: sum } } }
    tool:
      - work:
          kind: http
          url: "https://example.org/{{ iter.i }}"
          spec:
            policy:
              rules:
                - when: "{{ outcome.status == 'error' }}"
                  then: { do: fail }
                - else: { then: { do: continue, set_ctx: { n: 1 } } }
"""
WORK = {"tools": {"work": "http 200", "work[2]": "http 500"}}


def test_an_edited_rule_of_a_loop_is_decided_for_every_iteration() -> None:
    found = edited(LOOP, "then: { do: fail }", "then: { do: continue, set_ctx: { n: 10 } }", WORK)
    assert found is not None
    assert found.difference.found is not None
    assert found.difference.found.iteration == "2"
    course = course_of(found)
    assert (course.status, course.ctx) == ("success", {"n": 13})


def test_a_longer_loop_stops_at_the_first_new_iteration() -> None:
    missing = course_of(edited(LOOP, "range(4)", "range(5)", {"tools": {"work": "http 200"}})).missing
    assert missing is not None
    assert (missing.iteration, missing.task) == ("4", "work")


def test_a_shorter_loop_ends() -> None:
    course = course_of(edited(LOOP, "range(4)", "range(2)", WORK))
    assert (course.status, course.ctx) == ("success", {"n": 2})


CHILD = (
    "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: { name: child, path: tests/child }\nworkflow: [{ step: a }]\n"
)
PARENT = """
workflow:
  - step: start
    tool:
      - run: { kind: playbook, path: tests/child, workload: { a: 1 } }
    next: { arcs: [{ step: after, when: "{{ event.name == 'step.done' }}" }, { step: other }] }
  - step: after
    tool: { kind: noop }
  - step: other
    tool: { kind: noop }
"""


def test_a_child_answers_as_the_log_says() -> None:
    course = course_of(edited(PARENT, "arcs: [{ step: after", "arcs: [{ step: other", {}, (CHILD,)))
    assert (course.status, course.steps) == ("success", ["other"])


def test_a_child_with_another_workload_has_no_outcome() -> None:
    missing = course_of(edited(PARENT, "{ a: 1 }", "{ a: 2 }", {}, (CHILD,))).missing
    assert missing is not None
    assert (missing.kind, missing.reason) == ("playbook", "the log has the outcome of another child")


def test_an_edit_that_never_ends_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cycle that the linter cannot see, because the guard reads a result."""
    monkeypatch.setattr("noetlvm.replay.course.DECISIONS_MAX", 50)
    endless = '  - step: after\n    tool: { kind: noop }\n    next: { arcs: [{ step: after, when: "{{ start }}" }] }'
    course = course_of(edited(PARENT, "  - step: after\n    tool: { kind: noop }", endless, {}, (CHILD,)))
    assert course.status == "running"


SECRET = """
keychain: [{ name: token, kind: bearer_token }]
workflow:
  - step: start
    tool:
      - get:
          kind: http
          url: https://example.org
          headers: { x: "{{ keychain.token.token }}" }
          spec: { policy: { rules: [{ else: { then: { do: continue } } }] } }
    next: { arcs: [{ step: after }] }
  - step: after
    tool: { kind: noop }
"""


def test_a_call_that_needs_a_secret_counts_as_it_was_recorded() -> None:
    given = {"tools": {"get": "http 200"}, "keychain": {"token": {"token": "hunter2hunter2"}}}
    assert edited(SECRET, "https://example.org", "https://example.org/ ", given) is None
    found = edited(SECRET, "do: continue", "do: fail", given)
    assert found is not None
    assert found.difference.found is not None
    assert found.difference.found.data["do"] == "fail"


def test_data_with_keys_like_those_of_events_is_compared() -> None:
    writes = FETCH.replace("set_ctx: { n: ", "set_ctx: { at: 1, pc: 2, n: ")
    found = edited(writes, "at: 1", "at: 3")
    assert found is not None
    assert course_of(found).ctx == {"at": 3, "pc": 2, "n": 21}


def test_an_edit_names_its_task() -> None:
    found = edited(FETCH, "do: continue, set_ctx", "do: break, set_ctx")
    assert found is not None
    line = (HEAD + FETCH).splitlines().index("      - get:") + 1
    assert found.difference.place.startswith(f"playbook_1:{line}:")
