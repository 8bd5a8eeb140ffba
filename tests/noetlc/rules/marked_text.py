"""Expected places written into the text itself: `«` stands where a finding must begin."""

from __future__ import annotations

from noetlc.finding import Finding
from tests.noetlc.rules.lint_text import lint, place

MARK = "«"


def found_at_marks(text: str, code: str) -> list[Finding]:
    """Check a text without its marks; the findings of `code` must begin exactly where the marks stand."""
    plain = text.replace(MARK, "")
    findings = lint(plain, code)
    assert [place(finding, plain) for finding in findings] == _marks(text)
    return findings


def task(then: str, kind: str = "http", loop: str = "") -> str:
    """Make a step with one task whose policy has one `else`."""
    return policy(f"- else:\n    then: {then}", kind, loop)


def policy(rules: str, kind: str = "http", loop: str = "") -> str:
    """Make a step with one task `get` whose policy has these rules."""
    return "".join(
        (
            "- step: fetch\n",
            f"  loop: {loop}\n" if loop else "",
            f"  tool:\n    - get:\n        kind: {kind}\n",
            "        url: https://example.org\n" if kind == "http" else "",
            "        spec:\n          policy:\n            rules:\n",
            *(f"              {line}\n" for line in rules.splitlines()),
        )
    )


def _marks(text: str) -> list[tuple[int, int]]:
    return [
        (number, position - seen + 1)
        for number, line in enumerate(text.lstrip("\n").splitlines(), 1)
        for seen, position in enumerate(index for index, character in enumerate(line) if character == MARK)
    ]
