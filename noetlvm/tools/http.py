"""`kind: http`: one HTTP request."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from noetlvm.limits import TOOL_OUTPUT_BYTES_MAX
from noetlvm.tools.call import Outcome, ToolCall, error, ok, too_much
from noetlvm.tools.fit import Unfit
from noetlvm.tools.kind import ANY, Choice, Input, Setting, ToolKind

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    import httpx

    from noetlvm.tools.kept import Kept

_INPUTS = (
    Input("url", ("string",), "Where to send the request.", required=True, language="url"),
    Input(
        "method",
        ("string",),
        "The request's method.",
        default="GET",
        choices=("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"),
    ),
    Input("params", ("object",), "Query parameters, encoded into the URL."),
    Input("headers", ("object",), "Request headers.", takes_secret=True),
    Input("json", ANY, "Body, sent as JSON."),
    Input("form", ("object",), "Body, sent as form fields."),
    Input("body", ("string",), "Body, sent as it is."),
)

_SETTINGS = (
    Setting(
        "timeout",
        ("number", "object"),
        "Seconds to wait: one number, or `connect` and `read` apart.",
        {"connect": 10, "read": 60},
    ),
    Setting("follow_redirects", ("boolean",), "Follow redirects to where they lead.", False),
    Setting("verify_tls", ("boolean",), "Check the server's certificate.", True),
)

KIND = ToolKind(
    name="http",
    summary="Sends one HTTP request. A status of 400 or above is an error; 408, 425, 429 and 5xx are retryable.",
    example="""\
kind: http
method: GET
url: "{{ workload.api_url }}/items"
params: { page: 1 }
auth: api_token
""",
    result="`{status, headers, data}`, where `data` is the parsed body, of an error response too",
    result_fields=("status", "headers", "data"),
    inputs=_INPUTS,
    choices=(Choice(("json", "form", "body"), "at most one"),),
    settings=_SETTINGS,
    takes_auth=True,
    extra="http",
    helpers=("http",),
    instead={
        "content": "write `body`",
        "data": "write `json` for JSON, `form` for form fields, or `body` for plain text",
        "endpoint": "write `url`",
        "payload": "write `json`",
        "query": "write `params`",
        "uri": "write `url`",
    },
)

_IDEMPOTENCY_KEY = "Idempotency-Key"
_KEEP_ALIVE = 100
"""Idle connections kept."""

_GIVEN = "noetlvm.given"
"""Under this, a request remembers where it was meant to go and which headers it was given."""

_PASSING = frozenset({408, 425, 429})
_REQUEST_IDS = ("x-request-id", "request-id", "x-correlation-id", "x-amzn-requestid", "x-amz-request-id")
_BODIES = {"json": "json", "form": "data", "body": "content"}


async def run(call: ToolCall, kept: Kept) -> Outcome:
    """Send the request, and read no more of the response than a result may hold."""
    import httpx

    verify_tls = call.spec["verify_tls"]
    client = kept.get(("http", verify_tls), partial(_Client, verify_tls))
    try:
        async with client.stream(call) as response:
            body = await _read(response)
    except httpx.TransportError as lost:
        return _not_answered(lost)
    except (httpx.InvalidURL, httpx.TooManyRedirects, httpx.DecodingError, UnicodeEncodeError) as refused:
        return error("http", f"{type(refused).__name__}: {refused}")
    if body is None:
        return too_much("the response", TOOL_OUTPUT_BYTES_MAX)
    return _answered(response, body)


class _Client:
    """Connections that are used again; nothing else of one request is seen by the next."""

    def __init__(self, verify_tls: bool) -> None:
        from http.cookiejar import CookieJar, DefaultCookiePolicy

        import httpx

        no_cookies = CookieJar(DefaultCookiePolicy(allowed_domains=()))
        hooks = {"request": [_drop_headers_elsewhere]}
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=_KEEP_ALIVE)
        self._client = httpx.AsyncClient(verify=verify_tls, cookies=no_cookies, event_hooks=hooks, limits=limits)

    def stream(self, call: ToolCall) -> AbstractAsyncContextManager[httpx.Response]:
        inputs, headers = call.inputs, _headers(call)
        return self._client.stream(
            inputs["method"],
            inputs["url"],
            params=inputs.get("params"),
            headers=headers,
            timeout=_timeout(call.spec["timeout"]),
            follow_redirects=call.spec["follow_redirects"],
            extensions={_GIVEN: (_origin(inputs["url"]), tuple(headers))},
            **_body(inputs),
        )

    async def close(self) -> None:
        await self._client.aclose()


# ---- the request


def _headers(call: ToolCall) -> dict[str, str]:
    given = {name: _text(value) for name, value in call.inputs.get("headers", {}).items()}
    taken = {name.lower() for name in given}
    own = {_IDEMPOTENCY_KEY: call.key, **_auth_headers(call.auth)}
    return {name: value for name, value in own.items() if name.lower() not in taken} | given


def _auth_headers(auth: Any) -> dict[str, str]:
    """Return what a keychain entry means here. Raises Unfit."""
    from noetlvm.keychain.auth import http_headers
    from noetlvm.keychain.shapes import Misshapen

    try:
        return {} if auth is None else http_headers(auth)
    except Misshapen as problem:
        raise Unfit(f"the keychain entry that `auth` names does not fit: {problem}") from None


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _body(inputs: dict[str, Any]) -> dict[str, Any]:
    return {_BODIES[name]: inputs[name] for name in _BODIES if name in inputs}


def _timeout(given: Any) -> httpx.Timeout:
    from httpx import Timeout

    if not isinstance(given, dict):
        return Timeout(given)
    read = given.get("read", 60)
    return Timeout(read, connect=given.get("connect", 10))


async def _drop_headers_elsewhere(request: httpx.Request) -> None:
    """Take a task's headers out of a request that a redirect sends to another server: they may be secret."""
    origin, names = request.extensions[_GIVEN]
    if _origin(str(request.url)) != origin:
        for name in names:
            request.headers.pop(name, None)


def _origin(url: str) -> tuple[str, str, int | None]:
    from httpx import URL

    parsed = URL(url)
    return parsed.scheme, parsed.host, parsed.port


# ---- the response


async def _read(response: httpx.Response) -> bytes | None:
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > TOOL_OUTPUT_BYTES_MAX:
            return None
    return bytes(body)


def _answered(response: httpx.Response, body: bytes) -> Outcome:
    status, headers = response.status_code, dict(response.headers)
    request_id = next((headers[name] for name in _REQUEST_IDS if name in headers), None)
    http = {"status": status, "headers": headers, "request_id": request_id}
    data, is_broken = _parsed(response, body)
    result = {"status": status, "headers": headers, "data": data}
    if status >= 400:
        details = {"status": status, "retry_after": headers.get("retry-after")}
        asked = f"{response.request.method} {response.url.host}{response.url.path}"
        message = f"{asked} answered {status} {response.reason_phrase}".rstrip()
        return error("http", message, retryable=_is_passing(status), details=details, result=result, http=http)
    if is_broken:
        return error("response", "the response says it is JSON and is not", result=result, http=http)
    return ok(result, http=http)


def _is_passing(status: int) -> bool:
    return status >= 500 or status in _PASSING


def _parsed(response: httpx.Response, body: bytes) -> tuple[Any, bool]:
    """Return the body as data, and whether it is not what its content type says."""
    media_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if not body:
        return None, False
    if media_type.endswith(("/json", "+json")):
        import json

        try:
            return json.loads(body), False
        except (ValueError, RecursionError):
            return body.decode(errors="replace"), True
    return _as_text(body, response.charset_encoding), False


def _as_text(body: bytes, charset: str | None) -> str:
    """Return a body as text if it is text, else as base64."""
    try:
        return body.decode(charset or "utf-8")
    except (UnicodeDecodeError, LookupError):
        from base64 import b64encode

        return b64encode(body).decode()


def _not_answered(lost: httpx.TransportError) -> Outcome:
    """Return the outcome of a request without a response; only what cannot ever work is not retryable."""
    import httpx

    name = type(lost).__name__
    kind = "timeout" if isinstance(lost, httpx.TimeoutException) else "connection"
    is_hopeless = isinstance(lost, httpx.UnsupportedProtocol | httpx.LocalProtocolError)
    return error(kind, f"{name}: {lost}" if str(lost) else name, retryable=not is_hopeless)
