"""`kind: http` against a server on this machine."""

from __future__ import annotations

import json
import socket
import ssl
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit

import pytest

from noetlvm.limits import TOOL_OUTPUT_BYTES_MAX
from noetlvm.tools.call import Outcome

Run = Callable[..., Outcome]
KEY = "01J-execution/3#1"


class Handler(BaseHTTPRequestHandler):
    """Answers as the path specifies, and with what it was sent."""

    protocol_version = "HTTP/1.1"
    released = threading.Event()
    received: ClassVar[Counter[str]] = Counter()
    """Requests to `flaky` and `missing`, by name."""

    def respond(self) -> None:
        path = urlsplit(self.path).path
        name, _, rest = path.strip("/").partition("/")
        getattr(self, f"answer_{name}")(rest)

    do_GET = do_POST = do_PUT = do_DELETE = respond  # noqa: N815 - the names that the base class looks for

    def answer_echo(self, _: str) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0))).decode()
        sent = {"method": self.command, "path": self.path, "headers": {k.lower(): v for k, v in self.headers.items()}}
        self.send(200, json.dumps({**sent, "body": body}), {"X-Request-Id": "r-1", "Set-Cookie": "seen=1"})

    def answer_status(self, status: str) -> None:
        self.send(int(status), '{"why": "because"}', {"Retry-After": "7"})

    def answer_flaky(self, name: str) -> None:
        """Fail twice for each name, then succeed."""
        self.received[name] += 1
        self.send(503 if self.received[name] < 3 else 200, json.dumps({"request": self.received[name]}))

    def answer_missing(self, name: str) -> None:
        self.received[name] += 1
        self.send(404, "{}")

    def answer_text(self, _: str) -> None:
        self.send(200, "grüße", {"Content-Type": "text/plain; charset=utf-8"})

    def answer_bytes(self, _: str) -> None:
        self.send(200, b"\xff\xfe\x00", {"Content-Type": "application/octet-stream"})

    def answer_empty(self, _: str) -> None:
        self.send(204, "")

    def answer_broken(self, _: str) -> None:
        self.send(200, "{")

    def answer_bytes_of(self, size: str) -> None:
        self.send(200, "x" * int(size), {"Content-Type": "text/plain"})

    def answer_latin(self, kind: str) -> None:
        self.send(200, '{"a": "grün"}'.encode("latin-1"), {"Content-Type": f"{kind}; charset=latin-1"})

    def answer_charset(self, name: str) -> None:
        self.send(200, "grün", {"Content-Type": f"text/plain; charset={name}"})

    def answer_drip(self, _: str) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "100000")
        self.end_headers()
        with suppress(OSError):  # until nobody listens
            while not self.released.wait(0.05):
                self.wfile.write(b"x")
        self.close_connection = True

    def answer_stuck(self, _: str) -> None:
        self.released.wait(20)
        self.close_connection = True

    def answer_hangup(self, _: str) -> None:
        self.close_connection = True

    def answer_to(self, where: str) -> None:
        self.send(302, "", {"Location": where.replace(":/", "://", 1) if "://" not in where else where})

    def send(self, status: int, body: str | bytes, headers: dict[str, str] | None = None) -> None:
        data = body if isinstance(body, bytes) else body.encode()
        self.send_response(status)
        for name, value in ({"Content-Type": "application/json"} | (headers or {})).items():
            self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def serve() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    Handler.released.set()
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    yield from serve()


@pytest.fixture(scope="module")
def other_server() -> Iterator[str]:
    yield from serve()


@pytest.mark.parametrize(
    ("retries", "status", "sent"), [(None, 503, 1), (0, 503, 1), (1, 503, 2), (2, 200, 3), (5, 200, 3)]
)
def test_a_request_is_sent_again_as_often_as_the_spec_says(
    run: Run, server: str, retries: int | None, status: int, sent: int
) -> None:
    name = f"again-{retries}"
    outcome = run("http", {"url": f"{server}/flaky/{name}"}, {"retries": retries})
    assert (outcome["http"]["status"], Handler.received[name]) == (status, sent)
    assert outcome["result"]["data"] == {"request": sent}


def test_an_error_that_is_not_retryable_is_not_sent_again(run: Run, server: str) -> None:
    assert run("http", {"url": f"{server}/missing/once"}, {"retries": 3})["http"]["status"] == 404
    assert Handler.received["once"] == 1


@pytest.mark.parametrize("retries", [-1, 11])
def test_more_retries_than_allowed_are_refused(run: Run, server: str, retries: int) -> None:
    outcome = run("http", {"url": f"{server}/echo"}, {"retries": retries})
    assert f"`spec.retries` is {retries}; give 0 to 10" in outcome["error"]["message"]


def test_a_response_is_status_headers_and_parsed_body(run: Run, server: str) -> None:
    outcome = run("http", {"url": f"{server}/echo", "params": {"page": 2, "q": "a b"}})
    assert outcome["status"] == "ok"
    assert outcome["result"]["status"] == 200
    assert outcome["result"]["data"]["path"] == "/echo?page=2&q=a+b"
    assert outcome["http"]["request_id"] == "r-1"
    assert outcome["http"]["headers"]["content-type"] == "application/json"


@pytest.mark.parametrize(
    ("given", "body", "content_type"),
    [
        ({"json": {"a": [1, None]}}, '{"a":[1,null]}', "application/json"),
        ({"form": {"a": "1", "b": "x y"}}, "a=1&b=x+y", "application/x-www-form-urlencoded"),
        ({"body": "plain ü"}, "plain ü", None),
        ({"body": {"a": [1, None]}}, '{"a":[1,null]}', "application/json"),
        ({"body": [1, 2]}, "[1,2]", "application/json"),
        ({"payload": {"a": 1}}, '{"a":1}', "application/json"),
        ({"data": [{"a": 1}]}, '[{"a":1}]', "application/json"),
        ({"data": "a=1"}, "a=1", None),
    ],
)
def test_a_body_is_sent_as_its_input_says(
    run: Run, server: str, given: dict[str, Any], body: str, content_type: str | None
) -> None:
    data = run("http", {"url": f"{server}/echo", "method": "POST", **given})["result"]["data"]
    assert data["body"] == body
    assert data["headers"].get("content-type") == content_type


def test_query_parameters_are_added_to_those_of_the_url(run: Run, server: str) -> None:
    outcome = run("http", {"endpoint": f"{server}/echo?a=1", "params": {"b": 2}})
    assert outcome["result"]["data"]["path"] == "/echo?a=1&b=2"


@pytest.mark.parametrize(
    ("use", "header", "value"),
    [
        ({"entry": "entry"}, "authorization", "Bearer k"),
        ({"source": "credential", "key": "entry", "type": "bearer"}, "authorization", "Bearer k"),
        ({"source": "entry"}, "authorization", "Bearer k"),
        ({"openai": {"credential": "entry", "type": "header", "header": "X-Key"}}, "x-key", "k"),
        ({"github": {"key": "entry", "type": "api_key"}}, "x-api-key", "k"),
        ({"openai": "entry"}, "authorization", "Bearer k"),
    ],
)
def test_auth_as_a_mapping_names_the_entry_and_how_it_is_used(
    run: Run, server: str, use: Any, header: str, value: str
) -> None:
    sent = run("http", {"url": f"{server}/echo", "auth": use}, None, "k")["result"]["data"]["headers"]
    assert sent[header] == value


def test_settings_on_the_task_are_obeyed(run: Run, server: str) -> None:
    inputs = {"url": f"{server}/to/{server}/echo", "follow_redirects": True, "verify_ssl": False, "timeout": 5}
    assert run("http", inputs)["result"]["status"] == 200
    outcome = run("http", {"url": f"{server}/stuck", "timeout": 0.2})
    assert outcome["error"]["kind"] == "timeout"


def test_the_idempotency_key_is_sent_unless_the_task_gives_one(run: Run, server: str) -> None:
    sent = run("http", {"url": f"{server}/echo"})["result"]["data"]["headers"]
    assert sent["idempotency-key"] == KEY
    given = {"idempotency-key": "mine"}
    sent = run("http", {"url": f"{server}/echo", "headers": given})["result"]["data"]["headers"]
    assert sent["idempotency-key"] == "mine"


@pytest.mark.parametrize(
    ("auth", "header", "value"),
    [
        ("t0ken", "authorization", "Bearer t0ken"),
        ({"token": "t0ken"}, "authorization", "Bearer t0ken"),
        ({"username": "me", "password": "pw"}, "authorization", "Basic bWU6cHc="),
        ({"header": "X-Api-Key", "value": "k"}, "x-api-key", "k"),
    ],
)
def test_a_keychain_entry_becomes_a_header(run: Run, server: str, auth: Any, header: str, value: str) -> None:
    assert run("http", {"url": f"{server}/echo"}, None, auth)["result"]["data"]["headers"][header] == value


def test_a_keychain_entry_that_means_nothing_here_is_refused(run: Run, server: str) -> None:
    outcome = run("http", {"url": f"{server}/echo"}, None, {"colour": "red"})
    assert outcome["error"]["kind"] == "input"
    assert "`token`" in outcome["error"]["message"]
    assert "red" not in outcome["error"]["message"]


@pytest.mark.parametrize(
    ("status", "retryable"),
    [(400, False), (404, False), (408, True), (425, True), (429, True), (500, True), (503, True)],
)
def test_a_status_of_400_and_above_is_an_error_with_its_body(
    run: Run, server: str, status: int, retryable: bool
) -> None:
    outcome = run("http", {"url": f"{server}/status/{status}"})
    assert (outcome["status"], outcome["error"]["kind"]) == ("error", "http")
    assert outcome["error"]["retryable"] is retryable
    assert outcome["error"]["details"] == {"status": status, "retry_after": "7"}
    assert outcome["result"]["data"] == {"why": "because"}
    assert outcome["http"]["status"] == status


@pytest.mark.parametrize(("path", "data"), [("text", "grüße"), ("bytes", "//4A"), ("empty", None)])
def test_a_body_that_is_not_json_is_text_or_base64_or_null(run: Run, server: str, path: str, data: Any) -> None:
    assert run("http", {"url": f"{server}/{path}"})["result"]["data"] == data


def test_json_that_is_none_is_an_error(run: Run, server: str) -> None:
    outcome = run("http", {"url": f"{server}/broken"})
    assert outcome["error"]["kind"] == "response"
    assert outcome["result"]["data"] == "{"


def test_a_response_at_the_limit_is_taken_and_one_past_it_is_not(run: Run, server: str) -> None:
    outcome = run("http", {"url": f"{server}/bytes_of/{TOOL_OUTPUT_BYTES_MAX}"})
    assert len(outcome["result"]["data"]) == TOOL_OUTPUT_BYTES_MAX
    outcome = run("http", {"url": f"{server}/bytes_of/{TOOL_OUTPUT_BYTES_MAX + 1}"})
    assert outcome["error"]["kind"] == "output"


@pytest.mark.parametrize("timeout", [0.2, {"connect": 5, "read": 0.2}])
def test_a_server_that_does_not_answer_is_a_retryable_timeout(run: Run, server: str, timeout: Any) -> None:
    outcome = run("http", {"url": f"{server}/stuck"}, {"timeout": timeout})
    assert outcome["error"]["kind"] == "timeout"
    assert outcome["error"]["retryable"] is True
    assert outcome["http"] == {}


def test_a_lost_connection_is_retryable(run: Run, server: str) -> None:
    outcome = run("http", {"url": f"{server}/hangup"})
    assert (outcome["error"]["kind"], outcome["error"]["retryable"]) == ("connection", True)


def test_no_server_at_all_is_retryable(run: Run) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        outcome = run("http", {"url": f"http://127.0.0.1:{held.getsockname()[1]}/"})
    assert (outcome["error"]["kind"], outcome["error"]["retryable"]) == ("connection", True)


@pytest.mark.parametrize("url", ["nowhere", "ftp://127.0.0.1/", "http://\0/", "http://127.0.0.1:99999/"])
def test_an_address_that_cannot_work_is_not_retryable(run: Run, url: str) -> None:
    outcome = run("http", {"url": url})
    assert outcome["status"] == "error"
    assert outcome["error"]["retryable"] is False


def test_cookies_of_one_task_are_not_sent_by_the_next(run_all: Callable[..., list[Outcome]], server: str) -> None:
    echo = ("http", {"url": f"{server}/echo"})
    _, second = run_all(echo, echo)
    assert "cookie" not in second["result"]["data"]["headers"]


def test_redirects_are_followed_only_where_requested(run: Run, server: str) -> None:
    inputs = {"url": f"{server}/to/{server}/echo"}
    assert run("http", inputs)["result"]["status"] == 302
    assert run("http", inputs, {"follow_redirects": True})["result"]["data"]["path"] == "/echo"


def test_a_redirect_to_another_server_takes_no_headers_along(run: Run, server: str, other_server: str) -> None:
    headers, spec = {"X-Api-Key": "secret"}, {"follow_redirects": True}
    same = run("http", {"url": f"{server}/to/{server}/echo", "headers": headers}, spec, "t0ken")
    assert same["result"]["data"]["headers"]["x-api-key"] == "secret"
    other = run("http", {"url": f"{server}/to/{other_server}/echo", "headers": headers}, spec, "t0ken")
    assert not {"x-api-key", "authorization", "idempotency-key"} & other["result"]["data"]["headers"].keys()


def test_a_charset_is_heeded_and_an_unknown_one_is_not(run: Run, server: str) -> None:
    assert run("http", {"url": f"{server}/latin/text/plain"})["result"]["data"] == '{"a": "grün"}'
    assert run("http", {"url": f"{server}/latin/application/json"})["result"]["data"] == {"a": "grün"}
    for name in ("nosuch", "rot13", "zlib"):
        assert run("http", {"url": f"{server}/charset/{name}"})["result"]["data"] == "grün"


def test_a_server_that_drips_is_left_in_the_end(run: Run, server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("noetlvm.tools.http_client.HTTP_SECONDS_MAX", 0.5)
    error = run("http", {"url": f"{server}/drip"}, {"timeout": {"connect": 5, "read": 5}})["error"]
    assert (error["kind"], error["retryable"]) == ("timeout", True)
    assert "0.5 s" in error["message"]
    patient = run("http", {"url": f"{server}/drip"}, {"timeout": 1})["error"]  # its own limit goes before ours
    assert "1 s" in patient["message"]


def test_an_invalid_port_is_reported(run: Run, server: str) -> None:
    for url in ("http://127.0.0.1:99999/", f"{server}/to/http://127.0.0.1:99999/"):
        error = run("http", {"url": url}, {"follow_redirects": True})["error"]
        assert (error["kind"], error["retryable"]) == ("http", False)
        assert "99999" in error["message"]


@pytest.mark.parametrize(
    ("inputs", "spec", "named"),
    [
        ({"headers": {"X": {"a": 1}}}, {}, "`headers.X` must be text, a number or a boolean, not object"),
        ({"headers": {"X": "\u2603"}}, {}, "`headers.X`"),
        ({"headers": {"X\n": "a"}}, {}, "`headers.X\\n`"),
        ({"headers": {"X": "a\r\nB: c"}}, {}, "`headers.X`"),
        ({"params": {"a": {"b": 1}}}, {}, "`params.a`"),
        ({"form": {"a": [1, {"b": 1}]}, "method": "POST"}, {}, "`form.a`"),
        ({"json": {"a": float("nan")}, "method": "POST"}, {}, "`json`"),
        ({}, {"timeout": {"raed": 3}}, "`spec.timeout` takes `connect` and `read`, not `raed`"),
    ],
)
def test_an_input_that_cannot_be_sent_is_named(run: Run, server: str, inputs: Any, spec: Any, named: str) -> None:
    error = run("http", {"url": f"{server}/echo", **inputs}, spec)["error"]
    assert error["kind"] == "input"
    assert named in error["message"]


def test_a_method_in_lower_case_is_that_method(run: Run, server: str) -> None:
    assert run("http", {"url": f"{server}/echo", "method": "post"})["result"]["data"]["method"] == "POST"
    assert "give one of GET" in run("http", {"url": f"{server}/echo", "method": "fetch"})["error"]["message"]


def test_what_is_null_is_not_sent(run: Run, server: str) -> None:
    inputs = {"url": f"{server}/echo", "headers": {"X-A": None, "X-B": True}, "params": {"a": None, "b": [1, True]}}
    sent = run("http", inputs)["result"]["data"]
    assert "x-a" not in sent["headers"]
    assert sent["headers"]["x-b"] == "true"
    assert sent["path"] == "/echo?b=1&b=true"


@pytest.fixture
def untrusted() -> Iterator[str]:
    """A server whose certificate nobody vouches for."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(Path(__file__).with_name("tls") / "self_signed.pem")
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as made:
        made.socket = context.wrap_socket(made.socket, server_side=True)
        threading.Thread(target=made.serve_forever, daemon=True).start()
        yield f"https://localhost:{made.server_address[1]}"
        made.shutdown()


def test_a_certificate_that_does_not_fit_will_not_fit_next_time(run: Run, untrusted: str) -> None:
    error = run("http", {"url": f"{untrusted}/text"})["error"]
    assert (error["kind"], error["retryable"]) == ("connection", False)
    assert "CERTIFICATE_VERIFY_FAILED" in error["message"]
    assert "verify_tls" in error["message"]
    assert run("http", {"url": f"{untrusted}/text"}, {"verify_tls": False})["result"]["data"] == "grüße"


def test_a_server_without_tls_gives_an_error_that_mentions_ssl(run: Run, server: str) -> None:
    error = run("http", {"url": f"{server.replace('http', 'https')}/text"})["error"]
    assert error["kind"] == "connection"
    assert "ssl" in error["message"].lower()
