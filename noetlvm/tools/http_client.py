"""Sends the requests of `kind: http`, over connections that all tasks share."""

from __future__ import annotations

import asyncio
import codecs
import json
import zlib
from base64 import b64encode
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from yarl import URL

from noetlvm import __version__
from noetlvm.keychain.auth import http_headers
from noetlvm.language.keychain import ShapeError
from noetlvm.limits import HTTP_SECONDS_MAX, TOOL_OUTPUT_BYTES_MAX
from noetlvm.tools.call import Outcome, ToolCall, error, ok, too_large
from noetlvm.tools.http import TIMEOUTS
from noetlvm.tools.http_connection import (
    Connections,
    HttpLimits,
    HttpRequest,
    HttpResponse,
    ResponseError,
    ResponseTooLargeError,
)
from noetlvm.tools.inputs import InputError, as_text

if TYPE_CHECKING:
    from noetlvm.tools.call import Resources

_IDEMPOTENCY_KEY = "Idempotency-Key"
_ACCEPTED = "gzip, deflate"
_ALWAYS = {"Accept": "*/*", "Accept-Encoding": _ACCEPTED, "User-Agent": f"noetlvm/{__version__}"}
_CONTENT_TYPES_CACHED = 256
_REASON_CHARS_MAX = 500
"""Of an error message; it may quote the response."""
_REDIRECTS_MAX = 20
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_CODED_PIECE, _PIECE = 4 * 1024, 1024 * 1024
"""Bytes of a body that are decompressed before other tasks get their turn, and bytes that they become in one call."""
_VALUE_BYTES = 64
"""What one value of parsed JSON takes in memory, about."""
_VALUES_MAX = 4 * TOOL_OUTPUT_BYTES_MAX // _VALUE_BYTES

_RETRYABLE = frozenset({408, 425, 429})
_RETRIES_MAX = 10
_PAUSE_SECONDS = 0.1
_REQUEST_IDS = ("x-request-id", "request-id", "x-correlation-id", "x-amzn-requestid", "x-amz-request-id")


class _AddressError(ValueError):
    """The text is not an HTTP address."""


async def send_request(call: ToolCall, resources: Resources) -> Outcome:
    """Send the request, and again after a retryable error up to `retries` times."""
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
    try:
        return await _answer(call, resources.get("http", Connections))
    except ResponseTooLargeError:
        return too_large("the response", TOOL_OUTPUT_BYTES_MAX)
    except ResponseError as problem:
        return error("response", str(problem))
    except _AddressError as problem:
        return error("http", f"the URL cannot be used: {problem}")
    except TimeoutError as problem:
        return error("timeout", str(problem), retryable=True)
    except OSError as problem:
        return _not_answered(problem)


async def _answer(call: ToolCall, connections: Connections) -> Outcome:
    """Send the request and follow redirects, if that is set. No header of the task reaches another server."""
    inputs, spec = call.inputs, call.spec
    limits, verify_tls = _limits(spec["timeout"]), spec["verify_tls"]
    url, method, headers, body = _url(inputs), inputs["method"], _headers(call), _body(inputs)
    content = _content_type(inputs)
    for _ in range(_REDIRECTS_MAX + 1):
        request = HttpRequest(method, url, _over(_ALWAYS | content, headers), body, verify_tls)
        response = await connections.send(request, limits)
        target = response.headers.get("location") if response.status in _REDIRECTS else None
        if target is None or not spec["follow_redirects"]:
            return _answered(request, response, await _decoded_body(response))
        next_url = _redirect(url, target)
        if next_url.origin() != url.origin():
            headers = {}  # they may be secret, and are meant for the first server
        if response.status == 303 or (response.status in (301, 302) and method == "POST"):
            method, body, content = "GET", None, {}
        url = next_url
    raise ResponseError(f"more than {_REDIRECTS_MAX} redirects, the last one to {url.host}{url.path}")


# ---- the request


def _url(inputs: dict[str, Any]) -> URL:
    """Return the address, with the query parameters. Raises _AddressError."""
    url = _checked_url(inputs["url"])
    params = _fields(inputs, "params")
    return url.extend_query(params) if params else url


def _checked_url(text: str) -> URL:
    try:
        url = URL(text)
    except ValueError as problem:
        raise _AddressError(f"{text!r}: {problem}") from None
    if url.scheme not in ("http", "https") or not url.host or not url.host.isprintable():
        raise _AddressError(f"{text!r} is not an http or https address")
    return url


def _redirect(url: URL, target: str) -> URL:
    try:
        return _checked_url(str(url.join(URL(target))))
    except ValueError as problem:
        raise _AddressError(f"redirect to {target!r}: {problem}") from None


def _headers(call: ToolCall) -> dict[str, str]:
    given = {name: _header(name, value) for name, value in call.inputs.get("headers", {}).items() if value is not None}
    return _over({_IDEMPOTENCY_KEY: call.key, **_auth_headers(call.auth)}, given)


def _over(usual: dict[str, str], given: dict[str, str]) -> dict[str, str]:
    """Return headers of both; where they have a name in common, however it is written, the given one."""
    if not given:
        return usual
    taken = {name.lower() for name in given}
    return {name: value for name, value in usual.items() if name.lower() not in taken} | given


def _content_type(inputs: dict[str, Any]) -> dict[str, str]:
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
    try:
        headers = http_headers(auth)
    except ShapeError as problem:
        raise InputError(f"the keychain entry of `auth` cannot be used: {problem}") from None
    if not all(name.isprintable() and value.isprintable() for name, value in headers.items()):
        raise InputError("the keychain entry of `auth` cannot be used: it has a line break or a control character")
    return headers


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


def _limits(given: Any) -> HttpLimits:
    if not isinstance(given, dict):
        return _NO_LIMITS  # the runner limits the whole
    for name in given:
        if name not in TIMEOUTS:
            raise InputError(f"`spec.timeout` takes {' and '.join(f'`{known}`' for known in TIMEOUTS)}, not `{name}`")
    return HttpLimits(**TIMEOUTS | given, total=HTTP_SECONDS_MAX)


_NO_LIMITS = HttpLimits()


# ---- the response


async def _decoded_body(response: HttpResponse) -> bytes:
    """Return the body, decoded with a bound at each step: a few bytes can stand for gigabytes."""
    decoder, raw = _decoder(response.headers.get("content-encoding", "")), response.body
    if decoder is None:
        return raw
    body = bytearray()
    try:
        for at in range(0, len(raw), _CODED_PIECE):
            if at:
                await asyncio.sleep(0)
            piece = raw[at : at + _CODED_PIECE]
            while piece or decoder.has_more:
                decoded, piece = decoder.decompress(piece, _PIECE)
                body += decoded
                if len(body) > TOOL_OUTPUT_BYTES_MAX:
                    raise ResponseTooLargeError
    except zlib.error as problem:
        raise ResponseError(f"the response's body does not match its Content-Encoding: {problem}") from None
    if decoder.is_cut:
        raise ResponseError("the response's body ends in the middle of its content coding")
    return bytes(body)


def _decoder(written: str) -> _Decoder | None:
    """Return what decodes a body with that Content-Encoding; None: nothing has to. Raises ResponseError."""
    codings = [coding for name in written.split(",") if (coding := name.strip().lower()) not in ("", "identity")]
    if not codings:
        return None
    if len(codings) > 1:
        raise ResponseError(f"the response has {len(codings)} content codings; at most one is accepted")
    if codings[0] not in _STREAMS:
        raise ResponseError(f"the response has the content coding `{codings[0][:40]}`; accepted are {_ACCEPTED}")
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
        self.has_more = False
        """The stream has more to give, without more data."""

    @property
    def is_cut(self) -> bool:
        """The body has begun and its end is missing."""
        return self._stream is not None and not self._stream.eof

    def decompress(self, data: bytes, most: int) -> tuple[bytes, bytes]:
        """Return up to this many bytes of the body, and the data that is left for the next call."""
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
        self.has_more = len(decoded) == most and not self._stream.eof
        return decoded, self._stream.unconsumed_tail or self._stream.unused_data


def _answered(request: HttpRequest, response: HttpResponse, body: bytes) -> Outcome:
    status, headers = response.status, response.headers
    request_id = next((headers[name] for name in _REQUEST_IDS if name in headers), None)
    http = {"status": status, "headers": headers} | ({"request_id": request_id} if request_id else {})
    data, is_invalid = _parsed(headers.get("content-type", ""), body)
    result = {"status": status, "headers": headers, "data": data}
    if status >= 400:
        details = {"status": status, "retry_after": headers.get("retry-after")}
        sent = f"{request.method} {request.url.host}{request.url.path}"
        message = f"{sent} answered {status} {response.reason}".rstrip()
        retryable = status >= 500 or status in _RETRYABLE
        return error("http", message, retryable=retryable, details=details, result=result, http=http)
    if is_invalid:
        return error("response", "the response's content type is JSON, and its body is not", result=result, http=http)
    return ok(result, http=http)


def _parsed(content_type: str, body: bytes) -> tuple[Any, bool]:
    """Return the body as data, and whether it does not match its content type. Raises ResponseTooLargeError."""
    if not body:
        return None, False
    media_type, charset = _content(content_type)
    if media_type.endswith(("/json", "+json")):
        if body.count(b",") + body.count(b"[") + body.count(b"{") > _VALUES_MAX:
            raise ResponseTooLargeError  # `[[],[],…]` takes twenty times its size in memory
        try:
            return json.loads(_decoded(body, charset) or body), False
        except (ValueError, RecursionError):
            return body.decode(errors="replace"), True
    return _as_text(body, charset), False


@lru_cache(_CONTENT_TYPES_CACHED)
def _content(written: str) -> tuple[str, str | None]:
    """Return the media type that a content type names, and the charset."""
    media_type, *parameters = written.split(";")
    pairs = (parameter.partition("=") for parameter in parameters)
    charset = next((value for name, _, value in pairs if name.strip().lower() == "charset"), "")
    return media_type.strip().lower(), charset.strip().strip("\"'") or None


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


def _not_answered(failed: OSError) -> Outcome:
    """Return the outcome of a request without a response; all are retryable but a certificate that is not trusted."""
    from ssl import SSLCertVerificationError

    reason = (str(failed) or type(failed).__name__)[:_REASON_CHARS_MAX]
    if isinstance(failed.__cause__, SSLCertVerificationError):
        message = f"{reason}; trust the issuer (SSL_CERT_FILE), or set `verify_tls: false`"
        return error("connection", message, retryable=False)
    return error("connection", reason, retryable=True)
