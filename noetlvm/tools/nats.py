"""`kind: nats`: messages, key-value buckets and object stores of a NATS server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from noetlvm.language.tool_kinds import ANY, Choice, Input, ToolKind, time_limit
from noetlvm.tools.call import Outcome, ToolCall
from noetlvm.tools.inputs import InputError

if TYPE_CHECKING:
    from noetlvm.tools.call import Resources

_NEEDS: dict[str, tuple[str, ...]] = {
    "publish": ("subject",),
    "request": ("subject",),
    "js_publish": ("subject",),
    "js_get_msg": ("stream",),
    "js_stream_info": ("stream",),
    "kv_get": ("bucket", "key"),
    "kv_put": ("bucket", "key"),
    "kv_delete": ("bucket", "key"),
    "kv_purge": ("bucket", "key"),
    "kv_keys": ("bucket",),
    "object_get": ("bucket", "key"),
    "object_put": ("bucket", "key"),
    "object_delete": ("bucket", "key"),
    "object_info": ("bucket", "key"),
    "object_list": ("bucket",),
}
"""The inputs that each operation needs."""

KIND = ToolKind(
    name="nats",
    summary="Publishes and requests messages, and reads and writes key-value buckets and object stores of NATS.",
    example="""\
kind: nats
auth: nats_main
operation: kv_put
bucket: sessions
key: "{{ workload.session }}"
data: { user: "{{ workload.user }}" }
""",
    result=(
        "`{status, …}`: `status` is `success`, or `not_found` for a key, object or message that does not exist; "
        "`value` or `data` is the content, with JSON parsed"
    ),
    inputs=(
        Input("operation", ("string",), "Operation.", default="publish", choices=tuple(_NEEDS)),
        Input("url", ("string",), "Server, if `auth` does not name it."),
        Input("subject", ("string",), "Subject of a message."),
        Input("data", ANY, "The message, value or object: a text is sent unchanged, any other value as JSON."),
        Input("headers", ("object",), "Headers of a message."),
        Input("bucket", ("string",), "Key-value bucket or object store."),
        Input("key", ("string",), "Key, or name of an object."),
        Input("pattern", ("string",), "Keys to list, with `*` and `>`; all if absent."),
        Input("stream", ("string",), "Stream of JetStream."),
        Input(
            "seq",
            ("integer",),
            "Sequence number of the message to get; if absent, the last message of `subject`, or of the stream.",
        ),
        Input("last", ("boolean",), "Get the last message."),
        Input("encoding", ("string",), "Encoding of bytes in `data`.", default="utf-8", choices=("utf-8", "base64")),
    ),
    choices=(Choice(("auth", "url"), "at least one"),),
    settings=(time_limit(30),),
    takes_auth=True,
    extra="nats",
    package="nats",
    spellings={
        "credential": "auth",
        "message": "data",
        "object": "key",
        "object_name": "key",
        "payload": "data",
        "timeout": "spec.timeout",
        "value": "data",
    },
)


async def run(call: ToolCall, resources: Resources) -> Outcome:
    """Do the operation on a shared connection."""
    from noetlvm.tools import nats_client

    operation = call.inputs["operation"]
    for name in _NEEDS[operation]:
        if name not in call.inputs:
            hint = "; the object's name is `key`, `name` is the task's label" if operation.startswith("object") else ""
            raise InputError(f"`{operation}` needs `{name}`{hint if name == 'key' else ''}")
    return await nats_client.do(call, resources)
