"""The eight acceptance tests of the brief §13, against real servers."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from noetlvm.bridge import CompilationError
from noetlvm.data.encoding import encode
from noetlvm.limits import INLINE_BYTES
from noetlvm.results.files import FileResults
from tests.whole.acceptance.witnesses import Api, Run

Execute = Callable[..., Run]
Sql = Callable[[str], list[Any]]

# ---- 1: policies are validated


def test_a_policy_that_is_no_object_never_runs(execute: Execute, api: Api) -> None:
    with pytest.raises(CompilationError):
        execute("""
- step: start
  tool:
    - fetch: { kind: http, url: "{{ workload.api }}/items", spec: { policy: [] } }
""")
    assert api.requested == []


def test_a_rule_without_do_never_runs(execute: Execute, api: Api) -> None:
    with pytest.raises(CompilationError):
        execute("""
- step: start
  tool:
    - fetch:
        kind: http
        url: "{{ workload.api }}/items"
        spec: { policy: { rules: [{ else: { then: { set_ctx: { a: 1 } } } }] } }
""")
    assert api.requested == []


# ---- 2: retries

RETRY = """
- step: start
  tool:
    - fetch:
        kind: http
        url: "{{ workload.api }}/items"
        spec:
          policy:
            rules:
              - when: "{{ outcome.status == 'error' and outcome.http.status in [500, 503] }}"
                then: { do: retry, attempts: 4, backoff: exponential, delay: 0.01 }
              - when: "{{ outcome.status == 'error' }}"
                then: { do: fail }
"""


def test_a_transient_error_is_retried_and_then_fails(execute: Execute, api: Api) -> None:
    api.answer = lambda path, params: (500, {"why": "busy"})
    run = execute(RETRY)
    assert run.status == "failed"
    assert api.counts() == {"/items": 4}
    assert run.ending.failures[0]["error"]["kind"] == "http"


def test_a_transient_error_that_passes_is_no_failure(execute: Execute, api: Api) -> None:
    statuses = iter([500, 503, 200])
    api.answer = lambda path, params: (next(statuses), {"n": 1})
    run = execute(RETRY)
    assert run.status == "success"
    assert run.ending.result["data"] == {"n": 1}
    assert api.counts() == {"/items": 3}


# ---- 3: jumps by status

BY_STATUS = """
- step: start
  tool:
    - fetch:
        kind: http
        url: "{{ workload.api }}/{{ workload.item }}"
        spec:
          policy:
            rules:
              - { when: "{{ outcome.http.status == 404 }}", then: { do: jump, to: store_404 } }
              - { when: "{{ outcome.http.status == 200 }}", then: { do: jump, to: store_200 } }
              - { else: { then: { do: fail } } }
    - store_200:
        kind: postgres
        auth: pg
        command: INSERT INTO found VALUES (%(item)s)
        params: { item: "{{ workload.item }}" }
        spec:
          policy:
            rules:
              - { when: "{{ outcome.status == 'error' }}", then: { do: fail } }
              - { else: { then: { do: break } } }
    - store_404:
        kind: postgres
        auth: pg
        command: INSERT INTO missing VALUES (%(item)s)
        params: { item: "{{ workload.item }}" }
"""


@pytest.mark.parametrize(("status", "found", "missing"), [(200, [("x",)], []), (404, [], [("x",)])])
def test_storage_is_chosen_by_status(
    execute: Execute, api: Api, sql: Sql, status: int, found: list[Any], missing: list[Any]
) -> None:
    sql("CREATE TABLE found (item text); CREATE TABLE missing (item text)")
    api.answer = lambda path, params: (status, {})
    assert execute(BY_STATUS, item="x").status == "success"
    assert sql("SELECT * FROM found") == found
    assert sql("SELECT * FROM missing") == missing


def test_another_status_fails(execute: Execute, api: Api, sql: Sql) -> None:
    sql("CREATE TABLE found (item text); CREATE TABLE missing (item text)")
    api.answer = lambda path, params: (401, {})
    assert execute(BY_STATUS, item="x").status == "failed"


# ---- 4: streaming

PAGES = """
- step: start
  loop: { in: [orders], iterator: name }
  tool:
    - begin:
        kind: noop
        spec: { policy: { rules: [{ else: { then: { do: continue, set_iter: { page: 1 } } } }] } }
    - fetch:
        kind: http
        url: "{{ workload.api }}/{{ iter.name }}"
        params: { page: "{{ iter.page }}" }
        spec:
          policy:
            rules:
              - { when: "{{ outcome.status == 'error' }}", then: { do: fail } }
              - { else: { then: { do: continue, set_iter: { more: "{{ outcome.result.data.more }}" } } } }
    - save:
        kind: postgres
        auth: pg
        command: INSERT INTO rows SELECT %(page)s, unnest(%(items)s::int[])
        params: { page: "{{ iter.page }}", items: "{{ _prev.data['items'] }}" }
    - paginate:
        kind: noop
        spec:
          policy:
            rules:
              - { when: "{{ iter.more }}", then: { do: jump, to: fetch, set_iter: { page: "{{ iter.page + 1 }}" } } }
              - { else: { then: { do: break } } }
"""


def test_pages_are_fetched_while_there_are_more(execute: Execute, api: Api, sql: Sql) -> None:
    sql("CREATE TABLE rows (page int, item int)")
    api.answer = lambda path, params: (200, {"items": [int(params["page"]) * 10], "more": int(params["page"]) < 4})
    run = execute(PAGES)
    assert run.status == "success"
    assert [params["page"] for _, params in api.requested] == ["1", "2", "3", "4"]
    assert sql("SELECT * FROM rows ORDER BY page") == [(1, 10), (2, 20), (3, 30), (4, 40)]


# ---- 5: parallel loops

PARALLEL = """
- step: start
  loop: { in: "{{ range(12) | list }}", iterator: n, spec: { mode: parallel, max_in_flight: 3 } }
  tool:
    - note:
        kind: noop
        spec: { policy: { rules: [{ else: { then: { do: continue, set_iter: { mine: "{{ iter.n * 10 }}" } } } }] } }
    - fetch:
        kind: http
        url: "{{ workload.api }}/{{ iter.mine }}"
        spec:
          policy:
            rules:
              - { when: "{{ outcome.status == 'error' }}", then: { do: fail } }
              - { else: { then: { do: continue, set_iter: { path: "{{ outcome.result.data.path }}" } } } }
    - tell: { kind: python, code: "result = [mine, path]", args: { mine: "{{ iter.mine }}", path: "{{ iter.path }}" } }
"""


def test_the_width_is_respected_and_iter_is_isolated(execute: Execute, api: Api) -> None:
    # Three requests meet before one is answered: the width is used, and the server sees if it is passed.
    meeting = threading.Barrier(3, timeout=30)

    def answer(path: str, params: dict[str, str]) -> tuple[int, Any]:
        meeting.wait()
        return 200, {"path": path}

    api.answer = answer
    run = execute(PARALLEL)
    assert run.status == "success", run.ending.failures
    assert api.most == 3
    assert run.ending.result == [[n * 10, f"/{n * 10}"] for n in range(12)]


# ---- 6: nested loops

NESTED = """
- step: start
  loop:
    in: "{{ workload.cities }}"
    iterator: city
    spec: { mode: parallel }
    loop: { in: "{{ iter.city.hotels }}", iterator: hotel, spec: { mode: parallel } }
  tool:
    - begin:
        kind: noop
        spec: { policy: { rules: [{ else: { then: { do: continue, set_iter: { page: 1 } } } }] } }
    - fetch:
        kind: http
        url: "{{ workload.api }}/{{ iter.parent.city.name }}/{{ iter.hotel }}"
        params: { page: "{{ iter.page }}" }
    - save:
        kind: postgres
        auth: pg
        command: INSERT INTO rooms (city, hotel, page) VALUES (%s, %s, %s)
        params: ["{{ iter.parent.city.name }}", "{{ iter.hotel }}", "{{ iter.page }}"]
    - paginate:
        kind: noop
        spec:
          policy:
            rules:
              - when: "{{ iter.page < 3 }}"
                then: { do: jump, to: fetch, set_iter: { page: "{{ iter.page + 1 }}" } }
              - { else: { then: { do: break } } }
"""


def test_pages_are_in_order_inside_parallel_loops(execute: Execute, api: Api, sql: Sql) -> None:
    sql("CREATE TABLE rooms (id serial, city text, hotel text, page int)")
    cities = [{"name": "Oslo", "hotels": ["a", "b"]}, {"name": "Rome", "hotels": ["c"]}]
    run = execute(NESTED, cities=cities)
    assert run.status == "success", run.ending.failures
    for city, hotel in (("Oslo", "a"), ("Oslo", "b"), ("Rome", "c")):
        pages = sql(f"SELECT page FROM rooms WHERE city = '{city}' AND hotel = '{hotel}' ORDER BY id")
        assert pages == [(1,), (2,), (3,)]
        assert [params["page"] for path, params in api.requested if path == f"/{city}/{hotel}"] == ["1", "2", "3"]


# ---- 7: routing

ROUTES = """
- step: start
  tool:
    - fetch: {{ kind: http, url: "{{{{ workload.api }}}}/items" }}
  next:
    {mode}arcs:
      - {{ step: mend, when: "{{{{ event.name == 'step.failed' }}}}" }}
      - {{ step: none, when: "{{{{ event.result.data.n > 10 }}}}" }}
      - {{ step: first, when: "{{{{ event.result.data.n > 5 }}}}" }}
      - {{ step: second, when: "{{{{ event.result.data.n > 1 }}}}" }}
- {{ step: none, tool: {{ kind: noop }} }}
- {{ step: first, tool: {{ kind: noop }} }}
- {{ step: second, tool: {{ kind: noop }} }}
- {{ step: mend, tool: {{ kind: noop }} }}
"""


@pytest.mark.parametrize(
    ("mode", "steps"),
    [
        ("", ["start", "first"]),
        ("spec: { mode: exclusive }\n    ", ["start", "first"]),
        ("spec: { mode: inclusive }\n    ", ["start", "first", "second"]),
    ],
)
def test_the_mode_decides_how_many_arcs_fire(execute: Execute, api: Api, mode: str, steps: list[str]) -> None:
    api.answer = lambda path, params: (200, {"n": 7})
    run = execute(ROUTES.format(mode=mode))
    assert run.status == "success"
    assert run.steps() == steps


def test_a_failure_is_routed_too(execute: Execute, api: Api) -> None:
    api.answer = lambda path, params: (500, {})
    run = execute(ROUTES.format(mode=""))
    assert run.steps() == ["start", "mend"]
    assert run.status == "success"


# ---- 8: large results

LARGE = """
- step: start
  tool:
    - fetch:
        kind: http
        url: "{{ workload.api }}/items"
        spec:
          policy:
            rules:
              - { when: "{{ outcome.status == 'error' }}", then: { do: fail } }
              - { else: { then: { do: continue, set_ctx: { body: "{{ outcome.result.data }}" } } } }
  next: { arcs: [{ step: end, when: "{{ event.name == 'step.done' }}", args: { body: "{{ event.result.data }}" } }] }
- step: end
  tool:
    - count:
        kind: python
        code: "result = {'ctx': len(a['text']), 'args': len(b['text'])}"
        args: { a: "{{ ctx.body }}", b: "{{ args.body }}" }
"""


def test_large_results_live_outside_the_log(execute: Execute, api: Api) -> None:
    size = 8 * INLINE_BYTES
    api.answer = lambda path, params: (200, {"text": "x" * size})
    run = execute(LARGE)
    assert run.status == "success", run.ending.failures
    assert run.ending.result == {"ctx": size, "args": size}
    assert max(len(encode(recorded.event.data)) for recorded in run.events) <= INLINE_BYTES
    assert b"x" * 1000 not in (run.folder / "executions.db").read_bytes()
    results = FileResults(run.folder / "results")
    assert any(b"x" * size in results.get(key) for key in results.keys())  # noqa: SIM118 - a store is not a mapping
