"""`kind: http`: one HTTP request."""

from __future__ import annotations

from noetlvm.tools.kind import ANY, Choice, Input, Setting, ToolKind

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
