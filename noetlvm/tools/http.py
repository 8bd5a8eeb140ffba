"""`kind: http`: one HTTP request."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from noetlvm.language.tool_kind import ANY, Choice, Input, Setting, ToolKind
from noetlvm.limits import HTTP_SECONDS_MAX, TOOL_OUTPUT_BYTES_MAX
from noetlvm.tools.call import Outcome, ToolCall, error, ok, too_much
from noetlvm.tools.fit import Unfit, as_text

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

_TIMEOUTS = {"connect": 10, "read": 60}

_SETTINGS = (
    Setting(
        "timeout",
        ("number", "object"),
        "Seconds: one number for all of it; or `connect`, and `read` for each piece, and then 900 for all of it.",
        _TIMEOUTS,
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

_PORT_MAX = 65_535
_PASSING = frozenset({408, 425, 429})
_REQUEST_IDS = ("x-request-id", "request-id", "x-correlation-id", "x-amzn-requestid", "x-amz-request-id")


async def run(call: ToolCall, kept: Kept) -> Outcome:
    """Send the request, and read no more of the response than a result may hold."""
    from asyncio import timeout

    import httpx

    verify_tls = call.spec["verify_tls"]
    in_all = HTTP_SECONDS_MAX if isinstance(call.spec["timeout"], dict) else None  # one number is a limit for all of it
    client = kept.get(("http", verify_tls), partial(_Client, verify_tls))
    try:
        async with timeout(in_all), client.stream(call) as response:
            body = await _read(response)
    except TimeoutError:
        return error("timeout", f"the response took longer than {in_all} s in all", retryable=True)
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
            params=_fields(inputs, "params"),
            headers=_content_type(inputs, headers) | headers,
            timeout=_timeout(call.spec["timeout"]),
            follow_redirects=call.spec["follow_redirects"],
            extensions={_GIVEN: (_origin(inputs["url"]), tuple(headers))},
            **_body(inputs),
        )

    async def close(self) -> None:
        await self._client.aclose()


# ---- the request


def _headers(call: ToolCall) -> dict[str, str]:
    given = {name: _header(name, value) for name, value in call.inputs.get("headers", {}).items() if value is not None}
    taken = {name.lower() for name in given}
    own = {_IDEMPOTENCY_KEY: call.key, **_auth_headers(call.auth)}
    return {name: value for name, value in own.items() if name.lower() not in taken} | given


def _content_type(inputs: dict[str, Any], headers: dict[str, str]) -> dict[str, str]:
    is_given = any(name.lower() == "content-type" for name in headers)
    return {"Content-Type": "application/json"} if "json" in inputs and not is_given else {}


def _header(name: str, value: Any) -> str:
    """Return a header's value. Raises Unfit, and does not quote the value, which may be secret."""
    place = f"headers.{name}"
    text = as_text(place, value)
    if not (name.isascii() and name.isprintable() and text.isascii() and text.isprintable()):
        raise Unfit(f"`{place.encode('unicode_escape').decode()}` must be of printable ASCII characters")
    return text


def _auth_headers(auth: Any) -> dict[str, str]:
    """Return what a keychain entry means here. Raises Unfit."""
    from noetlvm.keychain.auth import http_headers
    from noetlvm.keychain.shapes import Misshapen

    try:
        return {} if auth is None else http_headers(auth)
    except Misshapen as problem:
        raise Unfit(f"the keychain entry that `auth` names does not fit: {problem}") from None


def _body(inputs: dict[str, Any]) -> dict[str, Any]:
    if "form" in inputs:
        return {"data": _fields(inputs, "form")}
    if "json" in inputs:
        return {"content": _json(inputs["json"])}
    return {"content": inputs["body"]} if "body" in inputs else {}


def _json(value: Any) -> bytes:
    import json

    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    except ValueError as problem:
        raise Unfit(f"`json` cannot be written as JSON: {problem}") from None


def _fields(inputs: dict[str, Any], name: str) -> dict[str, str | list[str]] | None:
    """Return query parameters or form fields: each a value or a list of values; what is null is left out."""
    given = inputs.get(name)
    if given is None:
        return None
    return {key: _field(f"{name}.{key}", value) for key, value in given.items() if value is not None}


def _field(place: str, value: Any) -> str | list[str]:
    return [as_text(place, item) for item in value] if isinstance(value, list) else as_text(place, value)


def _timeout(given: Any) -> httpx.Timeout:
    from httpx import Timeout

    if not isinstance(given, dict):
        return Timeout(given)
    for name in given:
        if name not in _TIMEOUTS:
            raise Unfit(f"`spec.timeout` takes {' and '.join(f'`{known}`' for known in _TIMEOUTS)}, not `{name}`")
    limits = _TIMEOUTS | given
    return Timeout(limits["read"], connect=limits["connect"])


async def _drop_headers_elsewhere(request: httpx.Request) -> None:
    """Take a task's headers out of a request that a redirect sends to another server: they may be secret."""
    origin, names = request.extensions[_GIVEN]
    if _origin(str(request.url)) != origin:
        for name in names:
            request.headers.pop(name, None)


def _origin(url: str) -> tuple[str, str, int | None]:
    from httpx import URL, InvalidURL

    parsed = URL(url)
    if parsed.port is not None and parsed.port > _PORT_MAX:
        raise InvalidURL(f"there is no port {parsed.port}")
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
            return json.loads(_decoded(body, response.charset_encoding) or body), False
        except (ValueError, RecursionError):
            return body.decode(errors="replace"), True
    return _as_text(body, response.charset_encoding), False


def _as_text(body: bytes, charset: str | None) -> str:
    """Return a body as text if it is text, else as base64."""
    text = _decoded(body, charset)
    if text is None:
        from base64 import b64encode

        return b64encode(body).decode()
    return text


def _decoded(body: bytes, charset: str | None) -> str | None:
    """Return a body's text, by the charset it names or else as UTF-8; None if it is neither."""
    for name in (charset, "utf-8"):
        try:
            if name:
                return body.decode(name)
        except (UnicodeDecodeError, LookupError):
            continue
    return None


def _not_answered(lost: httpx.TransportError) -> Outcome:
    """Return the outcome of a request without a response; only what cannot ever work is not retryable."""
    import httpx

    name, reason = type(lost).__name__, _reason(lost)
    kind = "timeout" if isinstance(lost, httpx.TimeoutException) else "connection"
    if "CERTIFICATE_VERIFY_FAILED" in reason:
        message = f"{name}: {reason}; trust who signed it (SSL_CERT_FILE), or set `verify_tls: false`"
        return error(kind, message, retryable=False)
    is_hopeless = isinstance(lost, httpx.UnsupportedProtocol | httpx.LocalProtocolError)
    return error(kind, f"{name}: {reason}" if reason else name, retryable=not is_hopeless)


def _reason(lost: BaseException | None) -> str:
    """Return the first thing that an error, or one that led to it, has to say."""
    while lost is not None:
        if str(lost):
            return str(lost)
        lost = lost.__cause__ or lost.__context__
    return ""
