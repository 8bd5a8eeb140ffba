"""The API: what it does, and what it answers to requests that it refuses."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from typing import Any

import pytest

from noetlvm.data.encoding import decode
from noetlvm.data.event import Event, Recorded
from noetlvm.service.access import BODY_BYTES_MAX
from tests.noetlvm.service.conftest import HELLO, Service
from tests.waiting import wait_until

YAML = {"Content-Type": "application/yaml"}


def register(service: Service, data: bytes = HELLO) -> Any:
    return service.http.post("/api/v1/playbooks", content=data, headers=service.as_("run") | YAML)


def start(service: Service, **more: Any) -> Any:
    body = {"path": "tests/hello"} | more.pop("json", {})
    return service.http.post("/api/v1/executions", json=body, headers=service.as_("run") | more.pop("headers", {}))


def ended(service: Service, execution_id: str) -> dict[str, Any]:
    def view() -> dict[str, Any]:
        shown: dict[str, Any] = service.http.get(
            f"/api/v1/executions/{execution_id}", headers=service.as_("read")
        ).json()
        return shown

    wait_until(lambda: view()["ended"] is not None)
    return view()


def test_a_registered_playbook_runs_to_its_end(service: Service) -> None:
    registered = register(service)
    assert registered.status_code == 201
    assert registered.json() | {"registered": 0} == {
        "path": "tests/hello",
        "version": 1,
        "bundle": registered.json()["bundle"],
        "registered": 0,
        "diagnostics": registered.json()["diagnostics"],
    }
    started = start(service)
    assert started.status_code == 201
    id = started.json()["execution_id"]
    assert ended(service, id)["status"] == "success"
    ending = service.http.get(f"/api/v1/executions/{id}/ending", headers=service.as_("read")).json()
    assert (ending["status"], ending["failures"]) == ("success", [])
    page = service.http.get(f"/api/v1/executions/{id}/events?limit=2", headers=service.as_("read")).json()
    assert [event["seq"] for event in page["events"]] == [1, 2]
    assert page["after"] == 2


def test_the_ending_in_memory_is_that_of_the_log(service: Service) -> None:
    register(service)
    id = start(service).json()["execution_id"]
    ended(service, id)
    url = f"/api/v1/executions/{id}/ending"
    known = service.http.get(url, headers=service.as_("read")).json()
    service.driver._endings.clear()
    assert service.http.get(url, headers=service.as_("read")).json() == known


def test_an_unknown_token_is_named_as_the_problem(service: Service) -> None:
    answer = service.http.get("/api/v1/executions", headers={"Authorization": "Bearer nvt_x_y"})
    assert answer.status_code == 401
    assert answer.json()["detail"].startswith("this token is unknown or revoked; ")
    assert service.http.get("/api/v1/executions").json()["detail"].startswith("send a token: ")


def test_a_playbook_that_has_not_changed_keeps_its_version(service: Service) -> None:
    assert register(service).json()["version"] == 1
    assert register(service).json()["version"] == 1
    assert register(service, HELLO.replace(b"world", b"moon")).json()["version"] == 2
    listed = service.http.get("/api/v1/playbooks", headers=service.as_("read")).json()
    assert [entry["version"] for entry in listed["playbooks"]] == [2]
    versions = service.http.get("/api/v1/playbooks/versions?path=tests/hello", headers=service.as_("read")).json()
    assert [entry["version"] for entry in versions["versions"]] == [2, 1]


def test_a_playbook_with_errors_is_refused_with_its_findings(service: Service) -> None:
    answer = register(service, HELLO.replace(b"step: end }", b"step: nowhere }"))
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    found = answer.json()["diagnostics"]
    assert [(row["severity"], row["line"]) for row in found if row["severity"] == "error"] == [("error", 7)]


def refusals(service: Service) -> list[tuple[str, list[Any]]]:
    """Return path and diagnostics of the requests whose log says that they were refused, the latest first."""
    page = service.http.get("/api/v1/executions?status=failed", headers=service.as_("read")).json()
    found = []
    for row in page["executions"]:
        path = f"/api/v1/executions/{row['execution_id']}/events"
        events = service.http.get(path, headers=service.as_("read")).json()["events"]
        names = ["playbook.execution.requested", "playbook.request.evaluated", "playbook.processed"]
        assert [event["name"] for event in events] == names
        error = events[1]["data"]["error"]
        found.append((row["path"], [error["kind"], error["message"]]))
    return found


def test_a_request_that_is_refused_leaves_its_diagnostics_in_the_log(service: Service) -> None:
    register(service)
    assert start(service, json={"path": "tests/unknown"}).status_code == 404
    assert start(service, json={"version": 99}).status_code == 404
    assert start(service, json={"ctx": {"no name": 1}}).status_code == 422
    assert refusals(service) == [
        ("tests/hello", ["request", "the keys of `ctx` are plain names, and `no name` is none"]),
        ("tests/hello", ["playbook", "no playbook is registered under `tests/hello` in version 99"]),
        ("tests/unknown", ["playbook", "no playbook is registered under `tests/unknown`"]),
    ]


@pytest.mark.parametrize(
    ("body", "path", "message"),
    [
        ('{"path": "tests/a", "payload": [1]}', "tests/a", "body.payload: Input should be a valid dictionary"),
        ('{"path": "tests/a", "paylod": {}}', "tests/a", "body has no `paylod`"),
        ('{"bundle": "ab", "ctx": null}', "ab", "body.ctx: Input should be a valid dictionary"),
    ],
)
def test_a_body_that_names_a_playbook_and_is_refused_is_recorded(
    service: Service, body: str, path: str, message: str
) -> None:
    headers = {"Content-Type": "application/json", **service.as_("run")}
    assert service.http.post("/api/v1/executions", content=body, headers=headers).status_code == 422
    assert refusals(service) == [(path, ["request", message])]


@pytest.mark.parametrize("scope", ["read", "worker"])
def test_nothing_is_recorded_for_a_token_that_may_not_start(service: Service, scope: str) -> None:
    answer = service.http.post("/api/v1/executions", json={"path": "a", "payload": 1}, headers=service.as_(scope))
    assert (answer.status_code, refusals(service)) == (403, [])


def test_equal_starts_with_one_key_are_one_execution(service: Service) -> None:
    register(service)
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda _: start(service, headers={"Idempotency-Key": "k"}).json(), range(100)))
    assert len({answer["execution_id"] for answer in answers}) == 1
    assert len(service.driver.store.executions()) == 1


@pytest.mark.parametrize(
    ("first", "second", "is_same"),
    [
        ({"payload": {"a": [1, {"b": 2.5}]}}, {"payload": {"a": [1, {"b": 2.5}]}}, True),
        ({"payload": {"a": "x" * 200_000}}, {"payload": {"a": "x" * 200_000}}, True),
        ({"payload": {"a": "x" * 200_000}}, {"payload": {"a": "x" * 200_001}}, False),
        ({"payload": {"a": 1}}, {"payload": {"a": 2}}, False),
        ({"payload": {"a": 1}}, {"payload": {"a": True}}, False),
        ({"payload": {"a": 1}}, {"payload": {"a": 1, "b": 1}}, False),
        ({"payload": {"a": [1]}}, {"payload": {"a": [1, 2]}}, False),
        ({}, {"ctx": {"a": 1}}, False),
        ({"ctx": {"a": 1}}, {"ctx": {"a": 1}}, True),
        ({}, {"path": "tests/failing"}, False),
        ({}, {"version": 1}, True),
    ],
)
def test_a_key_that_was_used_for_another_request_is_refused(
    service: Service, first: dict[str, Any], second: dict[str, Any], is_same: bool
) -> None:
    register(service)
    register(service, FAILING)
    key = {"Idempotency-Key": "k"}
    id = start(service, json=first, headers=key).json()["execution_id"]
    answer = start(service, json=second, headers=key)
    assert answer.status_code == (201 if is_same else 422)
    assert answer.json().get("execution_id", id) == id
    assert (
        is_same or answer.json()["detail"] == f"the key was used for another request, which began {id}; use a new key"
    )
    assert len(service.driver.store.executions()) == 1


def test_a_request_for_the_latest_version_stays_the_same_when_there_is_a_later_one(service: Service) -> None:
    key = {"Idempotency-Key": "k"}
    register(service)
    id = start(service, headers=key).json()["execution_id"]
    register(service, HELLO.replace(b"world", b"moon"))
    assert start(service, headers=key).json()["execution_id"] == id
    assert start(service, json={"version": 2}, headers=key).status_code == 422


def test_a_key_begins_either_a_start_or_the_retry_of_one_execution(service: Service) -> None:
    first, other = failed_execution(service), failed_execution(service)
    key = {"Idempotency-Key": "k"}
    id = retry(service, first, headers=key).json()["execution_id"]
    assert retry(service, other, headers=key).status_code == 422
    assert start(service, json={"path": "tests/failing"}, headers=key).status_code == 422
    assert retry(service, first, headers=key).json()["execution_id"] == id


def test_live_events_resume_after_the_last_one(service: Service) -> None:
    register(service)
    id = start(service).json()["execution_id"]
    ended(service, id)
    headers = service.as_("read") | {"Last-Event-ID": "2"}
    text = service.http.get(f"/api/v1/executions/{id}/events/live", headers=headers).text
    numbers = [int(line[4:]) for line in text.splitlines() if line.startswith("id: ")]
    assert numbers == list(range(3, service.driver.store.executions()[0].seq + 1))


def test_the_state_at_an_earlier_event_is_that_of_then(service: Service) -> None:
    register(service)
    id = start(service).json()["execution_id"]
    ended(service, id)
    early = service.http.get(f"/api/v1/executions/{id}/state?seq=3", headers=service.as_("read")).json()
    late = service.http.get(f"/api/v1/executions/{id}/state", headers=service.as_("read")).json()
    assert (early["status"], late["status"]) == ("running", "success")
    too_late = service.http.get(f"/api/v1/executions/{id}/state?seq=999", headers=service.as_("read"))
    assert too_late.status_code == 404


ROUTES = [
    ("GET", "/api/v1/playbooks", "read"),
    ("POST", "/api/v1/playbooks", "run"),
    ("GET", "/api/v1/playbooks/versions?path=x", "read"),
    ("GET", "/api/v1/executions", "read"),
    ("POST", "/api/v1/executions", "run"),
    ("GET", "/api/v1/executions/x", "read"),
    ("DELETE", "/api/v1/executions/x", "admin"),
    ("GET", "/api/v1/executions/x/events", "read"),
    ("GET", "/api/v1/executions/x/events/live", "read"),
    ("GET", "/api/v1/executions/x/ending", "read"),
    ("GET", "/api/v1/executions/x/result", "read"),
    ("GET", "/api/v1/executions/x/state", "read"),
    ("POST", "/api/v1/executions/x/cancel", "run"),
    ("GET", "/api/v1/tokens", "admin"),
    ("POST", "/api/v1/tokens", "admin"),
    ("DELETE", "/api/v1/tokens/x", "admin"),
    ("POST", "/api/v1/executions/x/retry", "run"),
]


@pytest.mark.parametrize(("method", "path", "scope"), ROUTES)
def test_every_route_needs_a_token_of_its_scope(service: Service, method: str, path: str, scope: str) -> None:
    assert service.http.request(method, path).status_code == 401
    assert service.http.request(method, path, headers={"Authorization": "Bearer nvt_x_y"}).status_code == 401
    lacking = "worker" if scope != "worker" else "admin"
    assert service.http.request(method, path, headers=service.as_(lacking)).status_code == 403
    allowed = service.http.request(method, path, headers=service.as_(scope))
    assert allowed.status_code not in (401, 403, 500)


def test_a_worker_reads_only_what_its_commands_name(service: Service) -> None:
    bundle = register(service).json()["bundle"]
    key = sha256(b"\xc0").hexdigest()
    service.driver.results.put([(key, b"\xc0")])
    for path in (f"/api/v1/bundles/{bundle}", f"/api/v1/results/{key}"):
        assert service.http.get(path).status_code == 401
        assert service.http.get(path, headers=service.as_("read")).status_code == 200
        assert service.http.get(path, headers=service.as_("worker")).status_code == 404
        assert service.http.get(f"{path}?worker=unknown", headers=service.as_("worker")).status_code == 404


def test_no_route_is_without_a_check(service: Service) -> None:
    described = service.http.get("/openapi.json").json()["paths"]
    open_ = {"/healthz", "/readyz"}
    for path, methods in described.items():
        for method, route in methods.items():
            assert path in open_ or route.get("security"), f"{method} {path}"


def test_a_revoked_token_is_refused(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("noetlvm.service.access.CHECKED_SECONDS", -1.0)
    created = service.http.post("/api/v1/tokens", json={"scopes": ["read"]}, headers=service.as_("admin")).json()
    headers = {"Authorization": f"Bearer {created['token']}"}
    assert service.http.get("/api/v1/executions", headers=headers).status_code == 200
    gone = service.http.delete(f"/api/v1/tokens/{created['id']}", headers=service.as_("admin"))
    assert gone.status_code == 204
    assert service.http.get("/api/v1/executions", headers=headers).status_code == 401


def test_the_store_holds_no_token_in_clear(service: Service) -> None:
    for token in service.driver.store.tokens():
        assert all(text.split("_", 2)[2] not in repr(token) for text in service.tokens.values())


def test_a_body_that_is_too_large_is_refused(service: Service) -> None:
    headers = service.as_("run") | YAML | {"Content-Length": str(BODY_BYTES_MAX + 1)}
    answer = service.http.post("/api/v1/playbooks", content=b"x", headers=headers)
    assert answer.status_code == 413


HOSTILE: dict[str, bytes] = {
    "nothing": b"",
    "a scalar": b"x",
    "a bomb": b"a: &a [x]\nb: &b [*a, *a]\n" + b"[" * 10_000,
    "a tag": b"kind: !!python/object/apply:os.system [id]",
    "not UTF-8": b"\xff\xfe",
    "a NUL in its name": HELLO.replace(b"name: hello", b'name: "he\\0llo"'),
    "a NUL in its path": HELLO.replace(b"path: tests/hello", b'path: "tests/\\0hello"'),
    "a NUL in a pool": HELLO.replace(b"workload:", b'executor: { spec: { pool: "a\\0b" } }\nworkload:'),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_playbooks_are_refused(service: Service, name: str) -> None:
    assert register(service, HOSTILE[name]).status_code == 422


@pytest.mark.parametrize("data", [b"", b"x", b"\x7fNBC", b"\x7fNBC" + b"\x00" * 100])
def test_hostile_bundles_are_refused(service: Service, data: bytes) -> None:
    headers = service.as_("run") | {"Content-Type": "application/vnd.noetl.bundle"}
    assert service.http.post("/api/v1/playbooks", content=data, headers=headers).status_code == 422


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[]",
        b'{"path": 1}',
        b'{"path": "x", "unknown": 1}',
        b'{"payload": {}}',
        b"\xff",
        b'{"path": "tests/hello", "payload": {"a": [NaN]}}',
        b'{"path": "tests/hello", "ctx": {"a": 1e999}}',
        b'{"path": "tests/\\u0000hello"}',
        b'{"bundle": "\\u0000"}',
    ],
)
def test_malformed_starts_are_refused(service: Service, body: bytes) -> None:
    headers = service.as_("run") | {"Content-Type": "application/json"}
    answer = service.http.post("/api/v1/executions", content=body, headers=headers)
    assert answer.status_code in (400, 422)
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        (b'{"path": ', "the body is no JSON: Expecting value at character 9"),
        (b'{"path": "a", "paylod": {}}', "body has no `paylod`"),
        (b'{"path": 3}', "body.path: Input should be a valid string"),
    ],
)
def test_a_malformed_body_is_explained(service: Service, body: bytes, detail: str) -> None:
    headers = {"Content-Type": "application/json", **service.as_("run")}
    answer = service.http.post("/api/v1/executions", content=body, headers=headers)
    assert (answer.status_code, answer.json()["detail"]) == (422, detail)


@pytest.mark.parametrize("id", ["none", "..", "%2e%2e%2fetc", "x" * 5000, "%00"])
def test_unknown_executions_are_not_found(service: Service, id: str) -> None:
    assert service.http.get(f"/api/v1/executions/{id}/ending", headers=service.as_("read")).status_code == 404


def test_more_requests_than_allowed_are_put_off(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("noetlvm.service.access.BURST_REQUESTS", 5)
    monkeypatch.setattr("noetlvm.service.access.REQUESTS_PER_SECOND", 0.001)
    codes = [service.http.get("/api/v1/executions", headers=service.as_("read")).status_code for _ in range(8)]
    assert codes == [200] * 5 + [429] * 3


def test_metrics_count_and_name_no_data(service: Service) -> None:
    register(service)
    ended(service, start(service, json={"payload": {"name": "cAnary-42"}}).json()["execution_id"])
    text = service.http.get("/metrics", headers=service.as_("read")).text
    assert 'noetlvm_executions_ended_total{status="success"} 1.0' in text
    assert "cAnary-42" not in text


FAILING = b"""\
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: failing, path: tests/failing }
workload: { list: null }
workflow:
  - step: start
    next: { arcs: [{ step: broken }] }
  - step: broken
    loop: { in: "{{ workload['list'] }}", iterator: n }
"""


def failed_execution(service: Service) -> str:
    register(service, FAILING)
    id = str(start(service, json={"path": "tests/failing"}).json()["execution_id"])
    assert ended(service, id)["status"] == "failed"
    return id


def retry(service: Service, id: str, **more: Any) -> Any:
    headers = service.as_("run") | more.pop("headers", {})
    return service.http.post(f"/api/v1/executions/{id}/retry", headers=headers, **more)


def test_a_failed_execution_is_retried_as_a_new_one(service: Service) -> None:
    first = failed_execution(service)
    answer = retry(service, first)
    assert answer.status_code == 201
    second = answer.json()["execution_id"]
    assert second != first
    ended(service, second)
    page = service.http.get(f"/api/v1/executions/{second}/events?limit=1000", headers=service.as_("read")).json()
    (again,) = [event for event in page["events"] if event["name"] == "execution.retried"]
    assert again["data"]["retried_from"] == first
    assert [event["name"] for event in page["events"]].count("step.failed") == 2


def test_retries_with_one_key_are_one_execution(service: Service) -> None:
    first = failed_execution(service)
    key = {"Idempotency-Key": "once"}
    assert retry(service, first, headers=key).json() == retry(service, first, headers=key).json()
    assert retry(service, first).json() != retry(service, first, headers=key).json()


def test_what_cannot_be_retried_says_why(service: Service) -> None:
    first = failed_execution(service)
    register(service)
    id = start(service).json()["execution_id"]
    ended(service, id)
    answer = retry(service, id)
    assert (answer.status_code, "only a failed execution" in answer.json()["detail"]) == (409, True)
    assert retry(service, "unknown").status_code == 404
    assert retry(service, first, json={"bundle": "unknown"}).status_code == 404
    assert retry(service, first, json={"bundel": "x"}).status_code == 422
    other = register(service).json()["bundle"]
    answer = retry(service, first, json={"bundle": other})
    assert (answer.status_code, "no playbook `tests/failing`" in answer.json()["detail"]) == (409, True)


def test_events_as_msgpack_are_exactly_as_stored(service: Service) -> None:
    id = failed_execution(service)
    accept = {"Accept": "application/vnd.msgpack"}
    answer = service.http.get(f"/api/v1/executions/{id}/events", headers=service.as_("read") | accept)
    assert answer.headers["content-type"] == "application/vnd.msgpack"
    rows = [Recorded(*row[:3], Event(*row[3])) for row in decode(answer.content)["events"]]
    assert rows == list(service.driver.store.events(id))
