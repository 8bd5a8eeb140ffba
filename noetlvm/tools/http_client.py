"""Sends the requests of `kind: http`, over connections that all tasks share."""

from __future__ import annotations

import asyncio
import codecs
import json
import zlib
from base64 import b64encode
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from aiohttp import (
    ClientConnectorCertificateError,
    ClientError,
    ClientSession,
    ClientTimeout,
    DummyCookieJar,
    InvalidURL,
    NonHttpUrlClientError,
    TCPConnector,
)
from yarl import URL

from noetlvm import __version__
from noetlvm.limits import HTTP_SECONDS_MAX, TOOL_OUTPUT_BYTES_MAX
from noetlvm.tools.call import Outcome, ToolCall, error, ok, too_large
from noetlvm.tools.http import TIMEOUTS
from noetlvm.tools.inputs import InputError, as_text

if TYPE_CHECKING:
    from aiohttp import ClientResponse

    from noetlvm.tools.call import Resources

_IDEMPOTENCY_KEY = "Idempotency-Key"
_ACCEPTED = "gzip, deflate"
_IDLE_SECONDS = 30
_HEADER_BYTES_MAX = 64 * 1024
"""One header line, and one of the response's status."""
_REASON_CHARS_MAX = 500
"""Of an error message; it may quote the response."""
_REDIRECTS_MAX = 20
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_PIECE = 1024 * 1024
"""Bytes that are decompressed before other tasks get their turn."""
_VALUE_BYTES = 64
"""What one value of parsed JSON takes in memory, about."""
_VALUES_MAX = 4 * TOOL_OUTPUT_BYTES_MAX // _VALUE_BYTES

_RETRYABLE = frozenset({408, 425, 429})
_RETRIES_MAX = 10
_PAUSE_SECONDS = 0.1
_REQUEST_IDS = ("x-request-id", "request-id", "x-correlation-id", "x-amzn-requestid", "x-amz-request-id")


class _ResponseError(Exception):
    """A response that cannot be used."""


class _TooLargeError(Exception):
    """A response is larger than a result may be."""


async def send_request(call: ToolCall, resources: Resources) -> Outcome:
    """Send the request, and again after a retryable error as often as `retries` says."""
    retries = call.spec["retries"] or 0
    if not 0 <= retries <= _RETRIES_MAX:
        raise InputError(f"`spec.retries` is {retries}; give 0 to {_RETRIES_MAX}")
    outcome = await _sent(call, resources)
    for number in range(retries):
        if outcome["status"] == "ok" or not outcome["error"]["retryable"]:
            break
        await asyncio.sleep(_PAUSE_SECONDS * 2**number)
        outcome = await _sent(call, resources)
    return outcome


async def _sent(call: ToolCall, resources: Resources) -> Outcome:
    """Send the request once, and read no more of the response than a result may hold."""
    in_all = HTTP_SECONDS_MAX if isinstance(call.spec["timeout"], dict) else None  # a number limits the whole request
    client = resources.get("http", _Client)
    try:
        async with asyncio.timeout(in_all) as limit:
            return await client.send(call)
    except _TooLargeError:
        return too_large("the response", TOOL_OUTPUT_BYTES_MAX)
    except _ResponseError as problem:
        return error("response", str(problem))
    except (InvalidURL, NonHttpUrlClientError) as problem:
        return error("http", f"the URL cannot be used: {problem}")
    except TimeoutError as problem:
        late = f"the request took longer than {in_all} s" if limit.expired() else str(problem) or "no answer in time"
        return error("timeout", late, retryable=True)
    except (ClientError, OSError) as problem:
        return _not_answered(problem)


class _Client:
    """Pooled connections. Nothing else of one request is visible to the next: no cookies, no credentials."""

    def __init__(self) -> None:
        from urllib.request import getproxies

        self._proxies = getproxies()
        self._session = ClientSession(
            connector=TCPConnector(limit=0, keepalive_timeout=_IDLE_SECONDS),
            cookie_jar=DummyCookieJar(),
            auto_decompress=False,
            headers={"User-Agent": f"noetlvm/{__version__}"},
            skip_auto_headers=("Content-Type",),
            max_line_size=_HEADER_BYTES_MAX,
            max_field_size=_HEADER_BYTES_MAX,
        )

    async def send(self, call: ToolCall) -> Outcome:
        """Send the request and follow redirects, if that is set."""
        inputs, spec = call.inputs, call.spec
        url, method, headers, body = _url(inputs), inputs["method"], _headers(call), _body(inputs)
        content = _content_type(inputs, headers)
        for _ in range(_REDIRECTS_MAX + 1):
            async with self._session.request(
                method,
                url,
                data=body,
                headers={"Accept-Encoding": _ACCEPTED} | content | headers,
                timeout=_timeout(spec["timeout"]),
                allow_redirects=False,
                ssl=spec["verify_tls"],
                proxy=self._proxy(url),
            ) as response:
                target = response.headers.get("Location") if response.status in _REDIRECTS else None
                if target is None or not spec["follow_redirects"]:
                    return _answered(response, await _read(response))
            next_url = _redirect(url, target)
            if next_url.origin() != url.origin():
                headers = {}  # they may be secret, and are meant for the first server
            if response.status == 303 or (response.status in (301, 302) and method == "POST"):
                method, body, content = "GET", None, {}
            url = next_url
        raise _ResponseError(f"more than {_REDIRECTS_MAX} redirects, the last one to {url.host}{url.path}")

    def _proxy(self, url: URL) -> str | None:
        if not self._proxies:
            return None
        from urllib.request import proxy_bypass

        return None if proxy_bypass(url.host or "") else self._proxies.get(url.scheme)

    async def close(self) -> None:
        await self._session.close()


# ---- the request


def _url(inputs: dict[str, Any]) -> URL:
    """Return the address, with the query parameters. Raises InvalidURL."""
    url = _checked_url(inputs["url"])
    params = _fields(inputs, "params")
    return url.extend_query(params) if params else url


def _checked_url(text: str) -> URL:
    try:
        url = URL(text)
    except ValueError as problem:
        raise InvalidURL(text, f"{text!r}: {problem}") from None
    if url.scheme not in ("http", "https") or not url.host or not url.host.isprintable():
        raise NonHttpUrlClientError(f"{text!r} is no http or https address")
    return url


def _redirect(url: URL, target: str) -> URL:
    try:
        return _checked_url(str(url.join(URL(target))))
    except ValueError as problem:
        raise InvalidURL(target, f"redirect to {target!r}: {problem}") from None


def _headers(call: ToolCall) -> dict[str, str]:
    given = {name: _header(name, value) for name, value in call.inputs.get("headers", {}).items() if value is not None}
    taken = {name.lower() for name in given}
    own = {_IDEMPOTENCY_KEY: call.key, **_auth_headers(call.auth)}
    return {name: value for name, value in own.items() if name.lower() not in taken} | given


def _content_type(inputs: dict[str, Any], headers: dict[str, str]) -> dict[str, str]:
    if any(name.lower() == "content-type" for name in headers):
        return {}
    if "form" in inputs:
        return {"Content-Type": "application/x-www-form-urlencoded"}
    is_json = "json" in inputs or not isinstance(inputs.get("body", ""), str)
    return {"Content-Type": "application/json"} if is_json else {}


def _header(name: str, value: Any) -> str:
    """Return a header's value. Raises InputError, and does not quote the value, which may be secret."""
    place = f"headers.{name}"
    text = as_text(place, value)
    if not (name.isascii() and name.isprintable() and text.isascii() and text.isprintable()):
        raise InputError(f"`{place.encode('unicode_escape').decode()}` must consist of printable ASCII characters")
    return text


def _auth_headers(auth: Any) -> dict[str, str]:
    """Return the headers of a keychain entry. Raises InputError."""
    if auth is None:
        return {}
    from noetlvm.keychain.auth import http_headers
    from noetlvm.language.auth_use import ShapeError

    try:
        return http_headers(auth)
    except ShapeError as problem:
        raise InputError(f"the keychain entry of `auth` cannot be used: {problem}") from None


def _body(inputs: dict[str, Any]) -> bytes | None:
    if "form" in inputs:
        return urlencode(_fields(inputs, "form") or {}, doseq=True).encode()
    if "json" in inputs:
        return _json("json", inputs["json"])
    body = inputs.get("body")
    return body.encode() if isinstance(body, str) else None if body is None else _json("body", body)


def _json(name: str, value: Any) -> bytes:
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    except ValueError as problem:
        raise InputError(f"`{name}` cannot be written as JSON: {problem}") from None


def _fields(inputs: dict[str, Any], name: str) -> dict[str, str | list[str]] | None:
    """Return query parameters or form fields: each a value or a list of values; nulls are left out."""
    given = inputs.get(name)
    if given is None:
        return None
    return {key: _field(f"{name}.{key}", value) for key, value in given.items() if value is not None}


def _field(place: str, value: Any) -> str | list[str]:
    return [as_text(place, item) for item in value] if isinstance(value, list) else as_text(place, value)


def _timeout(given: Any) -> ClientTimeout:
    if not isinstance(given, dict):
        return _NO_TIMEOUT  # the runner limits the whole
    if given == TIMEOUTS:
        return _USUAL_TIMEOUT
    for name in given:
        if name not in TIMEOUTS:
            raise InputError(f"`spec.timeout` takes {' and '.join(f'`{known}`' for known in TIMEOUTS)}, not `{name}`")
    return _limits(**TIMEOUTS | given)


def _limits(connect: float, read: float) -> ClientTimeout:
    return ClientTimeout(total=None, sock_connect=connect, sock_read=read)


_NO_TIMEOUT, _USUAL_TIMEOUT = ClientTimeout(total=None), _limits(**TIMEOUTS)


# ---- the response


async def _read(response: ClientResponse) -> bytes:
    """Return the body, decoded with a bound at each step: a few bytes can stand for gigabytes."""
    decode = _decoder(response)
    length = None if "Transfer-Encoding" in response.headers else response.content_length
    if decode is None and length is not None and length <= TOOL_OUTPUT_BYTES_MAX:
        return await response.read()  # the parser reads no more than that
    body = bytearray()
    async for raw in response.content.iter_any():
        if decode is None:
            body += raw
        else:
            await _decode(decode, raw, body)
        if len(body) > TOOL_OUTPUT_BYTES_MAX:
            raise _TooLargeError
    if decode is not None and decode.is_cut:
        raise _ResponseError("the response's body ends in the middle of its content coding")
    return bytes(body)


async def _decode(decoder: _Decoder, raw: bytes, body: bytearray) -> None:
    try:
        while raw and len(body) <= TOOL_OUTPUT_BYTES_MAX:
            decoded, raw = decoder.decompress(raw, _PIECE)
            body += decoded
            if raw:
                await asyncio.sleep(0)
    except zlib.error as problem:
        raise _ResponseError(f"the response's body is not what its Content-Encoding says: {problem}") from None


def _decoder(response: ClientResponse) -> _Decoder | None:
    """Return what decodes the body; None: nothing has to. Raises _ResponseError."""
    if "Content-Encoding" not in response.headers:
        return None
    written = ",".join(response.headers.getall("Content-Encoding"))
    codings = [coding for name in written.split(",") if (coding := name.strip().lower()) not in ("", "identity")]
    if not codings:
        return None
    if len(codings) > 1:
        raise _ResponseError(f"the response has {len(codings)} content codings; at most one is accepted")
    if codings[0] not in _STREAMS:
        raise _ResponseError(f"the response has the content coding `{codings[0][:40]}`; accepted are {_ACCEPTED}")
    return _Decoder(_STREAMS[codings[0]])


def _gzip_stream(_first: int) -> Any:
    return zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)


def _deflate_stream(first: int) -> Any:
    """`deflate` is a zlib stream by the standard, and a bare one from some servers."""
    return zlib.decompressobj(wbits=zlib.MAX_WBITS if first & 0x0F == 8 else -zlib.MAX_WBITS)


_STREAMS = {"gzip": _gzip_stream, "x-gzip": _gzip_stream, "deflate": _deflate_stream}
_GZIP_MAGIC = b"\x1f\x8b"


class _Decoder:
    """Decodes a content coding. A gzip body may have several members; what else follows the stream is ignored."""

    def __init__(self, begin: Callable[[int], Any]) -> None:
        self._begin = begin
        self._stream: Any = None
        self._after = b""
        """What has come since the stream ended, as far as it may begin another member."""

    @property
    def is_cut(self) -> bool:
        """The body has begun and its end is missing."""
        return self._stream is not None and not self._stream.eof

    def decompress(self, data: bytes, most: int) -> tuple[bytes, bytes]:
        """Return up to so many bytes of the body, and the data that is left for the next call."""
        if self._stream is None:
            self._stream = self._begin(data[0])
        elif self._stream.eof:
            self._after += data
            if not self._after.startswith(_GZIP_MAGIC) or self._begin is not _gzip_stream:
                self._after = self._after[:1] if _GZIP_MAGIC.startswith(self._after) else b"-"
                return b"", b""
            data, self._after = self._after, b""
            self._stream = self._begin(data[0])
        decoded: bytes = self._stream.decompress(data, most)
        return decoded, self._stream.unconsumed_tail or self._stream.unused_data


def _answered(response: ClientResponse, body: bytes) -> Outcome:
    status, headers = response.status, _response_headers(response)
    request_id = next((headers[name] for name in _REQUEST_IDS if name in headers), None)
    http = {"status": status, "headers": headers, "request_id": request_id}
    data, is_invalid = _parsed(response, headers, body)
    result = {"status": status, "headers": headers, "data": data}
    if status >= 400:
        details = {"status": status, "retry_after": headers.get("retry-after")}
        request = f"{response.method} {response.url.host}{response.url.path}"
        message = f"{request} answered {status} {_clean(response.reason or '')}".rstrip()
        return error("http", message, retryable=_is_retryable(status), details=details, result=result, http=http)
    if is_invalid:
        return error("response", "the response's content type is JSON, and its body is not", result=result, http=http)
    return ok(result, http=http)


def _response_headers(response: ClientResponse) -> dict[str, str]:
    """Return the headers by lower-case name; values of a repeated one are joined."""
    found: dict[str, str] = {}
    for name, value in response.headers.items():
        key, text = _clean(name).lower(), _clean(value)
        found[key] = f"{found[key]}, {text}" if key in found else text
    return found


def _clean(text: str) -> str:
    """Return header text without the surrogates that stand for bytes that are no UTF-8."""
    return text if text.isascii() else text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _is_retryable(status: int) -> bool:
    return status >= 500 or status in _RETRYABLE


def _parsed(response: ClientResponse, headers: dict[str, str], body: bytes) -> tuple[Any, bool]:
    """Return the body as data, and whether it is not what its content type says. Raises _TooLargeError."""
    media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    if not body:
        return None, False
    charset = _charset(response)
    if media_type.endswith(("/json", "+json")):
        if body.count(b",") + body.count(b"[") + body.count(b"{") > _VALUES_MAX:
            raise _TooLargeError  # `[[],[],…]` takes twenty times its size in memory
        try:
            return json.loads(_decoded(body, charset) or body), False
        except (ValueError, RecursionError):
            return body.decode(errors="replace"), True
    return _as_text(body, charset), False


def _charset(response: ClientResponse) -> str | None:
    try:
        return response.charset
    except (ValueError, LookupError):  # a content type that cannot be read
        return None


def _as_text(body: bytes, charset: str | None) -> str:
    """Return a body as text if it is text, else as base64."""
    text = _decoded(body, charset)
    if text is None:
        return b64encode(body).decode()
    return text


def _decoded(body: bytes, charset: str | None) -> str | None:
    """Return the text of a body, by the charset it names or else as UTF-8; None if it is neither."""
    for name in (charset, "utf-8"):
        try:
            if name and codecs.lookup(name).name not in _NO_CHARSETS:
                return body.decode(name)
        except (UnicodeError, LookupError):
            continue
    return None


_NO_CHARSETS = frozenset({"idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape"})
"""Codecs of Python that are not charsets; to decode `punycode` takes quadratic time."""


def _not_answered(failed: ClientError | OSError) -> Outcome:
    """Return the outcome of a request without a response; all are retryable but a certificate that is not trusted."""
    reason = (str(failed) or type(failed).__name__)[:_REASON_CHARS_MAX]
    if isinstance(failed, ClientConnectorCertificateError):
        message = f"{reason}; trust the issuer (SSL_CERT_FILE), or set `verify_tls: false`"
        return error("connection", message, retryable=False)
    return error("connection", reason, retryable=True)
