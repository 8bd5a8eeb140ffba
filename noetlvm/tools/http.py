"""`kind: http`: what it takes. `http_client.py` sends the request: importing its library takes longer than lint."""

from __future__ import annotations

from typing import TYPE_CHECKING

from noetlvm.language.tool_kinds import ANY, Choice, Input, Setting, ToolKind

if TYPE_CHECKING:
    from noetlvm.tools.call import Outcome, Resources, ToolCall

_INPUTS = (
    Input("url", ("string",), "Address of the request.", required=True, language="url"),
    Input(
        "method",
        ("string",),
        "HTTP method.",
        default="GET",
        choices=("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"),
    ),
    Input("params", ("object",), "Query parameters, added to those in the URL."),
    Input("headers", ("object",), "Request headers.", takes_secret=True),
    Input("json", ANY, "Body, sent as JSON; a text becomes a JSON string."),
    Input("form", ("object",), "Body, sent as form fields."),
    Input("body", ANY, "Body: a text is sent unchanged, any other value as JSON."),
)

TIMEOUTS = {"connect": 10, "read": 60}
"""Seconds."""

_SETTINGS = (
    Setting(
        "timeout",
        ("number", "object"),
        "Seconds: a number for the whole request, or `connect`, and `read` for each part (900 for the whole).",
        TIMEOUTS,
    ),
    Setting("follow_redirects", ("boolean",), "Follow redirects.", False),
    Setting("verify_tls", ("boolean",), "Verify the certificate of the server.", True),
    Setting(
        "retries",
        ("integer",),
        "How often the request is sent again after a retryable error, within one attempt of the task: 0 to 10, 0 by "
        "default, after 0.1 s, 0.2 s, 0.4 s and so on. The task's policy sees the last outcome.",
    ),
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
    result="`{status, headers, data}`; `data` is the parsed body, also of an error response",
    result_fields=("status", "headers", "data"),
    inputs=_INPUTS,
    choices=(Choice(("json", "form", "body"), "at most one"),),
    settings=_SETTINGS,
    takes_auth=True,
    extra="http",
    package="httptools",
    helpers=("http",),
    spellings={
        "content": "body",
        "credential": "auth",
        "data": "body",
        "endpoint": "url",
        "follow_redirects": "spec.follow_redirects",
        "payload": "body",
        "query": "params",
        "query_params": "params",
        "timeout": "spec.timeout",
        "uri": "url",
        "verify_ssl": "spec.verify_tls",
        "verify_tls": "spec.verify_tls",
    },
)


async def run(call: ToolCall, resources: Resources) -> Outcome:
    """Send the request."""
    from noetlvm.tools.http_client import send_request

    return await send_request(call, resources)
