"""The operations of `kind: nats` on shared connections. Loaded by the first call of a process."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import ssl
from base64 import b64decode, b64encode
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import nats
from nats.errors import AuthorizationError, BadSubjectError, Error, MaxPayloadError, NoRespondersError
from nats.errors import TimeoutError as NatsTimeoutError
from nats.js.errors import (
    BucketNotFoundError,
    KeyNotFoundError,
    NoKeysError,
    NotFoundError,
    ObjectNotFoundError,
    ServerError,
)
from nats.js.errors import Error as JetStreamError

from noetlvm.keychain.auth import nats_parts
from noetlvm.language.keychain import ShapeError
from noetlvm.limits import TOOL_OUTPUT_BYTES_MAX
from noetlvm.tools.call import Outcome, ToolCall, error, ok, too_large
from noetlvm.tools.inputs import InputError, as_text, plain

if TYPE_CHECKING:
    from nats.aio.client import Client

    from noetlvm.tools.call import Resources

_CONNECT_SECONDS = 5
_MESSAGE_ID = "Nats-Msg-Id"
"""JetStream stores a message once for each value of this header, for two minutes or as the stream is configured."""


async def do(call: ToolCall, resources: Resources) -> Outcome:
    """Do the operation on a shared connection."""
    parts = _parts(call)
    connection = resources.get(("nats", tuple(sorted((k, str(v)) for k, v in parts.items()))), partial(_Server, parts))
    try:
        return await _OPERATIONS[call.inputs["operation"]](await connection.client(), call)
    except MaxPayloadError as problem:
        return error("nats", f"the message is larger than the server accepts: {problem}")
    except NoRespondersError:
        return error("nats", f"there is no responder on `{call.inputs['subject']}`", retryable=True)
    except NatsTimeoutError:
        return error("timeout", "the server did not answer in time", retryable=True)
    except (Error, OSError) as problem:
        return _failed(problem, call)


class _Server:
    """One connection, opened again when it was lost."""

    def __init__(self, parts: dict[str, Any]) -> None:
        self._parts = parts
        self._client: Client | None = None
        self._opening = asyncio.Lock()

    async def client(self) -> Client:
        async with self._opening:
            if self._client is None or not self._client.is_connected:
                await self.close()
                self._client = await _connected(self._parts)
            return self._client

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await close_client(client)


async def _connected(parts: dict[str, Any]) -> Client:
    async def ignore(_problem: Exception) -> None:
        """Errors reach the task that made the call; the library would also print them."""

    return await nats.connect(
        **{name: value for name, value in parts.items() if not name.startswith("tls_")},
        tls=_tls(parts),
        connect_timeout=_CONNECT_SECONDS,
        allow_reconnect=False,
        max_reconnect_attempts=1,  # 0 would mean: forever
        reconnect_time_wait=0.1,
        error_cb=ignore,
    )


def _tls(parts: dict[str, Any]) -> Any:
    if not any(name.startswith("tls_") for name in parts):
        return None
    try:
        context = ssl.create_default_context(cafile=parts.get("tls_ca"))
        if "tls_cert" in parts:
            context.load_cert_chain(parts["tls_cert"], parts.get("tls_key"))
    except OSError as problem:
        raise InputError(f"the TLS files of the keychain entry cannot be read: {problem.strerror}") from None
    return context


def _parts(call: ToolCall) -> dict[str, Any]:
    try:
        parts = nats_parts(call.auth) if call.auth is not None else {}
    except ShapeError as problem:
        raise InputError(f"the keychain entry of `auth` cannot be used: {problem}") from None
    return parts | ({"servers": call.inputs["url"]} if "url" in call.inputs else {})


# ---- data


def _bytes(call: ToolCall) -> bytes:
    data = call.inputs.get("data", "")
    if isinstance(data, str):
        if call.inputs["encoding"] == "utf-8":
            return data.encode()
        try:
            return b64decode(data, validate=True)
        except ValueError:
            raise InputError("`data` is not base64") from None
    try:
        return json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    except ValueError as problem:
        raise InputError(f"`data` cannot be written as JSON: {problem}") from None


def _read(data: bytes | None, call: ToolCall, *, parse: bool = True) -> Any:
    """Return bytes as data: JSON parsed, other text as it is, what is not text as base64."""
    raw = data or b""
    if call.inputs["encoding"] == "base64":
        return b64encode(raw).decode()
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return b64encode(raw).decode()
    if not parse or not text[:1].strip() or text[0] not in '{["0123456789-tfn':
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _headers(call: ToolCall) -> dict[str, str] | None:
    given = call.inputs.get("headers", {})
    return {name: as_text(f"headers.{name}", value) for name, value in given.items() if value is not None} or None


def _found(**fields: Any) -> Outcome:
    return ok({"status": "success", **fields})


def _not_found(**fields: Any) -> Outcome:
    return ok({"status": "not_found", **fields})


async def close_client(client: Client) -> None:
    """Close a connection, which may be lost already."""
    with suppress(Error, OSError):
        if not client.is_closed:
            await client.close()


async def flushed(client: Client, seconds: int = 10) -> None:
    """Wait until the server has what was sent.

    The client's ping overtakes commands that it has not written yet: the answer to the first ping shows that they are
    written, the answer to the second that the server has read them.
    """
    await client.flush(seconds)
    await client.flush(seconds)


# ---- operations


async def _publish(client: Client, call: ToolCall) -> Outcome:
    subject = call.inputs["subject"]
    await client.publish(subject, _bytes(call), headers=_headers(call))
    await flushed(client)
    return _found(subject=subject)


async def _request(client: Client, call: ToolCall) -> Outcome:
    subject = call.inputs["subject"]
    reply = await client.request(subject, _bytes(call), timeout=call.spec["timeout"], headers=_headers(call))
    return _found(subject=subject, data=_read(reply.data, call), headers=dict(reply.headers or {}))


async def _js_publish(client: Client, call: ToolCall) -> Outcome:
    inputs = call.inputs
    headers = {_MESSAGE_ID: call.key} | (_headers(call) or {})
    stored = await client.jetstream().publish(
        inputs["subject"], _bytes(call), stream=inputs.get("stream"), headers=headers, timeout=call.spec["timeout"]
    )
    return _found(stream=stored.stream, seq=stored.seq, duplicate=bool(stored.duplicate))


async def _js_get_msg(client: Client, call: ToolCall) -> Outcome:
    inputs, jetstream = call.inputs, client.jetstream()
    stream = inputs["stream"]
    try:
        if "seq" in inputs:
            found = await jetstream.get_msg(stream, inputs["seq"])
        elif "subject" in inputs:
            found = await jetstream.get_last_msg(stream, inputs["subject"])
        else:
            info = await jetstream.stream_info(stream)
            found = await jetstream.get_msg(stream, info.state.last_seq)
    except NotFoundError as problem:
        if problem.err_code == _NO_MESSAGE:
            return _not_found(stream=stream, data=None)
        raise
    headers = dict(found.headers or {})
    return _found(stream=stream, subject=found.subject, seq=found.seq, data=_read(found.data, call), headers=headers)


_NO_MESSAGE = 10037


async def _js_stream_info(client: Client, call: ToolCall) -> Outcome:
    info = await client.jetstream().stream_info(call.inputs["stream"])
    config, state = plain(info.config.as_dict()), info.state
    counts = {name: getattr(state, name) for name in ("messages", "bytes", "first_seq", "last_seq", "consumer_count")}
    return _found(stream=call.inputs["stream"], config=config, state=counts)


async def _kv_get(client: Client, call: ToolCall) -> Outcome:
    bucket, key = call.inputs["bucket"], call.inputs["key"]
    try:
        entry = await (await client.jetstream().key_value(bucket)).get(key)
    except KeyNotFoundError:
        return _not_found(bucket=bucket, key=key, value=None)
    return _found(bucket=bucket, key=key, value=_read(entry.value, call), revision=entry.revision)


async def _kv_put(client: Client, call: ToolCall) -> Outcome:
    bucket, key = call.inputs["bucket"], call.inputs["key"]
    revision = await (await client.jetstream().key_value(bucket)).put(key, _bytes(call))
    return _found(bucket=bucket, key=key, revision=revision)


async def _kv_delete(client: Client, call: ToolCall) -> Outcome:
    bucket, key = call.inputs["bucket"], call.inputs["key"]
    store = await client.jetstream().key_value(bucket)
    await (store.purge(key) if call.inputs["operation"] == "kv_purge" else store.delete(key))
    return _found(bucket=bucket, key=key)


EMPTY_LISTS_MAX = 5
"""How often a bucket with entries is listed: the client lists none if they arrive before it requests their number.

A bucket whose keys are all deleted has entries too."""


async def _kv_keys(client: Client, call: ToolCall) -> Outcome:
    bucket, pattern = call.inputs["bucket"], call.inputs.get("pattern")
    store, keys = await client.jetstream().key_value(bucket), []
    for _ in range(EMPTY_LISTS_MAX):
        with contextlib.suppress(NoKeysError):
            keys = await store.keys()
        if keys or not (await store.status()).values:
            break
    if pattern:
        written = re.escape(pattern).replace(r"\*", "[^.]*").replace(">", ".+")
        keys = [key for key in keys if re.fullmatch(written, key)]
    return _found(bucket=bucket, keys=sorted(keys), count=len(keys))


async def _object_put(client: Client, call: ToolCall) -> Outcome:
    store = await client.jetstream().object_store(call.inputs["bucket"])
    return _found(**_info(await store.put(call.inputs["key"], _bytes(call))))


async def _object_get(client: Client, call: ToolCall) -> Outcome:
    bucket, key = call.inputs["bucket"], call.inputs["key"]
    store = await client.jetstream().object_store(bucket)
    try:
        if ((await store.get_info(key)).size or 0) > TOOL_OUTPUT_BYTES_MAX:
            return too_large("the object", TOOL_OUTPUT_BYTES_MAX)
        found = await store.get(key)
    except ObjectNotFoundError:
        return _not_found(bucket=bucket, name=key, data=None)
    return _found(**_info(found.info), data=_read(found.data, call, parse=False))


async def _object_delete(client: Client, call: ToolCall) -> Outcome:
    bucket, key = call.inputs["bucket"], call.inputs["key"]
    try:
        await (await client.jetstream().object_store(bucket)).delete(key)
    except ObjectNotFoundError:
        return _not_found(bucket=bucket, name=key)
    return _found(bucket=bucket, name=key)


async def _object_info(client: Client, call: ToolCall) -> Outcome:
    bucket, key = call.inputs["bucket"], call.inputs["key"]
    try:
        return _found(**_info(await (await client.jetstream().object_store(bucket)).get_info(key)))
    except ObjectNotFoundError:
        return _not_found(bucket=bucket, name=key)


async def _object_list(client: Client, call: ToolCall) -> Outcome:
    bucket = call.inputs["bucket"]
    try:
        found = await (await client.jetstream().object_store(bucket)).list()
    except NotFoundError as problem:
        if type(problem) is not NotFoundError:
            raise
        found = []  # the library raises it for an empty store
    objects = sorted((_info(info) for info in found), key=lambda info: str(info["name"]))
    return _found(bucket=bucket, objects=objects, count=len(objects))


def _info(info: Any) -> dict[str, Any]:
    names = ("bucket", "name", "size", "chunks", "digest", "mtime")
    return {name: getattr(info, name, None) for name in names}


_OPERATIONS: dict[str, Callable[[Client, ToolCall], Awaitable[Outcome]]] = {
    "publish": _publish,
    "request": _request,
    "js_publish": _js_publish,
    "js_get_msg": _js_get_msg,
    "js_stream_info": _js_stream_info,
    "kv_get": _kv_get,
    "kv_put": _kv_put,
    "kv_delete": _kv_delete,
    "kv_purge": _kv_delete,
    "kv_keys": _kv_keys,
    "object_get": _object_get,
    "object_put": _object_put,
    "object_delete": _object_delete,
    "object_info": _object_info,
    "object_list": _object_list,
}


def _failed(problem: Exception, call: ToolCall) -> Outcome:
    """Return the outcome of a failed call: what the server refuses stays refused, a lost connection does not."""
    message = str(problem) or type(problem).__name__
    details = {"exception_type": type(problem).__name__}
    if isinstance(problem, BucketNotFoundError):
        bucket, store = call.inputs["bucket"], "object" if call.inputs["operation"].startswith("object") else "kv"
        message = (
            f"the server has no {store} bucket `{bucket}`; create it, for instance with `nats {store} add {bucket}`"
        )
    if isinstance(problem, JetStreamError):
        return error("nats", message, retryable=isinstance(problem, ServerError), details=details)
    is_permanent = isinstance(problem, AuthorizationError | BadSubjectError) or "authorization" in message.lower()
    return error("connection", message, retryable=not is_permanent, details=details)
