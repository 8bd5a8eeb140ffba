"""Settings of a task's tool: which are obeyed, and where an unknown one is told."""

from __future__ import annotations

import pytest

from tests.noetlc.rules.lint_text import lint
from tests.noetlc.rules.marked_text import found_at_marks

HTTP = "- step: a\n  tool:\n    - get: {kind: http, url: 'https://example.org', spec: %s}\n"


@pytest.mark.parametrize(
    ("spec", "help"),
    [
        ("{«timeuot: 5}", "did you mean `timeout`?"),
        ("{«retries: 3}", "`http` obeys `timeout`"),
        ("{«headers: {a: b}}", "it is an input: move it out of `spec`"),
    ],
)
def test_a_setting_that_the_tool_does_not_have_is_found(spec: str, help: str) -> None:
    (finding,) = found_at_marks(HTTP % spec, "P121")
    assert help in finding.help


@pytest.mark.parametrize(
    "text",
    [
        HTTP % "{timeout: {connect: 1, read: 2}, verify_tls: true, policy: {rules: []}}",
        "- step: a\n  spec: {memory_mb: 64}\n  tool:\n    - get: {kind: http, url: 'https://example.org'}\n",
        "- step: a\n  tool: {kind: noop, spec: {anything: 1}}\n",
    ],
)
def test_what_the_tool_obeys_or_is_for_others_is_not_told(text: str) -> None:
    assert lint(text, "P121") == []
